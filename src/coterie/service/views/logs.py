"""Logs of tasks, read from their backends, independent of the leader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from coterie.backends.base import registry
from coterie.backends.base.driver import OutputReader, TaskAttempt
from coterie.config.configuration import Backend
from coterie.errors import NotFound, Unavailable, did_you_mean
from coterie.lifecycle import Presence, Spec, State, TaskState, from_json
from coterie.service.driver.workflows.driven_workflow import home_of
from coterie.service.settings import Settings
from coterie.store import WorkflowRecord

_MOST = 1 << 20
_MACHINE = Backend(registry.EMBEDDED, registry.EMBEDDED)


class Logs:
    """The logs of tasks, wherever they run; raises `UsageError` where no task can run on this machine."""

    def __init__(self, settings: Settings, store: str, backends: Callable[[], Mapping[str, Backend]]) -> None:
        self._settings, self._store, self._backends = settings, store, backends
        self._outputs: dict[Backend, OutputReader] = {}
        self._output(_MACHINE)

    def output(self, stored: WorkflowRecord) -> OutputReader:
        """Return the output of a workflow's tasks."""
        name = home_of(stored.digest)
        backend = self._backends().get(name) if name else _MACHINE
        if backend is None:
            hint = "Add the backend to the configuration again."
            raise Unavailable(f'workflow "{stored.id}" ran on backend "{name}", which is not known here', hint)
        return self._output(backend)

    def _output(self, backend: Backend) -> OutputReader:
        if backend not in self._outputs:
            if (open_output := backend.traits.output) is None:
                raise Unavailable(f'backend "{backend.name}" keeps no logs', "Read them where its tasks run.")
            settings = self._settings.for_driver(self._store, backend)
            self._outputs[backend] = open_output(settings)
        return self._outputs[backend]

    def read(self, stored: WorkflowRecord, task: str, attempt: int | None, offset: int, limit: int) -> bytes:
        """Return a part of a log; empty where nothing was written, or nothing more yet."""
        return self.output(stored).log(_attempt(stored, task, attempt), max(offset, 0), min(max(limit, 0), _MOST))

    def start(
        self, stored: WorkflowRecord, task: str, attempt: int | None, tail: int | None, since: float | None
    ) -> int:
        """Return the offset from which a log is to be read: that of its last `tail` lines, and of those since a time.

        Output written within the same second cannot be distinguished by its time.
        """
        output, key = self.output(stored), _attempt(stored, task, attempt)
        # The whole log: it has a limit, and lines may be of any length.
        log = output.log(key, 0)
        offset = 0 if since is None else output.log_offset(key, since)
        return max(0 if tail is None else _offset_of_last(log, tail), len(log) if offset is None else offset)

    def end(self, stored: WorkflowRecord, task: str, attempt: int | None, limit: int) -> bytes:
        """Return the end of a log: as many whole lines as fit in a number of bytes.

        Of a line that is longer than that, its end.
        """
        return _end(self.output(stored), _attempt(stored, task, attempt), limit)

    def ends(
        self, stored: WorkflowRecord, most: int, each: int, chosen: Callable[[TaskState], bool]
    ) -> Iterator[tuple[str, bytes]]:
        """Yield the ends of chosen tasks' logs, with the names of the tasks; they share `most` bytes equally."""
        groups = from_json(State, stored.state).groups
        begun = [(group.name, task) for group in groups for task in group.tasks if _attempts(task) and chosen(task)]
        for group, task in begun:
            key = TaskAttempt(stored.id, group, task.name, _attempts(task)[-1])
            yield task.name, _end(self.output(stored), key, min(each, most // len(begun)))

    def ended(self, stored: WorkflowRecord, task: str, attempt: int | None) -> bool:
        """Return whether nothing more will be written."""
        key = _attempt(stored, task, attempt)
        state = _task(stored, task)
        over = state.status.final or state.attempt != key.attempt
        return over and (state.attempt != key.attempt or state.presence in (Presence.ABSENT, Presence.RETURNING))


def _offset_of_last(log: bytes, lines: int) -> int:
    """Return the offset of the last lines of a log."""
    at = len(log) - log.endswith(b"\n")
    for _ in range(lines):
        at = log.rfind(b"\n", 0, at)
        if at < 0:
            return 0
    return at + 1 if lines else len(log)


def _end(output: OutputReader, attempt: TaskAttempt, limit: int) -> bytes:
    # One more byte, which shows whether the first line is complete.
    size = min(max(limit, 0), _MOST) + 1
    found = output.log(attempt, -size, size)
    if len(found) < size:
        return found
    _, sign, rest = found.partition(b"\n")
    return rest if sign and rest else found[1:]


def _attempt(stored: WorkflowRecord, task: str, attempt: int | None) -> TaskAttempt:
    found = _task(stored, task)
    numbers = _attempts(found)
    if attempt is not None and attempt not in numbers:
        known = ", ".join(map(str, numbers)) or "none yet"
        raise NotFound(f'task "{task}" has no attempt {attempt}', f"Attempts are: {known}.")
    group = from_json(Spec, stored.spec).places[task][0]
    name = from_json(State, stored.state).groups[group].name
    return TaskAttempt(stored.id, name, task, numbers[-1] if attempt is None and numbers else attempt or 0)


def _attempts(task: TaskState) -> list[int]:
    return [*(past.attempt for past in task.past), *([task.attempt] if task.attempt else [])]


def _task(stored: WorkflowRecord, task: str) -> TaskState:
    tasks = {each.name: each for group in from_json(State, stored.state).groups for each in group.tasks}
    if task not in tasks:
        hint = f"Tasks are: {', '.join(list(tasks)[:12])}. {did_you_mean(task, tasks)}".strip()
        raise NotFound(f'workflow "{stored.id}" has no task "{task[:80]}"', hint)
    return tasks[task]
