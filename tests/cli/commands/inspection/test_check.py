"""`coterie check`: findings of labels and pools, guessed levels, exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.cli.command_lines import CONFIG, REFUSALS, UGLY, call, data, written

Z, R, C = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack", "nvidia.com/gpu.clique"

CLUSTER = f"""\
nodes:
- {{name: n1, gpu: 8, labels: {{{Z}: a, {R}: r1, nvidia.com/gpu.product: NVIDIA-GB200}}}}
- {{name: n2, gpu: 8, labels: {{{Z}: a, {R}: r1, size: small}}, taints: [{{key: dedicated, value: ml}}]}}
- {{name: n3, gpu: 8, labels: {{{Z}: a}}}}
- {{name: cp, cpu: 8}}
"""
KEYS = f"topology_keys: [{{key: zone, label: {Z}}}, {{key: rack, label: {R}}}]"


GOOD = f"""\
{KEYS}
fleet:
- {{domains: {{zone: a, rack: 2}}, nodes: 2, gpu: 8}}
- {{domains: {{zone: b, rack: [x, y]}}, nodes: 2, gpu: 8}}
"""


def config(folder: Path, pools: str, scheduler: str = "local") -> str:
    written(folder, CLUSTER)
    text = f"backends:\n  lab: {{scheduler: {scheduler}, cluster: cluster.yaml}}\npools:\n{pools}"
    return written(folder, text, "coterie.yaml")


def codes(folder: Path, pools: str, pool: str = "p", scheduler: str = "local") -> dict[str, str]:
    """Return the severity of each code that a pool gets."""
    found = data("check", "--config", config(folder, pools, scheduler), "--pool", pool)
    return {finding["code"]: finding["severity"] for finding in found["findings"]}


def test_labels_that_form_the_hierarchy_are_said_to_and_exit_0(tmp_path: Path) -> None:
    done = call("check", written(tmp_path, GOOD))

    assert done.exit_code == 0
    assert "No problems found" in done.stdout
    assert done.stderr == ""


def test_an_error_exits_7_and_says_code_level_nodes_and_what_to_do() -> None:
    done = call("check", REFUSALS, "-o", "wide")

    assert done.exit_code == 7
    assert 'error[LabelOnNoNode] gpu-clique: no node has the label "nvidia.com/gpu.clique"' in done.stdout
    assert "  Label the nodes, or correct the label of this level." in done.stdout
    assert "  nodes: a[1-2]-n[1-4],b1-n[1-4]" in done.stdout
    assert "1 error, 0 warnings, 1 remark." in done.stdout


def test_warnings_exit_6_and_remarks_exit_0(tmp_path: Path) -> None:
    cluster = written(tmp_path, CLUSTER)

    assert call("check", cluster, "--levels", f"zone={Z},rack={R}").exit_code == 6
    assert call("check", cluster, "--levels", f"zone={Z}").exit_code == 0


def test_levels_are_guessed_from_well_known_labels_and_the_option_that_pins_them_works(tmp_path: Path) -> None:
    cluster = written(tmp_path, CLUSTER)

    found = data("check", cluster)
    pin = found["findings"][0]["hint"].removeprefix("To pin them: --levels ")
    pinned = data("check", cluster, "--levels", pin)

    assert found["guessed"]
    assert [level["name"] for level in found["levels"]] == ["zone", "rack", "host"]
    assert found["findings"][0]["code"] == "LevelsGuessed"
    assert not pinned["guessed"]
    assert pinned["findings"] == found["findings"][1:]


def test_a_node_name_without_a_coarser_label_is_no_gap(tmp_path: Path) -> None:
    found = data("check", written(tmp_path, CLUSTER), "--levels", f"zone={Z},rack={R},host=kubernetes.io/hostname")

    assert not [finding for finding in found["findings"] if finding["code"] == "LabelGap"]


def test_without_any_level_the_call_is_refused_with_an_example(tmp_path: Path) -> None:
    done = call("check", written(tmp_path, "nodes: [{name: n1, gpu: 8}]"))

    assert done.exit_code == 2
    assert "--levels zone=LABEL,rack=LABEL" in done.stderr


@pytest.mark.parametrize(
    ("pools", "code", "severity"),
    [
        (f"  p: {{node_selector: {{{Z}: b}}, {KEYS}}}", "SelectorMatchesNothing", "error"),
        (f"  p: {{{KEYS}, gpus: {{guarantee: 64, limit: 64, weight: 1}}}}", "QuotaAboveCapacity", "info"),
        (
            f"  p: {{{KEYS}, platforms: {{big: {{node_selector: {{size: large}}}}}}}}",
            "PlatformMatchesNothing",
            "warning",
        ),
        (f"  p: {{{KEYS}}}", "TaintNotTolerated", "warning"),
        (f"  p: {{{KEYS}, node_selector: {{size: small}}}}", "TaintNotTolerated", "error"),
        (f"  p: {{{KEYS}}}\n  q: {{{KEYS}, node_selector: {{size: small}}}}", "PoolsShareNodes", "info"),
        (f"  p: {{{KEYS}, gpus: {{limit: 8}}}}", "QuotaIncomplete", "info"),
        (f"  p: {{topology_keys: [{{key: c, label: {C}}}]}}", "LabelOnNoNode", "error"),
    ],
)
def test_a_pool_is_checked_against_its_cluster(tmp_path: Path, pools: str, code: str, severity: str) -> None:
    assert codes(tmp_path, pools)[code] == severity


def test_a_label_counts_on_the_nodes_of_the_pool_only(tmp_path: Path) -> None:
    found = codes(tmp_path, f"  p: {{{KEYS}, node_selector: {{nvidia.com/gpu.product: NVIDIA-GB200}}}}")

    assert "LabelMissing" not in found


def test_tolerated_taints_are_fine(tmp_path: Path) -> None:
    found = codes(tmp_path, f"  p: {{{KEYS}, tolerations: [{{key: dedicated, operator: Exists}}]}}")

    assert "TaintNotTolerated" not in found


def test_a_guarantee_above_what_there_is_warns(tmp_path: Path) -> None:
    done = call("check", "--config", config(tmp_path, f"  p: {{{KEYS}, gpus: {{guarantee: 64}}}}"))

    assert 'warning[QuotaAboveCapacity]: pool "p" guarantees 64 GPUs, but its nodes have 24' in done.stdout


def test_nodes_that_kai_cannot_see_are_a_warning_where_kai_schedules(tmp_path: Path) -> None:
    assert codes(tmp_path, f"  p: {{{KEYS}}}")["HiddenFromScheduler"] == "info"
    assert codes(tmp_path, f"  p: {{{KEYS}}}", scheduler="kai")["HiddenFromScheduler"] == "warning"


@pytest.mark.parametrize(
    ("selector", "hint"),
    [
        ("nvidia.com/gpu.product: NVIDIA-GB20", 'Did you mean "NVIDIA-GB200"?'),
        ("nvidia.com/gpu-product: NVIDIA-GB200", 'Did you mean "nvidia.com/gpu.product"?'),
        ("size: enormous", "Values are: small."),
        ("{size: small, nvidia.com/gpu.product: NVIDIA-GB200}", "no node has them all"),
    ],
)
def test_a_selector_that_matches_nothing_says_which_part_is_wrong(tmp_path: Path, selector: str, hint: str) -> None:
    braced = selector if selector.startswith("{") else f"{{{selector}}}"
    done = call("check", "--config", config(tmp_path, f"  p: {{{KEYS}, node_selector: {braced}}}"))

    assert done.exit_code == 7
    assert hint in done.stdout


def test_the_cluster_of_the_backend_is_used_where_none_is_named() -> None:
    assert call("check", "--config", CONFIG, "--pool", "gb200").exit_code == 0
    assert call("check", "--config", CONFIG, "--pool", "shared").exit_code == 7


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "no cluster was named"),
        (("nowhere.yaml",), 4, "there is no file nowhere.yaml"),
        (("-", "--config", "-"), 2, "standard input can be read only once"),
        ((REFUSALS, "--pool", "x"), 2, "--pool needs a configuration"),
        ((REFUSALS, "--config", CONFIG, "--pool", "gb2000"), 4, 'Did you mean "gb200"?'),
        ((REFUSALS, "--config", CONFIG), 2, "so one must be named"),
        ((REFUSALS, "--levels", "rack"), 3, '"rack" is not NAME=LABEL'),
        (("context:prod",), 2, "kubectl get nodes,pods -A -o json"),
    ],
)
def test_a_call_that_names_nothing_right_is_refused(arguments: tuple[str, ...], code: int, said: str) -> None:
    done = call("check", *arguments)

    assert done.exit_code == code
    assert said in done.stderr
    assert "Traceback" not in done.output


def test_a_cluster_without_nodes_is_refused(tmp_path: Path) -> None:
    for text in ("nodes: []", '{"kind": "List", "items": []}'):
        assert call("check", written(tmp_path, text)).exit_code == 3


def test_standard_input_is_read_for_a_dash() -> None:
    assert call("check", "-", stdin=GOOD).exit_code == 0


def test_every_format_has_the_findings(tmp_path: Path) -> None:
    found = data("check", REFUSALS)

    assert found["worst"] == "error"
    assert found["findings"][-1]["ranges"] == "a[1-2]-n[1-4],b1-n[1-4]"
    assert yaml.safe_load(call("check", REFUSALS, "-o", "yaml").stdout) == found
    assert call("check", REFUSALS, "-o", "name").stdout == "gpu-clique/LabelOnNoNode\nHiddenFromScheduler\n"
    assert data("check", written(tmp_path, GOOD))["worst"] is None


def test_a_narrow_terminal_wraps_the_words() -> None:
    lines = call("check", REFUSALS, columns=40).stdout.splitlines()

    assert max(len(line) for line in lines if "topology.kubernetes.io" not in line and "nvidia" not in line) <= 60


def test_names_with_escape_sequences_stay_names(tmp_path: Path) -> None:
    done = call("check", written(tmp_path, UGLY), "-o", "wide")

    assert "\x1b" not in done.output
    assert "\x9b" not in done.output
