"""Which faults of a workflow are only consequences of fields that had to be mended before rules could be asked."""

from __future__ import annotations

from collections.abc import Iterable

from coterie.document.located import Path
from coterie.document.repair import meets
from coterie.errors import Fault

# What rules say of the field on the right is not known where one on the left is faulty.
_TIED = {
    "name": ("task",),
    "tasks": ("task", "name"),
    "groups": ("task", "name"),
    "lead": ("lead", "name"),
    "resources": ("resource",),
}


def follows_from(fault: Fault, gone: Iterable[Path]) -> bool:
    """Tell whether a rule looked at something that was mended."""
    said = fault.path
    return meets(said, gone) or any(said[-1] in _TIED.get(_kind(path), ()) for path in gone)


def _kind(path: Path) -> str:
    # Nobody refers to the workflow's own name, and a resource spec has one of the user's choice.
    if path == ("workflow", "name"):
        return ""
    if "resources" in path[-2:]:
        return "resources"
    return str(next(step for step in reversed(path) if isinstance(step, str)))
