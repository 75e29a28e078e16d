"""The constraint tree as an annotation of its PodGroup, so that a snapshot of a cluster suffices for an audit.

Folding loses information that an audit needs: group names, preferences that a requirement implies, levels by name. The
annotation keeps the tree as the user defined it. Task names are listed once, in the user's order; groups refer to them
by number.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from coterie.errors import Fault, SpecErrors
from coterie.gang.tree import Gang, Group, Path, Shape, Task
from coterie.topology.levels import Topology, level_faults

ANNOTATION = "coterie.dev/constraints"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Recorded:
    """A tree that was read back; shapes are not part of it, so all of them are empty."""

    gang: Gang
    topology: Topology


class _Broken(Exception):  # noqa: N818 - never leaves this module
    """Raised where the text of an annotation is not in the format of `write`."""


def write(gang: Gang, topology: Topology) -> str:
    """Return the annotation of a gang, compact JSON."""
    names = gang.all_tasks()
    number = {task.name: index for index, task in enumerate(names)}

    def group(found: Group) -> dict[str, Any]:
        level, name = found.path[-1]
        return {
            "level": level,
            "group": name,
            "required": found.required,
            **({"groups": [group(below) for below in found.groups]} if found.groups else {}),
            **({"tasks": [number[task.name] for task in found.tasks]} if found.tasks else {}),
        }

    data = {
        "version": VERSION,
        "gang": gang.name,
        "levels": [{"key": level.name, "label": level.label} for level in topology.levels],
        "tasks": [task.name for task in names],
        "groups": [group(found) for found in gang.groups],
        **({"wanted": wanted} if (wanted := [number[task.name] for task in names if not task.needed]) else {}),
        **({"follows": gang.follows} if gang.follows else {}),
    }
    return json.dumps(data, separators=(",", ":"))


def read(text: str) -> Recorded:
    """Return the tree in an annotation; raise `SpecErrors` for an invalid one, since users can edit annotations."""
    try:
        return _recorded(json.loads(text))
    except (ValueError, RecursionError, _Broken) as error:
        message = f"the annotation {ANNOTATION} is damaged: {error}"
        hint = "It is written with the PodGroup and not meant to be edited; render the workflow again."
        raise SpecErrors([Fault(message, hint=hint)]) from None


def _recorded(data: object) -> Recorded:
    if (version := _field(data, "version", int)) != VERSION:
        raise _Broken(f"its version is {version}, and only {VERSION} is known")
    pairs = [(_field(level, "key", str), _field(level, "label", str)) for level in _field(data, "levels", list)]
    if pairs and (faults := level_faults(pairs)):
        raise _Broken(faults[0].message)
    topology = Topology.of(*pairs)
    names = _field(data, "tasks", list)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise _Broken("task names are not distinct")
    wanted = _field(data, "wanted", list, ())
    tasks = [Task(name, Shape(), rank, needed=rank not in wanted) for rank, name in enumerate(names)]
    left = dict(enumerate(tasks))
    groups = tuple(_group(found, (), topology, left) for found in _field(data, "groups", list))
    follows = _field(data, "follows", str, "")
    return Recorded(Gang(_field(data, "gang", str), groups, tuple(left.values()), follows), topology)


def _group(data: object, above: Path, topology: Topology, left: dict[int, Task]) -> Group:
    level = _field(data, "level", str)
    if level not in topology.names:
        raise _Broken(f'"{level}" is not one of its levels')
    if above and topology.index(level) < topology.index(above[-1][0]):
        raise _Broken(f"{level} is coarser than {above[-1][0]}")
    path = (*above, (level, _field(data, "group", str)))
    return Group(
        path,
        _field(data, "required", bool),
        tuple(_group(below, path, topology, left) for below in _field(data, "groups", list, ())),
        tuple(_taken(number, left) for number in _field(data, "tasks", list, ())),
    )


def _taken(number: object, left: dict[int, Task]) -> Task:
    if type(number) is not int or number not in left:
        raise _Broken(f"{number!r} is not the number of a task, or is used twice")
    return left.pop(number)


def _field(data: object, name: str, kind: type, otherwise: Sequence[Any] | None = None) -> Any:  # noqa: ANN401 - of that kind
    found = data.get(name, otherwise) if isinstance(data, dict) else None
    if type(found) is kind or (found is otherwise and otherwise is not None):
        return found
    raise _Broken(f'"{name}" is missing or has the wrong type')
