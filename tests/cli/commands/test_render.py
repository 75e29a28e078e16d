"""`coterie render`: its inputs, its output streams, and its exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner, Result

from coterie.cli.app import app
from tests.examples.console import ROOT

FLOW = """workflow:
  name: w
  groups:
  - name: g
    tasks:
    - {name: a, image: i, command: [run], lead: true}
    - {name: b, image: i, command: [run], files: [{path: /x, localpath: data/x.txt}]}
  resources:
    default: {gpu: 4, topology: [{key: rack}]}
"""
LEVELS = ("--levels", "rack=topology.kubernetes.io/rack")
CONFIG = """backends:
  prod: {scheduler: kai, namespace: research}
  lab: {scheduler: local}
pools:
  one: {backend: prod, topology_keys: [{key: rack, label: r}]}
  two: {backend: lab, topology_keys: [{key: rack, label: r}]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "flow.yaml").write_text(FLOW, encoding="utf-8")
    (tmp_path / "coterie.yaml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/x.txt").write_text("hello\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COTERIE_CONFIG", raising=False)
    return tmp_path


def render(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["render", *arguments], input=stdin)


@pytest.mark.usefixtures("folder")
def test_manifests_are_on_standard_output_and_nothing_else_is() -> None:
    done = render("flow.yaml", *LEVELS, "-n", "team")
    found = list(yaml.safe_load_all(done.stdout))

    assert done.exit_code == 0
    assert [one["kind"] for one in found] == ["Queue", "Queue", "Topology", "ConfigMap", "PodGroup", "Pod", "Pod"]
    assert {one["metadata"].get("namespace") for one in found} == {None, "team"}
    assert found[3]["data"] == {"0-x": "hello\n"}
    assert not done.stderr


@pytest.mark.usefixtures("folder")
def test_the_namespace_is_that_of_the_backend_unless_one_is_named() -> None:
    for arguments, namespace in (((), "research"), (("--namespace", "mine"), "mine")):
        done = render("flow.yaml", "--config", "coterie.yaml", "--pool", "one", *arguments)
        assert list(yaml.safe_load_all(done.stdout))[3]["metadata"]["namespace"] == namespace


@pytest.mark.usefixtures("folder")
def test_a_pool_of_another_scheduler_is_rendered_with_a_warning_on_standard_error() -> None:
    done = render("flow.yaml", "--config", "coterie.yaml", "--pool", "two")

    assert done.exit_code == 0
    assert "warning[OtherScheduler]" in done.stderr
    assert "warning" not in done.stdout


@pytest.mark.usefixtures("folder")
def test_levels_can_come_from_the_cluster_file() -> None:
    Path("c.yaml").write_text(
        "topology_keys: [{key: rack, label: r}]\nfleet: [{domains: {rack: [a]}, nodes: 2, gpu: 4}]\n", encoding="utf-8"
    )

    assert render("flow.yaml", "--cluster", "c.yaml").exit_code == 0


@pytest.mark.usefixtures("folder")
def test_a_workflow_is_read_from_standard_input_with_files_beside_the_caller() -> None:
    assert "hello" in render("-", *LEVELS, stdin=FLOW).stdout


