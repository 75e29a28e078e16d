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
# Tokens in the texts of these fields name tasks and inputs, and are unreliable where those are faulty.
_TEXTS = frozenset({"command", "args", "environment", "files"})
_NAMED = frozenset({"name", "tasks", "groups", "inputs", "task", "url"})


def follows_from(fault: Fault, gone: Iterable[Path]) -> bool:
    """Return whether a fault concerns a repaired value."""
    said = fault.path
    if said[-1] != "path" and not _TEXTS.isdisjoint(said) and any(_kind(path) in _NAMED for path in gone):
        return True
    return overlaps(said, gone) or any(said[-1] in _TIED.get(_kind(path), ()) for path in gone)


def _kind(path: Path) -> str:
    # Nothing refers to the workflow's own name, and the name of a resource spec is a key chosen by the user.
    if path == ("workflow", "name"):
        return ""
    if "resources" in path[-2:]:
        return "resources"
    return str(next(step for step in reversed(path) if isinstance(step, str)))
