"""A constraint tree comes back from its annotation, and a damaged annotation is a fault, never a crash."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.backends.shared.constraint_annotation import Recorded, read, write
from coterie.errors import SpecErrors
from coterie.gang.tree import Gang, Group, Shape, Task
from tests.property.worlds.random_worlds import EngineQuestion, small_worlds


def without_shapes(gang: Gang) -> Gang:
    def plain(tasks: tuple[Task, ...]) -> tuple[Task, ...]:
        return tuple(replace(task, shape=Shape()) for task in tasks)

    def below(group: Group) -> Group:
        return replace(group, tasks=plain(group.tasks), groups=tuple(map(below, group.groups)))

    return Gang(gang.name, tuple(map(below, gang.groups)), plain(gang.tasks))


@settings(deadline=None)
@given(small_worlds())
def test_a_tree_comes_back_from_its_annotation(world: EngineQuestion) -> None:
    assert read(write(world.gang, world.topology)) == Recorded(without_shapes(world.gang), world.topology)


GOOD: dict[str, Any] = {
    "version": 1,
    "gang": "g",
    "levels": [{"key": "zone", "label": "z"}, {"key": "rack", "label": "r"}],
    "tasks": ["a", "b"],
    "groups": [
        {"level": "zone", "group": "x", "required": True, "groups": [
            {"level": "rack", "group": "y", "required": False, "tasks": [0]},
        ]},
    ],
}  # fmt: skip


def test_a_good_annotation_is_read() -> None:
    found = read(json.dumps(GOOD)).gang

    assert [task.name for task in found.tasks] == ["b"]
    assert [(group.path[-1], group.required) for group in found.walk()] == [
        (("zone", "x"), True),
        (("rack", "y"), False),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "damaged"),
        ("[]", '"version" is missing'),
        ("[" * 100_000, "damaged"),
        (json.dumps({**GOOD, "version": 2}), "its version is 2"),
        (json.dumps({**GOOD, "tasks": ["a", "a"]}), "task names are not distinct"),
        (json.dumps({**GOOD, "tasks": [1]}), "task names are not distinct"),
        (json.dumps({**GOOD, "levels": [{"key": "zone", "label": ""}]}), "not a node label"),
        (json.dumps({**GOOD, "levels": []}), '"zone" is not one of its levels'),
        (json.dumps({**GOOD, "tasks": []}), "0 is not the number of a task"),
        (json.dumps({**GOOD, "levels": GOOD["levels"][::-1]}), "rack is coarser than zone"),
    ],
)
def test_a_damaged_annotation_is_a_fault(text: str, expected: str) -> None:
    with pytest.raises(SpecErrors, match=expected):
        read(text)


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_json_is_read_or_refused(data: object) -> None:
    _refused_or_read(lambda: read(json.dumps(data)))


@settings(deadline=None)
@given(st.data())
def test_any_change_to_a_good_annotation_is_read_or_refused(data: st.DataObject) -> None:
    changed = json.loads(json.dumps(GOOD))
    spot = data.draw(st.sampled_from([changed, changed["groups"][0], changed["groups"][0]["groups"][0]]))
    key = data.draw(st.sampled_from(list(spot)))
    spot[key] = data.draw(
        st.none() | st.booleans() | st.integers(-1, 3) | st.text(max_size=3) | st.lists(st.integers(-1, 3))
    )

    _refused_or_read(lambda: read(json.dumps(changed)))


def _refused_or_read(call: Callable[[], object]) -> None:
    with suppress(SpecErrors):
        call()
