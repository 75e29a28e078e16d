"""Gangs in a few lines.

    place train: required=zone
      model-1: 4 x 8gpu required=rack preferred=clique
      helper:  1 x 4cpu + 2 x nothing

A line below another is part of it. Its constraint holds for its own tasks and those of the lines below; its name is
the name of the group, which on the first line is `default`. `excluding=NODE,…` and `tolerating=TAINT` hold for a line
and those below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coterie.gang.rules import Asked, Requirement, build
from coterie.gang.tree import Gang, Path, Shape, Toleration
from coterie.topology.cluster import CPU, GPU
from coterie.topology.levels import Topology

_HEAD = re.compile(r"(?P<indent> *)(?P<name>[\w./-]+):(?P<body>.*)")
_PART = re.compile(r"(?:(\d+) x )?(\S+)")
_AMOUNT = re.compile(r"(\d+)(gpu|cpu)")


@dataclass(frozen=True)
class Part:
    """A line of a gang: the constraints that it adds, and its own tasks."""

    name: str
    constraints: tuple[Path, ...]
    tasks: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """A gang to place, line by line and as a tree."""

    gang: Gang
    parts: tuple[Part, ...]
    budget: int | None = None


@dataclass(frozen=True)
class _Above:
    indent: int
    names: tuple[str, ...]
    wants: tuple[Requirement, ...]
    options: dict[str, str]


def ask(lines: Sequence[str], topology: Topology) -> Question:
    """Read the lines of a gang, the first of which begins with its name."""
    asked: list[Asked] = []
    parts: list[Part] = []
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
            (Requirement(own[kind], group, kind == "required") for kind in ("required", "preferred") if kind in own),
            key=lambda one: topology.index(one.key),
        )
        wants = (*above.wants, *new)
        options = {**above.options, **{key: value for key, value in own.items() if key in {"excluding", "tolerating"}}}
        names = (*above.names, name) if stack else ()
        stack.append(_Above(indent, names, wants, options))
        shapes = list(_shapes(" ".join(word for word in words if "=" not in word), options))
        stem = "/".join(names) or name
        tasks = [Asked(f"{stem}-{number}", shape, wants) for number, shape in enumerate(shapes)]
        asked.extend(tasks)
        path = tuple((one.key, one.group) for one in wants)
        constraints = tuple(path[: len(above.wants) + depth + 1] for depth in range(len(new)))
        parts.append(Part(name, constraints, tuple(task.name for task in tasks)))
    gang = lines[0].partition(":")[0]
    budget = re.search(r"\bbudget=(\d+)", lines[0])
    return Question(build(gang, asked, topology), tuple(parts), int(budget[1]) if budget else None)


def _shapes(text: str, options: dict[str, str]) -> Iterator[Shape]:
    excluded = frozenset(filter(None, options.get("excluding", "").split(",")))
    tolerations = tuple(Toleration(key, "Exists") for key in filter(None, [options.get("tolerating", "")]))
    for part in filter(None, text.split(" + ")):
        found = _PART.fullmatch(part.strip())
        if not found:
            raise ValueError(f"not a number of tasks: {part}")
        amounts = {}
        for amount in found[2].split(",") if found[2] != "nothing" else ():
            sized = _AMOUNT.fullmatch(amount)
            if not sized:
                raise ValueError(f"not an amount: {amount}")
            amounts[GPU if sized[2] == "gpu" else CPU] = int(sized[1]) * (1 if sized[2] == "gpu" else 1000)
        shape = Shape(tuple(sorted(amounts.items())), tolerations=tolerations, excluded=excluded)
        for _ in range(int(found[1] or 1)):
            yield shape
