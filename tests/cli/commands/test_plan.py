"""`coterie plan` as a program: its inputs, its output, and its exit code."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from tests.cli.command import CLUSTER, ROOT, SampleFolder, call, quiet, workflow
from tests.planning.plan_json import ERRORS, PLAN, breaches, holes

RACK = "rack=topology.kubernetes.io/rack"


@pytest.mark.parametrize(
    ("tasks", "gpus", "code", "verdict"),
    [(2, 8, 0, "placed"), (4, 8, 7, "impossible"), (3, 8, 7, "impossible"), (2, 16, 7, "impossible")],
)
def test_the_exit_code_says_the_verdict(desk: SampleFolder, tasks: int, gpus: int, code: int, verdict: str) -> None:
    done = desk.plan(desk.flow(tasks, gpus=gpus), "-o", "json")

    assert (done.code, json.loads(done.out)["verdict"]) == (code, verdict)


def test_what_must_wait_exits_with_six(desk: SampleFolder) -> None:
    done = desk.plan(desk.flow(4, topology="{key: zone}"), "-o", "json")

    said = json.loads(done.out)
    assert (done.code, said["verdict"]) == (6, "waiting")
    assert list(breaches(said, PLAN)) == []


def test_the_worst_verdict_of_several_files_decides(desk: SampleFolder) -> None:
    files = [desk.flow(2, name="a"), desk.flow(3, name="b"), desk.flow(4, name="c", topology="{key: zone}")]

    assert desk.plan(*files).code == 7


@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml", "name"])
def test_every_format_names_the_group(desk: SampleFolder, output: str) -> None:
    done = desk.plan(desk.flow(2), "-o", output)

    assert (done.code, done.err) == (0, "")
    match output:
        case "json":
            assert list(breaches(json.loads(done.out), PLAN)) == []
        case "yaml":
            assert list(breaches(yaml.safe_load(done.out), PLAN)) == []
        case "name":
            assert done.out == "wf/g\n"
        case "wide":
            assert [line.split() for line in done.out.splitlines() if "t1" in line] == [["t1", "a-r1-n2", "a", "r1"]]
        case _:
            assert "a-r1-n[1-2]" in done.out
            assert done.out.endswith("1 group: 1 placed, 0 waiting, 0 impossible.\n")


def test_an_unknown_format_lists_those_there_are(desk: SampleFolder) -> None:
    done = desk.plan(desk.flow(2), "-o", "xml")

    assert (done.code, done.out) == (2, "")
    assert [name for name in ("table", "wide", "json", "yaml", "name") if name not in done.err] == []


def test_json_parses_while_warnings_go_to_standard_error(desk: SampleFolder) -> None:
    done = desk.plan(desk.flow(2, more=", platform: dgx"), "-o", "json")

    said = json.loads(done.out)
    assert [one["code"] for one in said["warnings"]] == ["FieldIgnored"]
    assert said["warnings"][0]["line"] is not None
    assert done.err.startswith("warning[FieldIgnored]: ")


def test_several_files_are_a_list_each_seeing_what_the_earlier_took(desk: SampleFolder) -> None:
    files = [desk.flow(2, name="a"), desk.flow(2, name="b")]

    one_after_the_other, alone = desk.plan(*files, "-o", "json"), desk.plan(*files, "-o", "json", "--independent")

    assert [(plan["workload"], plan["verdict"]) for plan in json.loads(one_after_the_other.out)] == [
        ("a", "placed"),
        ("b", "waiting"),
    ]
    assert [plan["verdict"] for plan in json.loads(alone.out)] == ["placed", "placed"]
    assert (one_after_the_other.code, alone.code) == (6, 0)


def test_a_template_takes_values_from_the_command_line(desk: SampleFolder) -> None:
    text = workflow(1).replace("gpu: 8", "gpu: {{ gpus }}").replace("name: wf", "name: {{ name }}")
    file = desk.file("t.yaml", "default-values: {gpus: 16, name: wf}\n" + text)

    done = desk.plan(file, "--set", "gpus=4", "--set-string", "name=w007", "-o", "json")

    assert (done.code, json.loads(done.out)["workload"]) == (0, "w007")


def test_a_configuration_says_pool_levels_and_cluster() -> None:
    """The same by option and by environment."""
    asked = ("plan", "examples/refusals/over-quota.yaml", "--pool", "shared", "-o", "json")

    option = call(*asked, "--config", "examples/coterie.yaml")
    variable = call(*asked, COTERIE_CONFIG="examples/coterie.yaml")

    for done in (option, variable):
        said = json.loads(done.out)
        assert (done.code, said["pool"], said["groups"][0]["refusal"]["reason"]) == (7, "shared", "OverQuota")


def over_quota(*files: str | Path) -> list[tuple[str, list[tuple[str, int]], list[str]]]:
    """Return verdict, holders and remedies of each file, in the pool that may use sixteen GPUs."""
    done = call("plan", *files, "--config", "examples/coterie.yaml", "--pool", "shared", "-o", "json")
    said = json.loads(done.out)
    refusals = [(one["verdict"], one["groups"][0]["refusal"]) for one in (said if isinstance(said, list) else [said])]
    return [
        (
            verdict,
            [(held["owner"], held["gpus"]) for held in refusal["holders"]],
            [w["change"] for w in refusal["ways_out"]],
        )
        for verdict, refusal in refusals
        if refusal
    ]


def test_a_plan_over_the_limit_of_its_pool_has_remedies_that_work() -> None:
    ((verdict, holders, ways),) = over_quota("examples/refusals/over-quota.yaml")

    assert (verdict, holders) == ("impossible", [])
    assert ways == ["fits now with 2 tasks", 'fits now if an admin raises gpus.limit of pool "shared" to 24']
    again = call(
        "plan", "examples/refusals/over-quota.yaml", "--config", "examples/coterie.yaml", "--pool", "shared",
        "--tasks", "training=2",
    )  # fmt: skip
    assert again.code == 0


def test_workflows_planned_before_are_holders_of_the_pools_limit(desk: SampleFolder) -> None:
    first = desk.flow(2, name="first", topology="{key: rack}")
    second = desk.flow(1, name="second", topology="{key: rack}")

    ((verdict, holders, ways),) = over_quota(first, second)

    assert (verdict, holders) == ("waiting", [("first", 16)])
    assert ways == [
        "fits when first ends",
        'fits now if an admin raises gpus.limit of pool "shared" to 24',
    ]


def test_a_pool_that_is_not_there_is_not_found() -> None:
    done = call("plan", "examples/refusals/over-quota.yaml", "--config", "examples/coterie.yaml", "--pool", "shard")

    assert (done.code, done.out) == (4, "")
    assert quiet(done, "shard", 'Did you mean "shared"?')


def snapshot() -> bytes:
    items = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"n{number}",
                "labels": {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/rack": "r1"},
            },
            "status": {
                "allocatable": {"nvidia.com/gpu": "8", "cpu": "64", "memory": "1Ti", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for number in range(2)
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


def test_a_snapshot_may_come_from_standard_input_with_levels_for_the_call(desk: SampleFolder) -> None:
    done = call("plan", desk.flow(2), "--cluster", "-", "--levels", RACK, "-o", "json", stdin=snapshot())

    said = json.loads(done.out)
    assert (done.code, said["verdict"], said["stats"]["nodes"]) == (0, "placed", 2)
    assert said["groups"][0]["assignments"][0] == {"task": "t0", "node": "n0", "gpus": 8, "domains": {"rack": "r1"}}


def test_a_workflow_may_come_from_standard_input(desk: SampleFolder) -> None:
    assert desk.plan("-", "-o", "name", stdin=workflow(2).encode()).out == "wf/g\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("plan", "w.yaml"), 2, ("cluster", "hint:")),
        (("plan", "-", "--cluster", "-"), 2, ("standard input", "once")),
        (("plan", "-", "-", "--cluster", "c.yaml"), 2, ("standard input", "once")),
        (("plan", "nowhere.yaml", "--cluster", "c.yaml"), 4, ("nowhere.yaml",)),
        (("plan", "w.yaml", "--cluster", "nowhere.json"), 4, ("nowhere.json",)),
        (("plan", "w.yaml", "--cluster", "."), 2, ("directory",)),
        (("plan", "w.yaml", "--cluster", "c.yaml", "--pool", "p"), 2, ("--pool", "configuration")),
        (("plan", "w.yaml", "--cluster", "c.yaml", "--prefer", "rak"), 4, ("rak", 'Did you mean "rack"?')),
        (("plan", "w.yaml", "--cluster", "c.yaml", "--without", "wf-1"), 4, ("wf-1", "wf-12")),
        (("plan", "w.yaml", "--cluster", "c.yaml", "--uncordon", "a-r1-n9"), 4, ("a-r1-n9",)),
        (("plan", "w.yaml", "--cluster", "c.yaml", "--tasks", "g=0"), 2, ("GROUP=N",)),
        (("plan", "w.yaml", "--cluster", "context:prod"), 2, ("kubectl get",)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_a_call_that_cannot_be_carried_out_says_so_in_a_line_and_a_hint(
    desk: SampleFolder, arguments: tuple[str, ...], code: int, words: tuple[str, ...]
) -> None:
    desk.file("w.yaml", workflow(2))
    desk.file("c.yaml", CLUSTER)

    done = call(*arguments, cwd=desk.folder)

    assert (done.code, done.out) == (code, "")
    assert quiet(done, *words), done.err


def test_an_unknown_holder_is_answered_with_the_known_ones(desk: SampleFolder) -> None:
    nodes = "nodes: [{name: n1, gpu: 32}]\n"
    pods = "".join(f"- {{owner: wf-{number:02}, node: n1, gpu: 1}}\n" for number in range(20))
    crowded, empty = desk.file("crowded.yaml", f"{nodes}pods:\n{pods}"), desk.file("empty.yaml", nodes)
    flow = desk.flow(1, topology="")
    hints = [call("plan", flow, "--cluster", each, "--without", "zz").err for each in (crowded, empty)]

    assert re.search(r"hint: Known: wf-00, wf-01, .*, wf-15 and 4 more\.", hints[0])
    assert "hint: There are no holders." in hints[1]


def test_all_faults_of_all_files_are_reported_at_once(desk: SampleFolder) -> None:
    one = desk.file("one.yaml", workflow(2).replace("image: i", "imge: i"))
    two = desk.file("two.yaml", workflow(2, topology="{key: rak}"))
    cluster = desk.file("bad.yaml", "nodes:\n- {name: n1, gpu: many}\n")

    done = call("plan", one, two, "--cluster", cluster, "--levels", RACK, "-o", "json")

    said = json.loads(done.out)
    assert (done.code, done.err) == (3, "")
    assert list(breaches(said, ERRORS)) == []
    assert list(holes(said)) == []
    assert {error["file"] for error in said["errors"]} >= {str(one), str(cluster)}
    assert all(error["line"] for error in said["errors"])


def test_faults_of_files_and_of_the_tree_rules_come_together(desk: SampleFolder) -> None:
    one = desk.file("one.yaml", workflow(2).replace("image: i", "imge: i"))
    two = desk.file("two.yaml", workflow(2, topology="{key: rak}"))

    done = desk.plan(one, two)

    assert (done.code, done.out) == (3, "")
    assert "error[InvalidSpec]" in done.err
    assert "error[UnknownLevel]" in done.err
    assert "faults in" in done.err.splitlines()[-1]


REFUSED = ("never-fits", "no-domain-fits", "groups-conflict", "nodes-excluded", "no-capacity")


@pytest.mark.parametrize("example", REFUSED)
def test_every_way_out_of_an_example_is_a_command_that_works(example: str) -> None:
    """A command that places the gang now, or under a named condition, exits with 0; any other leaves it waiting."""
    source = ("--cluster", "examples/refusals/cluster.yaml")
    done = call("plan", f"examples/refusals/{example}.yaml", *source, "-o", "json")

    ways = json.loads(done.out)["groups"][0]["refusal"]["ways_out"]

    assert ways
    for way in ways:
        program, *arguments = shlex.split(way["command"])
        assert program == "coterie"
        expected = {0} if way["change"].startswith("places") else {0, 6}
        assert call(*arguments, "-o", "name", cwd=ROOT).code in expected, way


def test_the_rendered_text_of_a_template_can_be_seen(desk: SampleFolder) -> None:
    loop = "{% for i in range(n) %}\n  - {name: t{{ i }}}\n{% endfor %}\n"
    text = f"default-values: {{n: 2}}\nworkflow:\n  name: w\n  tasks:\n{loop}"
    file = desk.file("template.yaml", text)

    done = call("plan", file, "--show-rendered", "--set", "n=3")
    as_data = json.loads(call("plan", file, "--show-rendered", "-o", "json").out)

    assert done.code == 0, done.err
    assert [line for line in done.out.splitlines() if "name: t" in line] == [f"  - {{name: t{n}}}" for n in range(3)]
    assert as_data[0]["file"] == str(file)
    assert "{name: t1}" in as_data[0]["text"]


def test_a_fault_in_a_loop_points_into_the_file(desk: SampleFolder) -> None:
    loop = "{%- for i in range(3) %}\n  - {name: t{{ i }}, image: i, command: x}\n{%- endfor %}\n"
    text = f"workflow:\n  name: w\n  tasks:\n{loop}"
    file = desk.file("loop.yaml", text)

    done = desk.plan(file)

    assert done.code == 3
    assert done.err.count("error[") == 1
    assert f"{file}:5:" in done.err
    assert "(rendered)" not in done.err
