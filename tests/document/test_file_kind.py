"""Files of the wrong kind are named as the kind they are, in one fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from coterie.config.configuration import read_config
from coterie.document.file_kind import FileKind, kind_of
from coterie.errors import SpecErrors
from coterie.frontends.workflow.read import read_workflow
from coterie.planning.inputs import read_snapshot
from coterie.planning.load import read_documents
from tests.cli.command import ROOT

HELLO = ROOT / "examples" / "00-hello-rack"
FILES = {
    FileKind.WORKFLOW: HELLO / "workflow.yaml",
    FileKind.CONFIGURATION: ROOT / "examples" / "coterie.yaml",
    FileKind.CLUSTER: HELLO / "cluster.yaml",
    FileKind.KUBERNETES: ROOT / "examples" / "13-gb200-fleet" / "snapshot.json",
}
READERS: dict[FileKind, Callable[[bytes, str], object]] = {
    FileKind.WORKFLOW: read_workflow,
    FileKind.CONFIGURATION: read_config,
    FileKind.CLUSTER: read_snapshot,
}


@pytest.mark.parametrize("kind", FileKind)
def test_every_example_is_of_its_kind(kind: FileKind) -> None:
    assert kind_of(FILES[kind].read_bytes()) is kind


@pytest.mark.parametrize("given", FileKind)
@pytest.mark.parametrize("wanted", FileKind)
def test_a_file_of_another_kind_is_named_as_such(given: FileKind, wanted: FileKind) -> None:
    if given is wanted or wanted not in READERS or (given, wanted) == (FileKind.KUBERNETES, FileKind.CLUSTER):
        return
    with pytest.raises(SpecErrors) as caught:
        READERS[wanted](FILES[given].read_bytes(), "file.yaml")
    (fault,) = caught.value.faults

    assert fault.message == f"this is {given}, not {wanted}"
    assert fault.hint
    if (given, wanted) == (FileKind.KUBERNETES, FileKind.WORKFLOW):  # submit and run have no such option
        assert "Only workflows are submitted and run." in fault.hint
        assert "`coterie validate`" in fault.hint
    assert fault.place
    assert fault.place.file == "file.yaml"


@pytest.mark.parametrize(
    "text", ["", "spec: 1\n", "workflow: 1\nnodes: []\n", "  workflow: indented\n", "# workflow: a comment\n"]
)
def test_a_file_that_could_be_several_or_none_is_left_to_its_reader(text: str) -> None:
    assert kind_of(text.encode()) is None


def test_an_error_of_kubectl_shows_its_message(tmp_path: Path) -> None:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "nodes is forbidden", "code": 403}
    with pytest.raises(SpecErrors) as caught:
        read_snapshot(json.dumps(status).encode(), str(tmp_path / "snapshot.json"))
    (fault,) = caught.value.faults

    assert fault.message == "this is an error that kubectl printed, not a cluster: nodes is forbidden"
    assert "may list nodes and pods" in fault.hint


@pytest.mark.parametrize("indent", [None, 4])
def test_output_of_kubectl_is_recognised_however_it_is_written(indent: int | None) -> None:
    nodes = {"apiVersion": "v1", "items": [], "kind": "List", "metadata": {"resourceVersion": ""}}

    assert kind_of(json.dumps(nodes, indent=indent).encode()) is FileKind.KUBERNETES
    assert kind_of(b"apiVersion: v1\nitems: []\nkind: List\n") is FileKind.KUBERNETES


def test_an_error_of_kubectl_given_as_a_workload_shows_its_message() -> None:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "not allowed"}
    with pytest.raises(SpecErrors) as caught:
        read_documents(json.dumps(status).encode(), "set.json")

    assert [fault.message for fault in caught.value.faults] == ["this is an error that kubectl printed: not allowed"]
