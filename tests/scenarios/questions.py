"""Gangs in a few lines.

    place train: required=zone
      model-1: 4 x 8gpu required=rack preferred=clique
      helper:  1 x 4cpu + 2 x nothing + wanted 2 x 4cpu
    beside more: required=zone
      model-2: 4 x 8gpu required=rack

A line below another is part of it. Its constraint holds for its own tasks and those of the lines below; its name is
the name of the group, which on the first line is `default`. `excluding=NODE,…` and `tolerating=TAINT` hold for a line
and those below it. What is `wanted` need not be placed. A gang `beside` the first one follows it; a group of the same
level and name is one group in both.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from coterie.gang.rules import RequestedTask, TaskRequirement, build
from coterie.gang.tree import Gang, Group, Path, Shape, Task, Toleration
from coterie.topology.levels import Topology
from tests.scenarios.sketch import UNITS

_HEAD = re.compile(r"(?P<indent> *)(?P<name>[\w./-]+):(?P<body>.*)")
_BESIDE = "beside "
_PART = re.compile(r"(wanted )?(?:(\d+) x )?(\S+)")
_AMOUNT = re.compile(r"(\d+)(gpu|cpu|channel)")


@dataclass(frozen=True)
class QuestionPart:
    """A line of a gang: the constraints that it adds, and its own tasks."""

    name: str
    constraints: tuple[Path, ...]
    tasks: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """A gang to place, line by line and as a tree."""

    gang: Gang
    parts: tuple[QuestionPart, ...]
    budget: int | None = None


@dataclass(frozen=True)
class _Above:
    indent: int
    names: tuple[str, ...]
    wants: tuple[TaskRequirement, ...]
    options: dict[str, str]


def ask_family(lines: Sequence[str], topology: Topology) -> list[Question]:
    """Read a gang and those beside it."""
    starts = [0, *(number for number, line in enumerate(lines) if line.startswith(_BESIDE)), len(lines)]
    first, *others = (lines[start:end] for start, end in pairwise(starts))
    leader = ask(first, topology)
    found = [ask([more[0].removeprefix(_BESIDE), *more[1:]], topology) for more in others]
    return [leader, *(replace(one, gang=replace(one.gang, follows=leader.gang.name)) for one in found)]


def ask(lines: Sequence[str], topology: Topology) -> Question:
    """Read the lines of a gang, the first of which begins with its name."""
    asked: list[RequestedTask] = []
    wanted: set[str] = set()
    parts: list[QuestionPart] = []
    stack: list[_Above] = []
    for line in lines:
        found = _HEAD.fullmatch(line)
        if not found:
            raise ValueError(f"not a part of a gang: {line}")
        indent, name = len(found["indent"]), found["name"]
        while stack and stack[-1].indent >= indent:
            stack.pop()
        above = stack[-1] if stack else _Above(-1, (), (), {})
        words = found["body"].split()
        own = dict(word.partition("=")[::2] for word in words if "=" in word)
        group = name if stack else "default"
        new = sorted(
            (
                TaskRequirement(own[kind], group, kind == "required")
                for kind in ("required", "preferred")
                if kind in own
            ),
            key=lambda one: topology.index(one.key),
        )
        wants = (*above.wants, *new)
        options = {**above.options, **{key: value for key, value in own.items() if key in {"excluding", "tolerating"}}}
        names = (*above.names, name) if stack else ()
        stack.append(_Above(indent, names, wants, options))
        shapes = list(_shapes(" ".join(word for word in words if "=" not in word), options))
        stem = "/".join(names) or name
        tasks = [RequestedTask(f"{stem}-{number}", shape, wants) for number, (shape, _) in enumerate(shapes)]
        asked.extend(tasks)
        wanted |= {task.name for task, (_, needed) in zip(tasks, shapes, strict=True) if not needed}
        path = tuple((one.key, one.group) for one in wants)
        constraints = tuple(path[: len(above.wants) + depth + 1] for depth in range(len(new)))
        parts.append(QuestionPart(name, constraints, tuple(task.name for task in tasks)))
    gang = lines[0].partition(":")[0]
    budget = re.search(r"\bbudget=(\d+)", lines[0])
    return Question(_wanting(build(gang, asked, topology), wanted), tuple(parts), int(budget[1]) if budget else None)


def _wanting(gang: Gang, wanted: Container[str]) -> Gang:
    """Return the gang with some of its tasks not needed."""

    def marked(tasks: tuple[Task, ...]) -> tuple[Task, ...]:
        return tuple(replace(task, needed=task.name not in wanted) for task in tasks)

    def descend(group: Group) -> Group:
        return replace(group, groups=tuple(map(descend, group.groups)), tasks=marked(group.tasks))

    return replace(gang, groups=tuple(map(descend, gang.groups)), tasks=marked(gang.tasks))


def _shapes(text: str, options: dict[str, str]) -> Iterator[tuple[Shape, bool]]:
    """Yield the shape of every task of a line, and whether it is needed."""
    excluded = frozenset(filter(None, options.get("excluding", "").split(",")))
    tolerations = tuple(Toleration(key, "Exists") for key in filter(None, [options.get("tolerating", "")]))
    for part in filter(None, text.split(" + ")):
        found = _PART.fullmatch(part.strip())
        if not found:
            raise ValueError(f"not a number of tasks: {part}")
        amounts = {}
        for amount in found[3].split(",") if found[3] != "nothing" else ():
            sized = _AMOUNT.fullmatch(amount)
            if not sized:
                raise ValueError(f"not an amount: {amount}")
            resource, unit = UNITS[sized[2]]
            amounts[resource] = int(sized[1]) * unit
        shape = Shape(tuple(sorted(amounts.items())), tolerations=tolerations, excluded=excluded)
        for _ in range(int(found[2] or 1)):
            yield shape, not found[1]
