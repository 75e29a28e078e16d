"""Short forms of the names in a service's answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from coterie.topology.abbreviations import Abbreviations

Json = dict[str, Any]


def short_names(groups: Iterable[Json], *, wide: bool) -> Abbreviations:
    """Return the short forms of the domains and nodes that some groups name; none where `wide`."""
    if wide:
        return Abbreviations()
    found = list(groups)
    kinds: dict[int, set[str]] = {}
    for group in found:
        for path in _domains(group):
            for depth, value in enumerate(path):
                if value is not None:
                    kinds.setdefault(depth, set()).add(value)
    return Abbreviations(*kinds.values(), {node for group in found for node in _nodes(group)})


def _domains(group: Json) -> Iterator[Sequence[str | None]]:
    refusal = group.get("refusal") or {}
    for one in (*refusal.get("best", ()), *refusal.get("holders", ())):
        yield one["domain"] or ()
    for one in group.get("constraints", ()):
        yield from one["domains"]
    for choice in group.get("alternatives") or ():
        yield from (one["domain"] for one in choice["domains"])
    for task in group.get("tasks", ()):
        yield list((task.get("domains") or {}).values())


def _nodes(group: Json) -> Iterator[str]:
    for one in (*(group.get("assignments") or ()), *group.get("tasks", ())):
        if one["node"]:
            yield one["node"]