@pytest.mark.usefixtures("folder")
def test_names_are_what_kubectl_prints() -> None:
    assert [line.partition("/")[0] for line in render("flow.yaml", *LEVELS, "-o", "name").stdout.splitlines()] == [
        "queue.scheduling.run.ai",
        "queue.scheduling.run.ai",
        "topology.kai.scheduler",
        "configmap",
        "podgroup.scheduling.run.ai",
        "pod",
        "pod",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("flow.yaml",), 3, "this pool has no topology keys"),
        (("flow.yaml", "--levels", "zone=z"), 3, 'no topology key "rack"'),
        (("flow.yaml", "--levels", "zone"), 3, "is not NAME=LABEL"),
        (("flow.yaml", *LEVELS, "-n", "No_Such"), 2, "cannot be the name of a namespace"),
        (("flow.yaml", *LEVELS, "--group", "gg"), 4, 'no group "gg"'),
        (("flow.yaml", *LEVELS, "--pool", "p"), 2, "--pool needs a configuration"),
        (("none.yaml", *LEVELS), 4, "there is no file none.yaml"),
        (("-", "--cluster", "-"), 2, "standard input can be read only once"),
        (("flow.yaml", "--config", "coterie.yaml"), 2, "has 2 pools"),
        (("flow.yaml", "--config", "coterie.yaml", "--pool", "three"), 4, 'no pool "three"'),
        (("flow.yaml", "--cluster", "coterie.yaml"), 3, "error[InvalidSpec]"),
        (("flow.yaml", "--backend", "slurm"), 2, "slurm"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_is_wrong_is_said_on_standard_error(arguments: tuple[str, ...], code: int, expected: str) -> None:
    done = render(*arguments)

    assert done.exit_code == code
    assert expected in done.stderr
    assert not done.stdout


@pytest.mark.usefixtures("folder")
def test_faults_are_data_for_those_who_ask_for_json() -> None:
    done = render("flow.yaml", "--levels", "zone=z", "-o", "json")

    assert done.exit_code == 3
    assert json.loads(done.stdout)["errors"][0]["code"] == "UnknownLevel"


def test_a_local_file_that_is_not_there_is_a_fault_with_its_place(folder: Path) -> None:
    (folder / "data/x.txt").unlink()
    done = render("flow.yaml", *LEVELS)

    assert done.exit_code == 3
    assert "localpath: there is no file data/x.txt" in done.stderr
    assert "flow.yaml:7:" in done.stderr


def test_a_link_out_of_the_folder_is_not_followed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("elsewhere") / "secret"
    secret.write_text("secret", encoding="utf-8")
    (folder / "data/x.txt").unlink()
    (folder / "data/x.txt").symlink_to(secret)
    done = render("flow.yaml", *LEVELS)

    assert done.exit_code == 3
    assert "leads out of the folder" in done.stderr


def test_the_options_are_documented_and_those_documented_exist() -> None:
    text = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    found = re.search(r"^## coterie render\n(.*?)(?=^## )", text, re.DOTALL | re.MULTILINE)
    commands = getattr(typer.main.get_command(app), "commands")  # noqa: B009 - typer hides the type of its groups
    real = {option for parameter in commands["render"].params for option in parameter.opts if option.startswith("--")}

    assert found
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", found[1])) == real


def test_every_warning_that_rendering_gives_is_documented() -> None:
    sources = (ROOT / "src/coterie/backends").rglob("*.py")
    given = {code for file in sources for code in re.findall(r'Notice\(\s*"(\w+)"', file.read_text(encoding="utf-8"))}
    text = (ROOT / "docs/render.md").read_text(encoding="utf-8")

    assert given == set(re.findall(r"^\| ([A-Z]\w+) \|", text, re.MULTILINE))


@pytest.mark.usefixtures("folder")
def test_several_files_are_written_together_and_what_they_share_once() -> None:
    Path("other.yaml").write_text(FLOW.replace("name: w", "name: v"), "utf-8")

    both = render("flow.yaml", "other.yaml", *LEVELS)
    alone = [render(file, *LEVELS, "-o", "name").stdout.splitlines() for file in ("flow.yaml", "other.yaml")]
    names = render("flow.yaml", "other.yaml", *LEVELS, "-o", "name").stdout.splitlines()

    assert both.exit_code == 0
    assert names == [*dict.fromkeys((*alone[0], *alone[1]))]
    kinds = [one["kind"] for one in yaml.safe_load_all(both.stdout)]
    assert kinds.count("Topology") == 1
    assert kinds.count("Pod") == 4


@pytest.mark.usefixtures("folder")
def test_a_group_of_one_of_several_files_can_be_written_alone() -> None:
    Path("other.yaml").write_text(FLOW.replace("name: w", "name: v").replace("name: g", "name: h"), "utf-8")

    done = render("flow.yaml", "other.yaml", *LEVELS, "--group", "h", "-o", "name")
    unknown = render("flow.yaml", "other.yaml", *LEVELS, "--group", "i")

    kinds = [line.partition("/")[0] for line in done.stdout.splitlines()]
    assert kinds.count("podgroup.scheduling.run.ai") == 1
    assert kinds.count("pod") == 2
    assert "podgroup.scheduling.run.ai/v-h" in done.stdout
    assert unknown.exit_code == 4
    assert 'there is no group "i" in the files' in unknown.stderr


@pytest.mark.usefixtures("folder")
def test_two_workloads_of_one_name_are_refused() -> None:
    Path("other.yaml").write_text(FLOW.replace("gpu: 4", "gpu: 2"), "utf-8")

    done = render("flow.yaml", "other.yaml", *LEVELS)

    assert done.exit_code == 2
    assert "two workloads make the same pod/w-a" in done.stderr
    assert "rename one of them" in done.stderr


@pytest.mark.usefixtures("folder")
def test_all_faults_of_several_files_are_told() -> None:
    Path("other.yaml").write_text(FLOW.replace("command: [run], lead", "comand: [run], lead"), "utf-8")
    Path("third.yaml").write_text(FLOW.replace("lead: true", "leed: true"), "utf-8")

    done = render("other.yaml", "third.yaml", *LEVELS)

    assert done.exit_code == 3
    assert "comand" in done.stderr
    assert "leed" in done.stderr


def test_the_cluster_of_the_pool_is_read_as_plan_reads_it(folder: Path) -> None:
    """The pool takes its levels from a ClusterTopology, which only its cluster has."""
    topology = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopology",
        "metadata": {"name": "hall"},
        "spec": {"levels": [{"domain": "rack", "key": "example.com/rack"}]},
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"example.com/rack": "r"}}}
    (folder / "hall.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, topology]}))
    (folder / "coterie.yaml").write_text(
        "backends: {prod: {scheduler: kai, cluster: hall.json}}\npools: {one: {topology: hall}}\n"
    )

    done = render("flow.yaml", "--config", "coterie.yaml")

    assert done.exit_code == 0
    found = [one for one in yaml.safe_load_all(done.stdout) if one["kind"] == "Topology"]
    assert found[0]["spec"]["levels"] == [{"nodeLabel": "example.com/rack"}]


def test_a_missing_kubeconfig_keeps_nobody_from_rendering(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(folder / "kubeconfig"))
    (folder / "coterie.yaml").write_text(
        "backends: {prod: {scheduler: kai, context: prod}}\npools: {one: {topology_keys: [{key: rack, label: r}]}}\n"
    )

    done = render("flow.yaml", "--config", "coterie.yaml", "-o", "name")
    named = render("flow.yaml", "--config", "coterie.yaml", "--cluster", "context:prod")

    assert done.exit_code == 0
    assert "warning[ClusterUnread]: the cluster of the pool, context:prod, was not read" in done.stderr
    assert "there is no kubeconfig" in done.stderr
    assert (named.exit_code, named.stdout) == (2, "")


def test_a_cluster_that_does_not_answer_keeps_nobody_from_rendering(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "kubeconfig").write_text(
        "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\n"
        "users: [{name: u, user: {}}]\ncontexts: [{name: prod, context: {cluster: c, user: u}}]\n"
    )
    monkeypatch.setenv("KUBECONFIG", str(folder / "kubeconfig"))
    (folder / "coterie.yaml").write_text(
        "backends: {prod: {scheduler: kai, context: prod}}\npools: {one: {topology_keys: [{key: rack, label: r}]}}\n"
    )

    done = render("flow.yaml", "--config", "coterie.yaml", "-o", "name")

    assert done.exit_code == 0
    assert "warning[ClusterUnread]: the cluster of the pool, context:prod, was not read" in done.stderr
