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
from tests.cli.command import ROOT

HELLO = ROOT / "examples" / "00-hello-rack"
FILES = {
    FileKind.WORKFLOW: HELLO / "workflow.yaml",
    FileKind.CONFIGURATION: ROOT / "examples" / "coterie.yaml",
    FileKind.CLUSTER: HELLO / "cluster.yaml",
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
    if given is wanted:
        return
    with pytest.raises(SpecErrors) as caught:
        READERS[wanted](FILES[given].read_bytes(), "file.yaml")
    (fault,) = caught.value.faults

    assert fault.message == f"this is {given}, not {wanted}"
    assert fault.hint
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

    assert fault.message == "this is an error instead of a cluster: nodes is forbidden"
    assert "may list nodes and pods" in fault.hint
