"""What tasks have written, read from the folder in which they run, whoever drives them."""

from __future__ import annotations

import os

from coterie.backends.local.folder import folder_of
from coterie.backends.local.order import Key
from coterie.errors import NotFound, Unavailable, did_you_mean
from coterie.lifecycle import Presence, Spec, State, TaskState, from_json
from coterie.service.runner import tasks_root
from coterie.service.settings import Settings
from coterie.service.store import Workflow

_MOST = 1 << 20


class Logs:
    """Reads logs below the folder of tasks."""

    def __init__(self, settings: Settings) -> None:
        self._root = tasks_root(settings)

    def read(self, stored: Workflow, task: str, attempt: int | None, offset: int, limit: int) -> bytes:
        """Return a piece of a log; nothing where nothing was written, or nothing more yet."""
        key = _key(stored, task, attempt)
        try:
            handle = os.open(folder_of(self._root, key) / "log", os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise Unavailable(f'the log of task "{task}" cannot be read: {error.strerror}') from error
        try:
            return os.pread(handle, min(max(limit, 0), _MOST), max(offset, 0))
        finally:
            os.close(handle)

    def ended(self, stored: Workflow, task: str, attempt: int | None) -> bool:
        """Tell whether nothing more will be written."""
        key = _key(stored, task, attempt)
        state = _task(stored, task)
        over = state.status.final or state.attempt != key.attempt
        return over and (state.attempt != key.attempt or state.presence in (Presence.ABSENT, Presence.RETURNING))


def _key(stored: Workflow, task: str, attempt: int | None) -> Key:
    found = _task(stored, task)
    numbers = [*(past.attempt for past in found.past), *([found.attempt] if found.attempt else [])]
    if attempt is not None and attempt not in numbers:
        known = ", ".join(map(str, numbers)) or "none yet"
        raise NotFound(f'task "{task}" has no attempt {attempt}', f"Attempts are: {known}.")
    group = from_json(Spec, stored.spec).places[task][0]
    name = from_json(State, stored.state).groups[group].name
    return Key(stored.id, name, task, numbers[-1] if attempt is None and numbers else attempt or 0)


def _task(stored: Workflow, task: str) -> TaskState:
    tasks = {each.name: each for group in from_json(State, stored.state).groups for each in group.tasks}
    if task not in tasks:
        hint = f"Tasks are: {', '.join(list(tasks)[:12])}. {did_you_mean(task, tasks)}".strip()
        raise NotFound(f'workflow "{stored.id}" has no task "{task[:80]}"', hint)
    return tasks[task]
