"""Faults of a workflow that are only consequences of repaired fields."""

from __future__ import annotations

from collections.abc import Iterable

from coterie.document.located import Path
from coterie.document.repair import overlaps
from coterie.errors import Fault

# Faults of the field on the right are unreliable where a field on the left is faulty.
_TIED = {
    "name": ("task",),
    "tasks": ("task", "name"),
    "groups": ("task", "name"),
    "lead": ("lead", "name"),
    "resources": ("resource",),
}


def follows_from(fault: Fault, gone: Iterable[Path]) -> bool:
    """Return whether a fault concerns a repaired value."""
    said = fault.path
    return overlaps(said, gone) or any(said[-1] in _TIED.get(_kind(path), ()) for path in gone)


def _kind(path: Path) -> str:
    # Nothing refers to the workflow's own name, and the name of a resource spec is a key chosen by the user.
    if path == ("workflow", "name"):
        return ""
    if "resources" in path[-2:]:
        return "resources"
    return str(next(step for step in reversed(path) if isinstance(step, str)))
