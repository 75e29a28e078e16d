"""Container paths, replaced by those of the folder in which a task runs.

A task's folder has `files`, in which each file keeps its whole path; `output`, which later tasks read; `inputs`, for
those that no task fills; `work`, in which the command starts; and `tmp`.

Commands run without a container, so that `/tmp/run.sh` would be a file of this machine. Where the whole path of a file,
of an input, of the output or of a mount stands in the command, in a variable or in a text file, it is replaced by the
true one. A path that a program puts together as it runs is not; `COTERIE_FILES` and `COTERIE_OUTPUT` serve for that.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from coterie.backends.local.work_order import WorkOrder
from coterie.errors import UsageError
from coterie.frontends.workflow.tokens import OUTPUT

# Characters that a path may not touch, or it is part of a longer one: /tmp/run.sh in /tmp/run.sh.old or in
# /my/tmp/run.sh.
_BEFORE = r"(?<![\w./~})-])"
_AFTER_FOLDER = r"(?![\w~-]|\.\w)"
_AFTER_FILE = r"(?![\w/~-]|\.\w)"


def check_root(root: Path, advice: str = "Choose one") -> None:
    """Raise `UsageError` for a folder whose path cannot be used in commands unchanged."""
    if shlex.quote(str(root)) != str(root):
        hint = f'{advice} of letters, digits, "-", "_" and "." alone: it becomes part of commands.'
        raise UsageError(f'the folder "{root}" cannot be used for running tasks', hint)


def translation(order: WorkOrder, root: str) -> Callable[[str], str]:
    """Return the replacement of an order's paths wherever they stand alone; of two matches, the longer one."""
    home = f"{root}/{order.key.path}"
    files = {path: f"{home}/files{path}" for path, _ in order.files}
    inputs = {
        path: f"{home}/inputs{path}" if source is None else f"{root}/{source.path}/output"
        for path, source in order.inputs.items()
    }
    known = {**order.mounts, OUTPUT: f"{home}/output", **inputs, **files}
    longest = sorted(known, key=len, reverse=True)
    choices = (re.escape(path) + (_AFTER_FILE if path in files else _AFTER_FOLDER) for path in longest)
    pattern = re.compile(f"{_BEFORE}(?:{'|'.join(choices)})")
    # The list of hosts is as long as the group is large, and has no path in it.
    return lambda text: pattern.sub(lambda found: known[found[0]], text) if "/" in text else text


def translated(order: WorkOrder, root: str) -> WorkOrder:
    """Return the order with real paths in its command, its environment and its text files."""
    fill = translation(order, root)
    return replace(
        order,
        command=tuple(map(fill, order.command)),
        environment={name: fill(value) for name, value in order.environment.items()},
        files=tuple((path, fill(body) if isinstance(body, str) else body) for path, body in order.files),
    )
