"""Any mutation of a workflow file results in a workflow or in faults with places."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from coterie.config.configuration import read_config
from coterie.document.located import load
from coterie.document.schema import faults_of
from coterie.errors import Fault
from coterie.frontends.workflow.lower import lower, pool_faults
from coterie.frontends.workflow.model import WorkflowFile
from coterie.frontends.workflow.read import draft_workflow, read_workflow
from tests.config.test_configuration import GOOD
from tests.frontends.mutations import junk, mutated
from tests.frontends.workflow.samples import POOL, refusal
from tests.random_examples import examples

TASK = {
    "name": "b",
    "image": "i",
    "command": ["x"],
    "resource": "r",
    "inputs": [{"task": "a"}],
    "files": [{"path": "/a", "contents": "b"}],
    "exitActions": {"FAIL": "1-2"},
    "environment": {"A": "1"},
    "volumeMounts": ["/a:/b"],
}
VALID: dict[str, Any] = {
    "version": 2,
    "workflow": {
        "name": "w",
        "labels": {"a": "b"},
        "timeout": {"exec_timeout": "10h5m"},
        "resources": {"default": {"cpu": 1, "gpu": 8, "memory": "1Gi", "nodesExcluded": ["n"]}},
        "groups": [
            {"name": "g", "tasks": [{"name": "a", "image": "i", "command": ["x"]}]},
            {
                "name": "h",
                "tasks": [TASK, {"name": "c", "image": "i", "command": ["x"], "lead": True, "resource": "s"}],
            },
        ],
    },
    "resources": {
        "r": {"topology": [{"key": "rack", "group": "g", "requirementType": "preferred"}]},
        "s": {"topology": [{"key": "rack", "group": "g", "requirementType": "preferred"}]},
    },
}

VALUES = junk("a", "default", "rack", "../x", "0-300") | st.recursive(
    st.integers(), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner)
)
FIELDS = ["name", "task", "url", "groups", "tasks", "x", "lead"]


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_mutated_workflow_is_lowered_or_refused(data: st.DataObject) -> None:
    document = mutated(data, VALID, FIELDS, VALUES)
    faults = refusal(lambda: lower(read_workflow(json.dumps(document, indent=1).encode(), "w.yaml"), POOL))
    assert all(fault.place is not None and fault.message for fault in faults)


def test_faults_of_fields_and_of_what_they_say_of_each_other_are_told_at_once() -> None:
    document = copy.deepcopy(VALID)
    first, second = document["workflow"]["groups"][1]["tasks"]
    first.update(comand=["x"], inputs=[{"task": "nobody"}])
    second.update(name="b", image=7.5, resource="r5")
    document["workflow"]["name"] = "no name!"
    text = json.dumps(document, indent=1).encode()
    said = [fault.message for fault in refusal(lambda: read_workflow(text, "w.yaml"))]
    assert len(said) == 6
    for word in ("no name!", "comand", "nobody", 'the name "b"', "image", "r5"):
        assert sum(word in message for message in said) == 1, (word, said)


def _everywhere(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, below in entries:
        yield from _everywhere(below, (*path, step))


@pytest.mark.parametrize("junk", [[[{}]], None, "", -1.5], ids=repr)
@pytest.mark.parametrize("path", list(_everywhere(VALID)), ids=lambda path: ".".join(map(str, path)))
def test_one_faulty_field_brings_no_fault_that_is_not_its_own(path: tuple[str | int, ...], junk: object) -> None:
    document: Any = copy.deepcopy(VALID)
    *above, last = path
    owner = document
    for step in above:
        owner = owner[step]
    owner[last] = junk
    found = _further(document)
    assert [fault.message for fault in found] == []


def _further(document: object) -> list[Fault]:
    """Return what is said of a file with faulty fields beside these: by rules between fields, and by its pool."""
    text = json.dumps(document, indent=1).encode()
    try:
        WorkflowFile.model_validate(document)
    except ValidationError as error:
        shown = load(text.decode(), "w.yaml")
        fields = {(fault.message, fault.path) for fault in faults_of(error, WorkflowFile, shown, lambda *_: "")}
        draft = draft_workflow(text, "w.yaml")
        more = pool_faults(draft.workflow, POOL, draft.gone) if draft.workflow else []
        return [fault for fault in (*draft.faults, *more) if (fault.message, fault.path) not in fields]
    return []


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_mutilated_text_is_read_or_refused(data: st.DataObject) -> None:
    raw = bytearray(GOOD.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.binary(max_size=3) | st.sampled_from([b": ", b"- ", b"\n"])
        )
    assert all(
        fault.place is not None and fault.message for fault in refusal(lambda: read_config(bytes(raw), "coterie.yaml"))
    )


@settings(max_examples=examples(100), deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    assert all(fault.place is not None and fault.message for fault in refusal(lambda: read_workflow(data, "w.yaml")))
