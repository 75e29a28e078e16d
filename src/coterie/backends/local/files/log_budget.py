"""The space that all logs may take: those of the oldest ended workflows are replaced by a note first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from coterie.backends.local.attempt_folder import ENDED
from coterie.backends.local.shim import ownership
from coterie.backends.local.shim.log import TIMES


class LogBudget:
    """The sizes of the logs of archived workflows, in the order in which they ended.

    The logs of running workflows, each of which has a limit of its own, count as `check` last found them, but are never
    removed.
    """

    def __init__(self, root: Path, most: int) -> None:
        self._root, self._ended, self._most = root, root / ENDED, most
        self._sizes: OrderedDict[str, int] | None = None
        # Those of running workflows, measured by `check` alone, because there may be many.
        self._running: dict[str, int] = {}

    def add(self, workflow: str) -> None:
        """Count an archived workflow, and remove the oldest logs while there are too many; errors leave them."""
        with suppress(OSError):
            sizes = self._known()
            sizes.pop(workflow, None)
            self._running.pop(workflow, None)
            sizes[workflow] = self._size(workflow)
            self._make_room(keep=1)

    def check(self) -> None:
        """Remove the oldest logs while there are too many, as those of running workflows grow; errors leave them."""
        with suppress(OSError):
            self._running.clear()
            for path in _logs(self._root, "[!.]*/*/*/*/log"):
                name = path.relative_to(self._root).parts[0]
                self._running[name] = self._running.get(name, 0) + _size(path)
            self._make_room(keep=0)

    def _make_room(self, keep: int) -> None:
        sizes = self._known()
        total = sum(sizes.values()) + sum(self._running.values())
        while total > self._most and len(sizes) > keep:
            oldest, size = sizes.popitem(last=False)
            self._cut(oldest)
            total -= size

    def drop(self, workflow: str) -> None:
        """Count a workflow no more, as it is removed or runs again."""
        if self._sizes is not None:
            self._sizes.pop(workflow, None)

    def _known(self) -> OrderedDict[str, int]:
        if self._sizes is None:
            folders = self._ended.iterdir() if self._ended.exists() else ()
            by_age = sorted(folders, key=lambda folder: folder.lstat().st_ctime)
            self._sizes = OrderedDict((folder.name, self._size(folder.name)) for folder in by_age)
        return self._sizes

    def _logs(self, workflow: str) -> Iterator[Path]:
        return _logs(self._ended / workflow, "*/*/*/log")

    def _size(self, workflow: str) -> int:
        return sum(map(_size, self._logs(workflow)))

    def _cut(self, workflow: str) -> None:
        note = f"[coterie: this log was removed: all logs together may take {self._most:,} bytes]\n"
        for path in self._logs(workflow):
            if path.stat().st_size > len(note):
                ownership.write(str(path), note.encode())
                path.with_name(path.name + TIMES).unlink(missing_ok=True)


def _logs(folder: Path, pattern: str) -> Iterator[Path]:
    return (path for path in folder.glob(pattern) if path.is_file() and not path.is_symlink())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # it was removed just now
