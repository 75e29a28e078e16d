"""Logs of tasks: from the cluster while their pods exist, and from a folder of the service afterwards.

A log is read with the times of its lines, which are then taken off and kept beside it.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from coterie.backends.base.driver import TaskAttempt
from coterie.backends.base.settings import DriverSettings
from coterie.backends.kai.driver.objects import seconds
from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.config.configuration import Pool
from coterie.config.pod_template import TASK_CONTAINER
from coterie.errors import CoterieError
from coterie.kube.api import Api, Timeouts, connect
from coterie.kube.kinds import POD
from coterie.kube.retry import RetryLimits, Transient

_FOLDER = "pod-logs"
# A node that does not answer must not keep others waiting.
_PATIENCE = RetryLimits(attempts=1, total_s=5.0)
_TIMEOUTS = Timeouts(connect_s=3.0, read_s=5.0, answer_s=15.0)
_AT_ONCE = 8
# How long an answer of the cluster serves further readers.
_FRESH_S = 0.5
# The time of a line and the blank after it.
_STAMP = 40


@dataclass(frozen=True, slots=True)
class TimedLog:
    """The text of a log, and offsets with the times from which on they were written."""

    text: bytes
    times: tuple[tuple[float, int], ...] = ()

    def offset(self, since: float) -> int | None:
        """Return the offset of the first output since a time, None where there is none."""
        return next((offset for at, offset in self.times if at >= since), None)


def parse(data: bytes) -> TimedLog:
    """Return a log from lines that begin with their times; a line without one belongs to the line before."""
    text, times = bytearray(), list[tuple[float, int]]()
    for line in data.splitlines(keepends=True):
        stamp, blank, rest = line.partition(b" ")
        at = seconds(stamp.decode("ascii", "replace")) if blank and len(stamp) < _STAMP else None
        if at is not None and (not times or int(times[-1][0]) != int(at)):
            times.append((at, len(text)))
        text += line if at is None else rest
    return TimedLog(bytes(text), tuple(times))


class KeptLogs:
    """The folder with the logs of pods that are gone, by workflow."""

    def __init__(self, settings: DriverSettings) -> None:
        self._folder = settings.folder.with_name(_FOLDER)

    def read(self, attempt: TaskAttempt) -> TimedLog | None:
        """Return the log of an attempt; None where none was kept."""
        path = self._path(attempt)
        try:
            text = path.read_bytes()
            times = json.loads(path.with_suffix(".times").read_text())
        except (OSError, ValueError):
            return None
        return TimedLog(text, tuple((float(at), int(offset)) for at, offset in times))

    def keep(self, attempt: TaskAttempt, log: TimedLog) -> None:
        """Keep the log of an attempt; the first one kept stays."""
        path = self._path(attempt)
        if path.exists():
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.with_suffix(".times").write_text(json.dumps(log.times))
        draft = path.with_suffix(".draft")
        draft.write_bytes(log.text)
        draft.replace(path)

    def has(self, attempt: TaskAttempt) -> bool:
        """Return whether the log of an attempt was kept."""
        return self._path(attempt).exists()

    def workflows(self) -> set[str]:
        """Return the workflows of which logs were kept."""
        with suppress(FileNotFoundError):
            return {each.name for each in self._folder.iterdir()}
        return set()

    def forget(self, workflow: str) -> None:
        """Remove all logs of a workflow."""
        shutil.rmtree(self._folder / workflow, ignore_errors=True)

    def _path(self, attempt: TaskAttempt) -> Path:
        return self._folder / attempt.workflow / attempt.task / f"{attempt.attempt}.log"


class ClusterLogs:
    """The logs of pods in a cluster."""

    def __init__(self, api: Api, namespace: str, settings: DriverSettings) -> None:
        self._api, self._namespace, self._most = api, namespace, settings.log_bytes

    def read(self, pod: str) -> TimedLog | None:
        """Return the log of a pod; None where nothing has started yet, or the node of the pod does not answer."""
        call = self._api.call_of("get", POD, pod, self._namespace, "log")
        params = {"container": TASK_CONTAINER, "timestamps": "true", "limitBytes": str(2 * self._most)}
        try:
            found = parse(self._api.attempt(call, params).body)
        except (CoterieError, Transient):
            return None
        return TimedLog(found.text[: self._most], found.times)


def keep_all(source: ClusterLogs, kept: KeptLogs, pods: Iterable[tuple[str, TaskAttempt]]) -> None:
    """Keep the logs of pods that are about to go, several at a time, as far as they can be read."""
    wanted = [(name, attempt) for name, attempt in pods if not kept.has(attempt)]
    if not wanted:
        return
    with ThreadPoolExecutor(min(_AT_ONCE, len(wanted))) as pool:
        for (_, attempt), log in zip(wanted, pool.map(source.read, [name for name, _ in wanted]), strict=True):
            if log is not None:
                kept.keep(attempt, log)


class KaiOutput:
    """The output of tasks on a cluster, for every replica of a service."""

    def __init__(self, settings: DriverSettings) -> None:
        self._settings = settings
        self._kept = KeptLogs(settings)
        self._cluster: ClusterLogs | None = None
        self._last: dict[TaskAttempt, tuple[float, TimedLog]] = {}

    def log(self, attempt: TaskAttempt, start: int, size: int | None = None) -> bytes:
        """Return a part of a log; empty where nothing was written, or nothing more yet."""
        text = self._read(attempt).text
        offset = max(0, len(text) + start) if start < 0 else start
        return text[offset:] if size is None else text[offset : offset + size]

    def log_offset(self, attempt: TaskAttempt, since: float) -> int | None:
        """Return the offset of a log at a time; None where nothing was written since."""
        return self._read(attempt).offset(since)

    def folder(self, attempt: TaskAttempt) -> str | None:  # noqa: ARG002 - no task writes files for others here
        """Return None: tasks on a cluster have no folder of this machine."""
        return None

    def _read(self, attempt: TaskAttempt) -> TimedLog:
        if not attempt.attempt:
            return TimedLog(b"")
        if (log := self._kept.read(attempt)) is not None:
            self._last.pop(attempt, None)
            return log
        at, known = self._last.get(attempt, (0.0, TimedLog(b"")))
        if time.monotonic() < at + _FRESH_S:
            return known
        # A pod that has just gone has shown more before than it does now.
        found = self._live().read(pod_name(self._settings, attempt)) or known
        self._last = {key: one for key, one in self._last.items() if one[0] > time.monotonic() - 60 * _FRESH_S}
        self._last[attempt] = time.monotonic(), found
        return found

    def _live(self) -> ClusterLogs:
        if self._cluster is None:
            api = connect(self._settings.context or "", patience=_PATIENCE, timeouts=_TIMEOUTS)
            self._cluster = ClusterLogs(api, namespace_of(self._settings), self._settings)
        return self._cluster


def namespace_of(settings: DriverSettings) -> str:
    """Return the namespace of a backend's objects."""
    return settings.namespace or "default"


def pod_name(settings: DriverSettings, attempt: TaskAttempt) -> str:
    """Return the name of the pod of an attempt, which does not depend on its pool."""
    scene = ManifestContext(namespace_of(settings), attempt.workflow, Pool("", "", ""), store=settings.store)
    return scene.pod(attempt.task, attempt.attempt)
