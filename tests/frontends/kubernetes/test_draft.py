"""Objects with a faulty field are judged without it, and consequences of the fault are not reported."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from coterie.errors import Fault
from coterie.frontends.dynamo.read import read_graph
from coterie.frontends.dynamo.rules import admission as graph_rules
from coterie.frontends.grove.podcliqueset.read import read_podcliqueset
from coterie.frontends.grove.podcliqueset.rules import admission as set_rules
from coterie.frontends.kubernetes.draft import draft, independent
from coterie.frontends.kubernetes.objects import Resource, resource_of
from tests.frontends.dynamo import objects as dynamo
from tests.frontends.grove.objects import LEVELS, changed, constrained, standard

Data = dict[str, Any]
Judge = Callable[[Resource], tuple[list[Fault], list[Fault]]]

JUNK: tuple[Any, ...] = ([[{}]], None, "", -1.5)


def packed() -> Data:
    return changed(
        standard(),
        constrained("set", {"topologyName": "t", "pack": {"required": "zone"}}),
        constrained("a", {"pack": {"required": "rack"}}),
    )


def judge_set(resource: Resource) -> tuple[list[Fault], list[Fault]]:
    own, mended = draft(resource, read_podcliqueset)
    if mended is None:
        return [*own], []
    found = set_rules.create_faults(mended.content, {"t": LEVELS})
    return [*own], independent(found, mended.gone)


def judge_graph(resource: Resource) -> tuple[list[Fault], list[Fault]]:
    own, mended = draft(resource, read_graph)
    if mended is None:
        return [*own], []
    found = graph_rules.create_faults(mended.content, {"t": dynamo.LEVELS})
    return [*own], independent(found, mended.gone)


OBJECTS: dict[str, tuple[Data, Judge]] = {
    "set": (packed(), judge_set),
    "beta": (dynamo.beta(), judge_graph),
    "alpha": (dynamo.alpha(), judge_graph),
}


def everywhere(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, below in entries:
        yield from everywhere(below, (*path, step))


PLACES = [
    pytest.param(name, ("spec", *path), id=f"{name}-{'.'.join(map(str, path))}")
    for name, (data, _) in OBJECTS.items()
    for path in everywhere(data["spec"])
]


@pytest.mark.parametrize(("name", "path"), PLACES)
def test_one_faulty_field_brings_no_fault_that_is_not_its_own(name: str, path: tuple[str | int, ...]) -> None:
    whole, judge = OBJECTS[name]
    *above, last = path
    for junk in JUNK:
        data = copy.deepcopy(whole)
        owner: Any = data
        for step in above:
            owner = owner[step]
        owner[last] = junk
        own, further = judge(resource_of(data))
        assert not own or further == [], (junk, own, further)


@pytest.mark.parametrize(("name", "path"), PLACES)
def test_one_misspelt_field_brings_no_fault_that_is_not_its_own(name: str, path: tuple[str | int, ...]) -> None:
    whole, judge = OBJECTS[name]
    *above, last = path
    data = copy.deepcopy(whole)
    owner: Any = data
    for step in above:
        owner = owner[step]
    if isinstance(last, str):
        owner[f"{last[:-1]}x{last[-1]}"] = owner.pop(last)
    own, further = judge(resource_of(data))
    assert not own or further == [], (own, further)


@pytest.mark.parametrize(
    ("name", "at", "fields"),
    [
        ("set", "spec.template.topologyConstraint.pack.required", 2),
        ("beta", "spec.topologyConstraint.packDomain", 2),
        ("alpha", "spec.topologyConstraint.packDomain", 2),
    ],
)
def test_an_unknown_level_is_told_beside_a_faulty_field(name: str, at: str, fields: int) -> None:
    whole, judge = OBJECTS[name]
    data = copy.deepcopy(whole)
    dynamo.put(at, "rak")(data)
    dynamo.put("spec.colour", "red")(data)
    own, further = judge(resource_of(data))
    assert len(own) + len(further) == fields
    assert [fault.code.value for fault in further] == ["UnknownLevel"]
