"""The files beside a workflow file that are submitted with it."""

from __future__ import annotations

import sys
from pathlib import Path

from coterie.errors import CoterieError, Fault, SpecErrors, UsageError
from coterie.frontends.workflow.read import Workflow, located
from coterie.sources.limits import read_bytes


def local_files(file: str, workflow: Workflow, *, limit: int) -> dict[str, bytes]:
    """Return every `localpath` of a workflow, each up to a size limit; all faults are reported together."""
    folder = Path.cwd() if file == "-" else Path(file).parent
    found: dict[str, bytes] = {}
    faults: dict[str, Fault] = {}
    for member in (member for team in workflow.teams for member in team.members):
        for number, each in enumerate(member.spec.files):
            name = each.localpath
            if name is None or name in found or name in faults:
                continue
            try:
                found[name] = _inside(folder, name, limit)
            except CoterieError as error:
                path = (*member.path, "files", number, "localpath")
                faults[name] = Fault(f"localpath: {error}", path=path, hint=error.hint)
    if faults:
        raise SpecErrors(located(list(faults.values()), workflow.document))
    return found


def _inside(folder: Path, name: str, limit: int) -> bytes:
    """Return a file below a folder; a link that leads out of it is refused, since the workflow may not be trusted."""
    target = folder / name
    try:
        outside = not target.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        outside = False  # reading it reports the fault
    if outside:
        raise UsageError(f"{name} leads out of the folder of the workflow file", "Copy the file into the folder.")
    return read_bytes(str(target), sys.stdin.buffer, limit=limit)
