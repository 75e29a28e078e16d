"""What tasks have written, read from the folder in which they run, whoever drives them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from coterie.backends.local.attempt_folder import folder_of
from coterie.backends.local.shim.log import MARK, PACE_S, TIMES
from coterie.backends.local.work_order import Key
from coterie.errors import NotFound, Unavailable, did_you_mean
from coterie.lifecycle import Presence, Spec, State, TaskState, from_json
from coterie.service.driver.runner import tasks_root
from coterie.service.settings import Settings
from coterie.store import Workflow

_MOST = 1 << 20


class Logs:
    """Reads logs below the folder of tasks."""

    def __init__(self, settings: Settings) -> None:
        self._root = tasks_root(settings)

    def read(self, stored: Workflow, task: str, attempt: int | None, offset: int, limit: int) -> bytes:
        """Return a piece of a log; nothing where nothing was written, or nothing more yet."""
        return self._piece(_key(stored, task, attempt), lambda _: (max(offset, 0), min(max(limit, 0), _MOST)))

    def start(self, stored: Workflow, task: str, attempt: int | None, tail: int | None, since: float | None) -> int:
        """Return the byte from which a log is to be read: that of its last `tail` lines, and of those since a time.

        What was written within a second of each other cannot be told apart by its time.
        """
        key = _key(stored, task, attempt)
        # All of it: a log has a limit, and lines may be of any length.
        log = self._piece(key, lambda size: (0, size))
        times = b"" if since is None else self._piece(key, lambda size: (0, size), file=f"log{TIMES}")
        return max(
            0 if tail is None else _offset_of_last(log, tail),
            0 if since is None else _offset_since(times, since, len(log)),
        )

    def end(self, stored: Workflow, task: str, attempt: int | None, limit: int) -> bytes:
        """Return the end of a log: as many whole lines as there are within a number of bytes.

        Of a line that is longer than that, its end.
        """
        return self._end(_key(stored, task, attempt), limit)

    def ends(
        self, stored: Workflow, most: int, each: int, chosen: Callable[[TaskState], bool]
    ) -> Iterator[tuple[str, bytes]]:
        """Yield the ends of chosen tasks' logs, with the names of the tasks; they share `most` bytes alike."""
        groups = from_json(State, stored.state).groups
        begun = [(group.name, task) for group in groups for task in group.tasks if _attempts(task) and chosen(task)]
        for group, task in begun:
            key = Key(stored.id, group, task.name, _attempts(task)[-1])
            yield task.name, self._end(key, min(each, most // len(begun)))

    def _end(self, key: Key, limit: int) -> bytes:
        # One byte more, which tells whether the first line is whole.
        size = min(max(limit, 0), _MOST) + 1
        found = self._piece(key, lambda whole: (max(0, whole - size), size))
        if len(found) < size:
            return found
        _, sign, rest = found.partition(b"\n")
        return rest if sign and rest else found[1:]

    def _piece(self, key: Key, where: Callable[[int], tuple[int, int]], file: str = "log") -> bytes:
        """Return a piece of a log, whose beginning and size depend on the size of the log."""
        try:
            handle = os.open(folder_of(self._root, key) / file, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return b""
        except OSError as error:
            message = f'the log of task "{key.task}" cannot be read: {error.strerror}'
            raise Unavailable(message, "Check the state folder of the service and its disk.") from error
        try:
            offset, size = where(os.fstat(handle).st_size)
            return os.pread(handle, size, offset)
        finally:
            os.close(handle)

    def ended(self, stored: Workflow, task: str, attempt: int | None) -> bool:
        """Tell whether nothing more will be written."""
        key = _key(stored, task, attempt)
        state = _task(stored, task)
        over = state.status.final or state.attempt != key.attempt
        return over and (state.attempt != key.attempt or state.presence in (Presence.ABSENT, Presence.RETURNING))


def _offset_of_last(log: bytes, lines: int) -> int:
    """Return where the last lines of a log begin."""
    at = len(log) - log.endswith(b"\n")
    for _ in range(lines):
        at = log.rfind(b"\n", 0, at)
        if at < 0:
            return 0
    return at + 1 if lines else len(log)


def _offset_since(times: bytes, since: float, size: int) -> int:
    """Return where a log stood at a time, by its file of times; its end where nothing was written since."""
    if not times:
        return 0
    whole = times[: len(times) - len(times) % MARK.size]
    return next((offset for at, offset in MARK.iter_unpack(whole) if at > since - PACE_S), size)


def _key(stored: Workflow, task: str, attempt: int | None) -> Key:
    found = _task(stored, task)
    numbers = _attempts(found)
    if attempt is not None and attempt not in numbers:
        known = ", ".join(map(str, numbers)) or "none yet"
        raise NotFound(f'task "{task}" has no attempt {attempt}', f"Attempts are: {known}.")
    group = from_json(Spec, stored.spec).places[task][0]
    name = from_json(State, stored.state).groups[group].name
    return Key(stored.id, name, task, numbers[-1] if attempt is None and numbers else attempt or 0)


def _attempts(task: TaskState) -> list[int]:
    return [*(past.attempt for past in task.past), *([task.attempt] if task.attempt else [])]


def _task(stored: Workflow, task: str) -> TaskState:
    tasks = {each.name: each for group in from_json(State, stored.state).groups for each in group.tasks}
    if task not in tasks:
        hint = f"Tasks are: {', '.join(list(tasks)[:12])}. {did_you_mean(task, tasks)}".strip()
        raise NotFound(f'workflow "{stored.id}" has no task "{task[:80]}"', hint)
    return tasks[task]
