"""A workflow file with faulty fields, made good enough to be held against the rules between fields.

So faults of both kinds are reported at once. What is put in place of a fault stands for nothing: rules that look at it
say nothing of worth, and what they say there is left out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from coterie.errors import Fault
from coterie.frontends.schema import follows
from coterie.frontends.text import Path
from coterie.frontends.workflow.model import WorkflowFile
from coterie.frontends.workflow.rules import workflow_faults

_ROUNDS = 4
# In place of a field that must be there.
_STAND_INS: dict[str, Any] = {"image": "image", "command": ["command"], "version": 2, "key": "level", "url": "s3://x"}
# What rules say of the field on the right is not known where one on the left is faulty.
_TIED = {
    "name": ("task",),
    "tasks": ("task", "name"),
    "groups": ("task", "name"),
    "lead": ("lead", "name"),
    "resources": ("resource",),
}


def further_faults(data: Any, error: ValidationError) -> list[Fault]:  # noqa: ANN401 - whatever the file holds
    """Return the breaches of rules between fields, as far as the faulty fields leave them to be seen."""
    mended, gone = copy.deepcopy(data), set[Path]()
    for _ in range(_ROUNDS):
        # From the end, so that the numbers of list entries stay true while entries go.
        details = [detail for detail in error.errors(include_url=False) if not follows(detail)]
        for detail in sorted(details, key=_place, reverse=True):
            path = _where(detail)
            gone.add(path)
            if not _mend(mended, path, detail["type"], len(gone)):
                return []
        try:
            model = WorkflowFile.model_validate(mended)
        except ValidationError as left:
            error = left
            continue
        return [fault for fault in workflow_faults(model) if not _touched(fault, gone)]
    return []


def _where(detail: ErrorDetails) -> Path:
    return detail["loc"][:-1] if detail["loc"][-1:] == ("[key]",) else detail["loc"]


def _place(detail: ErrorDetails) -> tuple[tuple[int, str], ...]:
    return tuple((step, "") if isinstance(step, int) else (-1, step) for step in _where(detail))


def _mend(data: Any, path: Path, kind: str, number: int) -> bool:  # noqa: ANN401 - whatever the file holds
    """Put something harmless in place of a fault; tell whether that was possible."""
    if not path:
        return False
    *above, last = path
    for step in above:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return True  # what it stood in is gone already
    if isinstance(data, list):
        # An entry that goes would change the numbers of the others, which stand in the paths of their faults.
        return False
    if not isinstance(data, dict):
        return True
    data.pop(last, None)
    if kind != "extra_forbidden" and last == "name":
        data[last] = f"unnamed-{number}"
    elif kind != "extra_forbidden" and last in _STAND_INS:
        data[last] = _STAND_INS[str(last)]
    return True


def _touched(fault: Fault, gone: Iterable[Path]) -> bool:
    """Tell whether a rule looked at something that was mended."""
    said = fault.path
    return any(
        said[: len(path)] == path or path[: len(said)] == said or said[-1] in _TIED.get(_kind(path), ())
        for path in gone
    )


def _kind(path: Path) -> str:
    # Nobody refers to the workflow's own name, and a resource spec has one of the user's choice.
    if path == ("workflow", "name"):
        return ""
    return "resources" if "resources" in path[-2:] else str(path[-1])
