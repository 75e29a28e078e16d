"""`coterie validate`: the judged objects, the topologies they are judged by, and the output."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.command import ROOT, SampleFolder, call, environment, escapes, on_terminal, spawn, workflow
from tests.cli.sample_files import TC, codes, errors, judged, packed, stocked, text, topology
from tests.frontends.dynamo import objects as dynamo
from tests.frontends.dynamo.objects import put
from tests.frontends.grove.objects import assigned, changed, standard

EXAMPLES = ROOT / "examples"


@pytest.fixture
def shelf(desk: SampleFolder) -> SampleFolder:
    return stocked(desk)


def test_json_has_every_fault_with_its_place_per_object_and_in_all(shelf: SampleFolder) -> None:
    done, said = judged(shelf, "topology.yaml good.yaml bad.yaml")
    assert done.code == 3
    assert (said["version"], said["valid"]) == (1, False)
    assert [(each["file"], each["kind"], each["name"], len(each["errors"])) for each in said["files"]] == [
        ("topology.yaml", "ClusterTopologyBinding", "t", 0),
        ("good.yaml", "PodCliqueSet", "set", 0),
        ("bad.yaml", "PodCliqueSet", "set", 1),
    ]
    [fault] = said["errors"]
    assert fault == said["files"][2]["errors"][0]
    assert (fault["code"], fault["type"], fault["field"]) == ("UnknownLevel", "Invalid", f"{TC}.pack.required")
    assert fault["message"] == 'the ClusterTopology "t" has no domain "rak"'
    assert fault["hint"] == 'Did you mean "rack"?'
    lines = (shelf.folder / "bad.yaml").read_text(encoding="utf-8").splitlines()
    assert (fault["file"], '"rak"' in lines[fault["line"] - 1]) == ("bad.yaml", True)
    assert lines[fault["line"] - 1][fault["column"] - 1 :].startswith('"rak"')


def test_people_get_frames_and_at_last_a_count(shelf: SampleFolder) -> None:
    done = call("validate", "topology.yaml", "good.yaml", "bad.yaml", cwd=shelf.folder)
    assert done.code == 3
    assert done.out.splitlines() == [
        "FILE           OBJECT                    RESULT",
        "topology.yaml  clustertopologybinding/t  OK",
        "good.yaml      podcliqueset/set          OK",
        "bad.yaml       podcliqueset/set          1 fault",
        "",
        "3 files, 3 objects: 1 refused; 1 fault, 0 warnings.",
    ]
    assert 'error[UnknownLevel]: the ClusterTopology "t" has no domain "rak"' in done.err
    assert f"Invalid: {TC}.pack.required" in done.err
    assert "^^^^^" in done.err


def test_warnings_refuse_nothing(shelf: SampleFolder) -> None:
    done = call("validate", "good.yaml", cwd=shelf.folder)
    assert done.code == 0
    assert done.err.startswith("warning[TopologyNotChecked]: no ClusterTopology is known here")
    assert "(good.yaml:" in done.err
    assert done.out.splitlines()[-1] == "1 file, 1 object: valid; 0 faults, 1 warning."


def test_names_are_those_of_what_is_refused(shelf: SampleFolder) -> None:
    shelf.file("torn.yaml", "kind: [")
    done = call("validate", "topology.yaml", "good.yaml", "bad.yaml", "torn.yaml", "-o", "name", cwd=shelf.folder)
    assert (done.code, done.out.split()) == (3, ["podcliqueset/set", "torn.yaml"])
    done = call("validate", "topology.yaml", "good.yaml", "-o", "name", cwd=shelf.folder)
    assert (done.code, done.out) == (0, "")


def test_yaml_says_what_json_says(shelf: SampleFolder) -> None:
    done = call("validate", "bad.yaml", "topology.yaml", "-o", "yaml", cwd=shelf.folder)
    _, said = judged(shelf, "bad.yaml topology.yaml")
    assert (done.code, yaml.safe_load(done.out)) == (3, said)


def test_wide_tells_what_would_happen_to_each_object(shelf: SampleFolder) -> None:
    shelf.file("old.yaml", text(packed(), changed(standard(), assigned("metadata.name", "gone"))))
    done = call("validate", "topology.yaml", "good.yaml", "--old", "old.yaml", "-o", "wide", cwd=shelf.folder)
    assert [line.split() for line in done.out.splitlines()] == [
        ["FILE", "OBJECT", "NAMESPACE", "CHANGE", "RESULT"],
        ["topology.yaml", "clustertopologybinding/t", "-", "created", "OK"],
        ["good.yaml", "podcliqueset/set", "serving", "updated", "OK"],
        ["old.yaml", "podcliqueset/gone", "serving", "removed", "removed"],
        [],
        ["2", "files,", "2", "objects", "(1", "created,", "1", "updated):", "valid;", "0", "faults,", "1", "warning."],
    ]
    assert 'warning[Removed]: PodCliqueSet "gone" is in the old files only' in done.err


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        ("", 2, "needs FILE"),
        ("nowhere.yaml", 4, "nowhere.yaml"),
        ("good.yaml --old nowhere.yaml", 4, "nowhere.yaml"),
        ("- --old -", 2, "standard input can be read only once"),
        ("good.yaml --pool p", 2, "--pool needs a configuration"),
        ("good.yaml --topology topology.yaml --levels rack=r", 2, "both define the levels"),
        ("good.yaml --off everything", 2, "everything"),
        ("flow.yaml --topology topology.yaml#u", 4, 'no ClusterTopology "u"'),
    ],
)
def test_a_wrong_call_is_not_a_refusal(shelf: SampleFolder, words: str, code: int, hint: str) -> None:
    done = call("validate", *words.split(), cwd=shelf.folder)
    assert done.code == code
    assert hint in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("words", "expected", "warnings"),
    [
        ("good.yaml", [], ["TopologyNotChecked"]),
        ("good.yaml topology.yaml", [], []),
        ("good.yaml --topology topology.yaml", [], []),
        ("good.yaml --cluster snapshot.json", [], []),
        ("good.yaml --cluster bare.json", [], ["TopologyNotChecked"]),
        ("good.yaml --levels rack=r", [], ["TopologyAssumed"]),
        ("good.yaml --cluster cluster.yaml", [], ["TopologyAssumed"]),
        ("good.yaml --config config.yaml", [], ["TopologyAssumed"]),
        ("good.yaml --config config.yaml --pool p", [], ["TopologyAssumed"]),
        ("good.yaml --levels zone=z", [("Invalid", f"{TC}.pack.required")], ["TopologyAssumed"]),
        ("good.yaml other.yaml", [("Invalid", f"{TC}.topologyName")], []),
        ("good.yaml other.yaml --levels rack=r", [("Invalid", f"{TC}.topologyName")], []),
        ("good.yaml other.yaml --topology topology.yaml", [], []),
        ("good.yaml wrong.yaml", [("Duplicate", "spec.levels[1].domain")], ["TopologyWrong"]),
        ("both.yaml small.yaml", [], ["TopologyDiffers"]),
        ("small.yaml both.yaml", [], ["TopologyDiffers"]),
        ("graph.yaml", [], ["TopologyNotChecked"]),
        ("graph.yaml --levels zone=z,rack=r", [], ["TopologyAssumed"]),
        ("graph.yaml wrong.yaml", [("Duplicate", "spec.levels[1].domain")], ["TopologyWrong"]),
        ("graph.yaml small.yaml", [("Invalid", "spec.components[1].topologyConstraint.packDomain")], []),
    ],
)
def test_topologies_are_known_from_files_options_and_clusters(
    shelf: SampleFolder, words: str, expected: list[tuple[str, str]], warnings: list[str]
) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}}
    snapshot = {"apiVersion": "v1", "kind": "List", "items": [node, topology()]}
    levels = [{"domain": "rack", "key": "a"}, {"domain": "rack", "key": "b"}]
    shelf.file("snapshot.json", json.dumps(snapshot))
    shelf.file("bare.json", json.dumps({**snapshot, "items": [node]}))
    shelf.file("other.yaml", text(topology("u")))
    shelf.file("small.yaml", text(topology("t", "zone", "host")))
    shelf.file("both.yaml", text(topology(), packed()))
    shelf.file("wrong.yaml", text({**topology(), "spec": {"levels": levels}}))
    shelf.file("graph.yaml", text(dynamo.beta()))
    keys = "topology_keys: [{key: rack, label: r}]"
    shelf.file("config.yaml", f"backends: {{b: {{scheduler: local, cluster: x}}}}\npools: {{p: {{{keys}}}}}\n")

    done, said = judged(shelf, words)

    assert (errors(said), codes(said)) == (expected, warnings)
    assert done.code == (3 if expected else 0)
    assert all(each["file"] and each["line"] for each in [*said["errors"], *said["warnings"]])


@pytest.mark.parametrize(
    ("option", "file"),
    [("--levels zone", "--levels"), ("--topology bad.yaml", "bad.yaml"), ("--cluster bad.yaml", "bad.yaml")],
)
def test_what_files_are_judged_against_has_to_be_right_itself(shelf: SampleFolder, option: str, file: str) -> None:
    done, said = judged(shelf, f"good.yaml {option}")
    assert (done.code, said["valid"], [each["file"] for each in said["files"]]) == (3, False, [file])


def test_two_topologies_of_one_name_in_one_file_are_refused_if_they_differ(shelf: SampleFolder) -> None:
    renamed = {**topology("t", "zone", "rack"), "kind": "ClusterTopology"}
    shelf.file("twins.yaml", text(topology(), renamed, packed()))
    _, said = judged(shelf, "twins.yaml")
    assert errors(said) == [("Duplicate", "metadata.name")]


@pytest.mark.parametrize(
    ("words", "faults", "warnings"),
    [
        ("flow.yaml", [], ["TopologyNotChecked"]),
        ("flow.yaml --levels rack=r", [], []),
        ("flow.yaml --topology topology.yaml", [], []),
        ("flow.yaml topology.yaml", [], []),
        ("flow.yaml --cluster cluster.yaml", [], []),
        ("flow.yaml --levels zone=z", ["UnknownLevel"], []),
        ("flow.yaml --config config.yaml", [], []),
        ("flow.yaml --config config.yaml --pool q", ["UnknownLevel"], []),
        ("named.yaml --config config.yaml", ["InvalidSpec"], []),
        ("named.yaml --config config.yaml --pool p", [], []),
        ("typo.yaml", ["InvalidSpec"], []),
        ("set.yaml --levels rack=r", ["InvalidSpec"], []),
        ("set.yaml --levels rack=r --set name=wf", [], []),
        ("set.yaml --levels rack=r --set-string name=wf", [], []),
    ],
)
def test_workflows_are_judged_as_far_as_levels_are_known(
    shelf: SampleFolder, words: str, faults: list[str], warnings: list[str]
) -> None:
    pools = "p: {topology_keys: [{key: rack, label: r}]}, q: {}"
    shelf.file("config.yaml", f"backends: {{b: {{scheduler: local, cluster: x}}}}\npools: {{{pools}}}\n")
    shelf.file("named.yaml", workflow(1).replace("name: wf", "name: wf\n  pool: nobody"))
    shelf.file("flow.yaml", workflow(1).replace("name: wf", "name: wf\n  pool: p"))
    shelf.file("typo.yaml", workflow(1).replace("image", "imge"))
    shelf.file("set.yaml", workflow(1).replace("name: wf", "name: '{{ name }}'"))
    done, said = judged(shelf, words)
    assert ([each["code"] for each in said["errors"]], codes(said)) == (faults, warnings)
    assert done.code == (3 if faults else 0)
    assert all(each["file"] and each["line"] for each in said["errors"])


def test_files_of_other_kinds_are_passed_over_with_a_word(shelf: SampleFolder) -> None:
    shelf.file("config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
    shelf.file("empty.json", '{"apiVersion": "v1", "kind": "List", "items": []}')
    done, said = judged(shelf, "config.yaml empty.json")
    assert (done.code, codes(said)) == (0, ["KindsIgnored", "NothingToJudge"])
    assert [each["name"] for each in said["files"]] == [None, None]


def test_a_snapshot_of_a_cluster_is_not_said_to_be_valid(shelf: SampleFolder) -> None:
    items = [{"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}} for kind in ("Node", "Pod", "Node")]
    shelf.file("fleet.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    done = call("validate", "fleet.json", cwd=shelf.folder)
    assert (done.code, done.out.splitlines()[-1]) == (0, "1 file, 0 objects: nothing to validate; 0 faults, 1 warning.")
    assert "ignored: 2 Node, 1 Pod; nodes and pods are a snapshot of a cluster" in done.err
    assert "--cluster" in done.err


def test_one_torn_file_does_not_hide_what_is_wrong_with_others(shelf: SampleFolder) -> None:
    shelf.file("torn.yaml", "apiVersion: grove.io/v1alpha1\nkind: [\n")
    shelf.file("several.yaml", text(packed("rak"), dynamo.changed(dynamo.beta(), put("spec.replica", 1))))
    _, said = judged(shelf, "torn.yaml several.yaml topology.yaml")
    assert [len(each["errors"]) for each in said["files"]] == [1, 1, 1, 0]


@pytest.mark.slow("starts processes at a terminal and in a pipe")
def test_a_terminal_gets_colours_and_a_pipe_does_not(shelf: SampleFolder) -> None:
    file = shelf.folder / "bad.yaml"
    seen = on_terminal("validate", file, shelf.folder / "topology.yaml")
    assert seen.code == 3
    assert "\x1b[31m1 fault\x1b[0m" in seen.out
    assert "╷" in seen.out
    piped = spawn("validate", file, shelf.folder / "topology.yaml")
    assert (piped.code, escapes(piped.out + piped.err)) == (3, [])


def test_names_cannot_drive_the_terminal(shelf: SampleFolder) -> None:
    evil = "\x1b]0;owned\x07"
    shelf.file("evil.yaml", text(changed(packed(), assigned("spec.template.cliques.0.name", evil))))
    for output in ("table", "json", "yaml", "name"):
        done = call("validate", "evil.yaml", "topology.yaml", "-o", output, cwd=shelf.folder)
        assert done.code == 3
        assert escapes(done.out + done.err) == []


def test_the_page_lists_the_options_and_no_others() -> None:
    page = (ROOT / "docs/validate.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(--[a-z-]+) ?[^`]*`(?:, `-\w`)? \| ", page, re.MULTILINE))
    real = set(re.findall(r"(--[a-z-]+)", call("validate", "--help").out.partition("Options:")[2]))
    assert documented == real - {"--help"}


@pytest.mark.slow("runs a shell script of the documentation, with git and several processes")
def test_the_step_of_the_documentation_judges_what_a_branch_changes(tmp_path: Path) -> None:
    """The script of the page, in a repository whose main branch has a deployment that a branch changes wrongly."""
    page = (ROOT / "docs/validate.md").read_text(encoding="utf-8")
    [step] = [block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "run:" in block]
    script = yaml.safe_load(step)["steps"][-1]["run"]
    (tmp_path / "deploy").mkdir()
    (tmp_path / "cluster").mkdir()
    (tmp_path / "bin").mkdir()
    own = tmp_path / "bin" / "coterie"
    own.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m coterie "$@"\n', encoding="utf-8")
    own.chmod(0o755)
    program = shutil.which("git")
    assert program
    example = EXAMPLES / "11-multinode-worker"
    (tmp_path / "cluster" / "topology.yaml").write_bytes((example / "topology.yaml").read_bytes())

    def git(*words: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run([program, *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    def commit(file: Path) -> None:
        (tmp_path / "deploy" / "wide.yaml").write_bytes(file.read_bytes())
        git("add", ".")
        git("commit", "--allow-empty", "-m", "change")

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", script],
            cwd=tmp_path,
            env=environment(PATH=f"{own.parent}:{os.environ['PATH']}"),
            capture_output=True,
            text=True,
            check=False,
        )

    git("init", "-b", "main")
    commit(example / "deployment.yaml")
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    assert run().returncode == 0
    commit(EXAMPLES / "validate" / "update.yaml")
    done = run()
    assert done.returncode == 3
    assert "minAvailable of clique" in done.stderr
    (tmp_path / "deploy" / "new.yaml").write_bytes((EXAMPLES / "09-scaling-groups" / "podcliqueset.yaml").read_bytes())
    commit(example / "deployment.yaml")
    assert run().returncode == 0


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ('command: ["{{input:7}}"]', "{{input:7}} is not an input"),
        ('command: ["{{host:zz}}"]', "{{host:zz}} names no task"),
        ("command: [x], files: [{path: /a, contents: x}, {path: /a/b, contents: x}]", "a folder of the file"),
    ],
)
def test_a_workflow_that_no_backend_runs_is_refused_by_every_command(
    desk: SampleFolder, fields: str, words: str
) -> None:
    flow = desk.file("w.yaml", f"workflow:\n  name: w\n  tasks:\n  - {{name: t, image: i, {fields}}}\n")
    commands = (("validate", flow), ("plan", flow, "--cluster", desk.cluster), ("run", flow, "--cluster", desk.cluster))
    answers = [call(*each, "-o", "json") for each in commands]

    assert [done.code for done in answers] == [3, 3, 3]
    for done in answers:
        [fault] = json.loads(done.out)["errors"]
        assert words in fault["message"]
        assert (fault["code"], fault["file"], fault["line"]) == ("InvalidSpec", str(flow), 4)
