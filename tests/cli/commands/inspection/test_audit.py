"""`coterie audit`: its output and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from coterie.kube.api import Api
from coterie.sources import live
from tests.cli.command import ROOT, call, escapes, spawn
from tests.kube.faulty_transport import answer, api, status

SNAPSHOT = ROOT / "examples/audit/snapshot.json"
DOCUMENT = json.loads(SNAPSHOT.read_bytes())

Json = dict[str, Any]


def without(drop: Callable[[Json], bool]) -> bytes:
    """Return the snapshot without some objects."""
    return json.dumps({**DOCUMENT, "items": [item for item in DOCUMENT["items"] if not drop(item)]}).encode()


def of(*workloads: str) -> bytes:
    """Return the snapshot with the gangs of some workloads only."""
    return without(
        lambda item: item["kind"] != "Node" and item["metadata"]["labels"]["coterie.dev/workflow"] not in workloads
    )


def changed(kind: str, name: str, **fields: Any) -> bytes:
    """Return the snapshot with other metadata in one object."""
    items = [
        {**item, "metadata": {**item["metadata"], **fields}}
        if (item["kind"], item["metadata"]["name"]) == (kind, name)
        else item
        for item in DOCUMENT["items"]
    ]
    return json.dumps({**DOCUMENT, "items": items}).encode()


def test_every_gang_is_shown_with_its_tree_and_the_last_line_counts() -> None:
    done = call("audit", SNAPSHOT)

    assert done.code == 7
    assert '    x   rack group "model-1"  required  VIOLATED  a/r2: model1-task0 on n3; a/r7: model1-task1 on n4' in (
        done.out.splitlines()
    )
    assert done.out.splitlines()[-1] == (
        "4 gangs (3 running, 1 waiting), 7 constraints: 3 held, 1 missed, 1 VIOLATED, 2 unobservable."
    )
    assert done.err == ""


@pytest.mark.parametrize(
    ("workloads", "code"),
    [(("finetune",), 0), (("sweep",), 0), (("finetune", "sweep"), 0), (("eval", "finetune"), 6), (("pretrain",), 7)],
)
def test_the_exit_code_is_that_of_the_worst(workloads: tuple[str, ...], code: int) -> None:
    assert call("audit", "-", stdin=of(*workloads)).code == code


def test_an_incomplete_gang_exits_6_and_says_what_it_lacks() -> None:
    text = json.loads(of("finetune"))
    text["items"] = [item for item in text["items"] if item["metadata"]["name"] != "finetune-t1"]

    done = call("audit", "-", stdin=json.dumps(text).encode())

    assert done.code == 6
    assert done.out.startswith("? finetune/tuning   incomplete, 1 of 2 tasks placed")
    assert "    1 of 2 needed tasks does not run: t1\n" in done.out


def test_wide_lists_the_tasks() -> None:
    assert "    t1    finetune-t1  n8    b     r4\n" in call("audit", SNAPSHOT, "-o", "wide").out


def test_name_lists_the_pod_groups() -> None:
    assert call("audit", SNAPSHOT, "-o", "name").out.splitlines()[0] == "team-a/eval-scoring-c3d9e2a0"


def test_json_and_yaml_say_the_same() -> None:
    found = json.loads(call("audit", SNAPSHOT, "-o", "json").out)

    assert yaml.safe_load(call("audit", SNAPSHOT, "-o", "yaml").out) == found
    assert found["version"] == 1
    assert found["summary"]["violated"] == 1
    assert [gang["workload"] for gang in found["gangs"]] == ["eval", "finetune", "pretrain", "sweep"]


def test_a_snapshot_whose_pod_groups_were_left_out_is_refused_with_the_right_command() -> None:
    done = call("audit", "-", stdin=without(lambda item: item["kind"] == "PodGroup"))

    assert done.code == 3
    assert "10 pods in it belong to PodGroups, but there are no PodGroups in it" in done.err
    assert "kubectl get nodes,pods,podgroups.scheduling.run.ai,topologies.kai.scheduler -A -o json" in done.err


def test_a_cluster_file_is_refused_with_the_right_command() -> None:
    done = call("audit", "examples/refusals/cluster.yaml")

    assert done.code == 3
    assert "podgroups.scheduling.run.ai" in done.err


def test_a_cluster_without_gangs_has_nothing_wrong_and_a_warning_says_so() -> None:
    done = call("audit", "-", stdin=without(lambda item: item["kind"] != "Node"))

    assert done.code == 0
    assert done.out == "0 gangs, 0 constraints: 0 held, 0 missed, 0 VIOLATED, 0 unobservable.\n"
    assert "warning[NoPodGroups]" in done.err


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"kind":"List","items":3}', b"nodes: []", b"\xff"])
def test_bad_input_is_said_without_a_traceback(text: bytes) -> None:
    done = call("audit", "-", stdin=text)

    assert done.code == 3
    assert done.err
    assert "Traceback" not in done.err
    assert "errors" in json.loads(call("audit", "-", "-o", "json", stdin=text).out)


def test_names_cannot_drive_the_terminal() -> None:
    labels = {"coterie.dev/workflow": "\x1b[31mred\nline"}
    text = changed("PodGroup", "finetune-tuning-88ab01e4", labels=labels)

    for output in ("table", "wide", "name", "json", "yaml"):
        assert not escapes(call("audit", "-", "-o", output, stdin=text).out)


def test_a_damaged_record_is_one_line_and_not_an_error() -> None:
    text = changed("PodGroup", "finetune-tuning-88ab01e4", annotations={"coterie.dev/constraints": "{"})

    done = call("audit", "-", "-o", "wide", stdin=text)

    assert "(not read)" in done.out
    assert "the annotation coterie.dev/constraints is damaged" in done.out


def test_the_program_takes_a_pipe() -> None:
    done = spawn("audit", "-", stdin=SNAPSHOT.read_bytes())

    assert done.code == 7
    assert done.out == call("audit", SNAPSHOT).out


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that plays a live cluster with the objects of the snapshot."""

    def play(*, kai: bool = True) -> None:
        kinds = {"nodes": "Node", "pods": "Pod", **({"podgroups": "PodGroup"} if kai else {})}

        def handler(request: httpx2.Request) -> httpx2.Response:
            kind = kinds.get(request.url.path.rpartition("/")[2])
            items = [item for item in DOCUMENT["items"] if item["kind"] == kind]
            return answer({"items": items, "metadata": {"resourceVersion": "9"}}) if kind else status(404)

        def connect(context: str, **_: Any) -> Api:
            assert context == "lab"
            return api(handler)

        monkeypatch.setattr(live, "connect", connect)

    return play


def test_a_live_cluster_is_audited_as_its_snapshot_is(played: Callable[..., None]) -> None:
    played()

    done = call("audit", "context:lab")

    assert (done.code, done.out) == (7, call("audit", SNAPSHOT).out)


def test_a_cluster_without_kai_is_told_what_to_install(played: Callable[..., None]) -> None:
    played(kai=False)

    done = call("audit", "context:lab")

    assert done.code == 4
    assert "podgroups.scheduling.run.ai" in done.err
    assert "Install KAI Scheduler" in done.err


def test_a_context_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = call("audit", "context:nowhere", KUBECONFIG=str(tmp_path / "none"))

    assert done.code in {2, 4}
    assert "Traceback" not in done.err
