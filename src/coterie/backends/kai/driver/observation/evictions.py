"""KAI's evictions, by which it makes room for others: it deletes pods, and only an event of their PodGroup says why.

KAI records an event for each pod, and combines or drops some of those of a large gang. So an event about any pod of a
gang explains the deletion of the others at about that time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping

import msgspec

from coterie.backends.kai.driver.objects import TaskPod, seconds
from coterie.errors import CoterieError
from coterie.kube.api import Api, ApiResponse
from coterie.kube.errors import ApiForbidden, RequestDescription
from coterie.kube.kinds import EVENT, POD_GROUP
from coterie.kube.reads import ObjectQuery, list_all
from coterie.kube.retry import RetryLimits, with_retries

_REASON = "Evict"
_POD = re.compile(r".*?\bPod \S+ ")
# How long the events of a PodGroup serve for all of its pods.
_FRESH_S = 0.2
# How far apart an event and the deletion that it explains may be: clocks differ, and pods of a gang go one by one.
_APART_S = 30.0
# How long ago a pod may have been deleted of which only a new list shows that it is gone.
_GAP_S = 300.0
_ONCE = RetryLimits(attempts=1, total_s=1.0)
# How long events are not read after a failure: twice as long after each further one.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 60.0


class EvictionEvent(msgspec.Struct, gc=False, rename="camel"):
    """An event of a PodGroup, and when it was recorded last."""

    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None

    @property
    def at(self) -> float:
        """The time of the event, 0 where it has none."""
        return seconds(self.last_timestamp) or seconds(self.event_time) or 0.0


class Evictions:
    """The reasons of KAI's evictions in one namespace, read when a pod was deleted by somebody else."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._api, self._namespace, self._clock, self._now = api, namespace, clock, now
        self._read: dict[str, tuple[float, list[EvictionEvent]]] = {}
        self._failures, self._resume_at, self._forbidden = 0, 0.0, ""

    @property
    def problem(self) -> str:
        """The missing permission to read events, until they may be read again; otherwise empty."""
        return self._forbidden if self._clock() < self._resume_at else ""

    def reason(self, pod: TaskPod) -> str:
        """Return KAI's words about the eviction of a deleted pod, empty where it has said nothing so far."""
        first, last = self._period(pod)
        owners = [each.name for each in pod.metadata.owner_references or () if each.kind == POD_GROUP.name]
        found = (event.message for owner in owners for event in self._events(owner) if first <= event.at <= last)
        message = next(found, "")
        return _POD.sub("it ", message, count=1) if message else ""

    def _period(self, pod: TaskPod) -> tuple[float, float]:
        """Return the first and the last time of events that may explain a deletion."""
        end = seconds(pod.metadata.deletion_timestamp)
        if end is None:
            return self._now() - _GAP_S, self._now() + _APART_S
        # The timestamp is when the grace period ends.
        at = end - (pod.metadata.deletion_grace_period_seconds or 0)
        return at - _APART_S, at + _APART_S

    def _events(self, group: str) -> list[EvictionEvent]:
        at, known = self._read.get(group, (None, []))
        if at is not None and self._clock() < at + _FRESH_S:
            return known
        if self._clock() < self._resume_at:
            return []
        fields = f"reason={_REASON},involvedObject.kind={POD_GROUP.name},involvedObject.name={group}"
        query = ObjectQuery(EVENT, self._namespace, fields=fields)
        try:
            found = list_all(self._api, query, EvictionEvent, send=self._send).items
        except CoterieError as error:
            # Without them a loss is told in other words, and nothing else changes.
            self._failed(error)
            return []
        self._failures, self._forbidden = 0, ""
        self._read = {name: one for name, one in self._read.items() if self._clock() < one[0] + _FRESH_S}
        self._read[group] = self._clock(), found
        return found

    def _send(self, call: RequestDescription, params: Mapping[str, str | None]) -> ApiResponse:
        """Request a page once: all else that the driver does waits for it."""
        return with_retries(_ONCE, lambda: self._api.attempt(call, params, limit_s=_ONCE.total_s))

    def _failed(self, error: CoterieError) -> None:
        """Leave the events of all PodGroups alone for a while, longer after each failure."""
        self._failures += 1
        forbidden = isinstance(error, ApiForbidden)
        self._forbidden = f"{error} {error.hint}".strip() if forbidden else ""
        pause = _LONGEST_PAUSE_S if forbidden else _FIRST_PAUSE_S * 2.0 ** min(self._failures - 1, 10)
        self._resume_at = self._clock() + min(_LONGEST_PAUSE_S, pause)
