"""`coterie render` for PodCliqueSets and graph deployments: inputs, output streams, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from coterie.cli.app import app
from tests.backends.kai.sets.builders import following
from tests.frontends.dynamo.objects import beta
from tests.frontends.grove.objects import LEVELS, assigned, changed, clique, podcliqueset

TOPOLOGY = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "ClusterTopology",
    "metadata": {"name": "t"},
    "spec": {"levels": [{"domain": level.name, "key": level.label} for level in LEVELS.levels]},
}
OTHER = changed(following(), assigned("metadata.name", "other"), assigned("metadata.labels", {}))
CONFIG = """backends: {prod: {scheduler: kai, namespace: research}}
pools: {one: {backend: prod, topology: t, node_selector: {pool: one}}}
"""
FLOW = "workflow: {name: w, tasks: [{name: a, image: i, command: [run]}]}\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COTERIE_CONFIG", raising=False)
    write("topology.yaml", TOPOLOGY)
    write("set.yaml", following())
    write("both.yaml", TOPOLOGY, following(), OTHER)
    write("graph.yaml", beta())
    Path("coterie.yaml").write_text(CONFIG, encoding="utf-8")
    Path("flow.yaml").write_text(FLOW, encoding="utf-8")


def write(name: str, *objects: Any) -> None:
    Path(name).write_text(yaml.safe_dump_all(objects, sort_keys=False), encoding="utf-8")


def render(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["render", *arguments], input=stdin)


def printed(*arguments: str) -> list[Any]:
    done = render(*arguments)
    assert done.exit_code == 0, done.output
    return list(yaml.safe_load_all(done.stdout))


def kinds(found: list[Any]) -> list[str]:
    return list(dict.fromkeys(each["kind"] for each in found))


def test_all_sets_of_a_file_are_rendered_and_what_they_share_comes_once_and_first() -> None:
    found = printed("both.yaml")

    assert [each["kind"] for each in found[:3]] == ["Queue", "Queue", "Topology"]
    assert [each["metadata"]["name"].rpartition("-")[0] for each in found if each["kind"] == "PodGroup"] == [
        "set-0",
        "other-0",
    ]
    names = [(each["kind"], each["metadata"]["name"]) for each in found]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "arguments",
    [
        ("set.yaml", "--topology", "topology.yaml"),
        ("set.yaml", "--levels", ",".join(f"{level.name}={level.label}" for level in LEVELS.levels)),
        ("set.yaml", "--cluster", "snapshot.json"),
        ("set.yaml", "--config", "coterie.yaml", "--topology", "topology.yaml"),
    ],
    ids=" ".join,
)
def test_a_topology_is_known_from_wherever_the_call_has_it(arguments: tuple[str, ...]) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    Path("snapshot.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, TOPOLOGY]}), encoding="utf-8"
    )
    found = printed(*arguments)

    (topology,) = (each for each in found if each["kind"] == "Topology")
    assert topology["metadata"]["name"] == "t"
    assert [level["nodeLabel"] for level in topology["spec"]["levels"]] == [level.label for level in LEVELS.levels]


def test_the_pool_says_which_nodes_and_the_file_which_namespace() -> None:
    found = printed("set.yaml", "--config", "coterie.yaml", "--topology", "topology.yaml")
    bare = podcliqueset(clique("a"))
    del bare["metadata"]["namespace"]
    write("bare.yaml", bare)

    assert {each["metadata"].get("namespace") for each in found} == {None, "serving"}
    assert {each["spec"]["nodeSelector"]["pool"] for each in found if each["kind"] == "Pod"} == {"one"}
    for arguments, namespace in (
        ((), "default"),
        (("-n", "mine"), "mine"),
        (("--config", "coterie.yaml", "--topology", "topology.yaml"), "research"),
    ):
        assert {each["metadata"].get("namespace") for each in printed("bare.yaml", *arguments)} == {namespace}


def test_a_graph_deployment_is_rendered_through_its_set() -> None:
    done = render("graph.yaml", "--levels", "zone=z,block=b,rack=r,host=kubernetes.io/hostname")

    assert done.exit_code == 0, done.output
    assert kinds(list(yaml.safe_load_all(done.stdout))) == ["Topology", "Service", "PodGroup", "Pod"]
    assert "warning[EngineArguments]" in done.stderr


def test_gangs_are_chosen_by_name_over_all_sets_of_a_file() -> None:
    found = printed("both.yaml", "--group", "other-0")

    assert {each["metadata"]["labels"].get("coterie.dev/workflow") for each in found} == {None, "other"}


def test_followers_are_not_printed_and_said_on_standard_error() -> None:
    done = render("both.yaml", "-o", "name")

    assert "podgroup.scheduling.run.ai/set-0-shard" not in done.stdout
    assert done.stderr.count("warning[FollowersHeld]") == 2


def test_fields_that_only_a_plan_ignores_are_not_warned_of() -> None:
    write("high.yaml", podcliqueset(clique("a"), priorityClassName="high"))

    assert "FieldIgnored" not in render("high.yaml").stderr


def test_grove_gets_sets_and_bindings_in_todays_form() -> None:
    write("old.yaml", following(), TOPOLOGY)
    binding, pcs = printed("old.yaml", "--backend", "grove")

    assert binding["kind"] == "ClusterTopologyBinding"
    pods = [clique["spec"]["podSpec"] for clique in pcs["spec"]["template"]["cliques"]]
    assumed = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert [pod.pop("tolerations", []) for pod in pods] == [[], *[[assumed]] * (len(pods) - 1)]
    assert pcs == following()
    assert kinds(printed("topology.yaml", "-b", "grove")) == ["ClusterTopologyBinding"]


def test_grove_gets_a_set_whose_topology_only_the_cluster_knows() -> None:
    done = render("set.yaml", "-b", "grove", "-o", "name")

    assert done.stdout == "podcliqueset.grove.io/set\n"
    assert "warning[TopologyNotChecked]" in done.stderr
    assert kinds(printed("graph.yaml", "-b", "grove")) == ["PodCliqueSet"]


def test_grove_gets_a_namespace_where_the_file_has_none() -> None:
    bare = podcliqueset(clique("a"))
    del bare["metadata"]["namespace"]
    write("bare.yaml", TOPOLOGY, bare)
    binding, pcs = printed("bare.yaml", "-b", "grove", "-n", "mine")

    assert "namespace" not in binding["metadata"]
    assert pcs["metadata"]["namespace"] == "mine"


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("flow.yaml", "-b", "grove"), 2, "is a workflow"),
        (("topology.yaml",), 2, "only topologies"),
        (("both.yaml", "-g", "set-0-shrd-0"), 4, 'Did you mean "set-0-shard-0"'),
        (("both.yaml", "-g", "set-0", "-b", "grove"), 2, "--group is for KAI"),
        (("both.yaml", "-n", "mine"), 2, 'names the namespace "serving"'),
        (("both.yaml", "-n", "mine", "-b", "grove"), 2, 'names the namespace "serving"'),
        (("both.yaml", "-n", "No_Such"), 2, "cannot be the name of a namespace"),
        (("both.yaml", "-n", "No_Such", "-b", "grove"), 2, "cannot be the name of a namespace"),
        (("set.yaml",), 3, 'ClusterTopology "t"'),
        (("set.yaml", "--topology", "topology.yaml#u"), 4, '"u"'),
        (("set.yaml", "--topology", "none.yaml"), 4, "none.yaml"),
        (("-", "--topology", "-"), 2, "standard input can be read only once"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_on_standard_error(arguments: tuple[str, ...], code: int, expected: str) -> None:
    done = render(*arguments)

    assert done.exit_code == code, done.output
    assert expected in done.stderr
    assert not done.stdout


@pytest.mark.parametrize("backend", ["kai", "grove"])
def test_faults_of_all_sets_come_with_place_and_field(backend: str) -> None:
    wrong = assigned("spec.template.topologyConstraint.pack.required", "blok")
    write("wrong.yaml", TOPOLOGY, changed(following(), wrong), changed(OTHER, wrong))
    done = render("wrong.yaml", "-b", backend, "-o", "json")
    faults = json.loads(done.stdout)["errors"]

    assert done.exit_code == 3
    assert len(faults) == 2
    assert {fault["field"] for fault in faults} == {"spec.template.topologyConstraint.pack.required"}
    assert "wrong.yaml:" in render("wrong.yaml", "-b", backend).stderr


def test_a_fault_of_rendering_points_into_a_graph_deployment() -> None:
    write("odd.yaml", changed(beta(), assigned("metadata.name", "7b")))
    done = render("odd.yaml", "--levels", "zone=z,block=b,rack=r,host=kubernetes.io/hostname")

    assert done.exit_code == 3, done.output
    assert "odd.yaml:4:9" in done.stderr


def test_a_set_is_read_from_standard_input() -> None:
    text = Path("both.yaml").read_text(encoding="utf-8")

    assert render("-", stdin=text).stdout == render("both.yaml").stdout
