"""KAI's evictions, by which it makes room for others: it deletes pods, and only an event of their PodGroup says why.

KAI records an event for each pod, and combines or drops some of those of a large gang. So an event about any pod of a
gang explains the deletion of the others at about that time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import msgspec

from coterie.backends.kai.driver.objects import TaskPod, seconds
from coterie.errors import CoterieError
from coterie.kube.api import Api
from coterie.kube.errors import ApiForbidden
from coterie.kube.kinds import EVENT, POD_GROUP
from coterie.kube.reads import ObjectQuery, list_all

_REASON = "Evict"
_POD = re.compile(r".*?\bPod \S+ ")
# How long the events of a PodGroup serve for all of its pods.
_FRESH_S = 0.2
# How far apart an event and the deletion that it explains may be: clocks differ, and pods of a gang go one by one.
_APART_S = 30.0


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
    """The reasons of KAI's evictions in one namespace, read when a pod was deleted by somebody else.

    `trouble` is why they cannot be read, if that does not pass by itself.
    """

    def __init__(self, api: Api, namespace: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._api, self._namespace, self._clock = api, namespace, clock
        self._read: dict[str, tuple[float, list[EvictionEvent]]] = {}
        self.trouble = ""

    def reason(self, pod: TaskPod) -> str:
        """Return KAI's words about the eviction of a deleted pod, empty where it has said nothing so far."""
        meta = pod.metadata
        # The timestamp is when the grace period ends.
        at = (seconds(meta.deletion_timestamp) or 0.0) - (meta.deletion_grace_period_seconds or 0)
        owners = [each.name for each in meta.owner_references or () if each.kind == POD_GROUP.name]
        found = (event.message for owner in owners for event in self._events(owner) if abs(event.at - at) <= _APART_S)
        message = next(found, "")
        return _POD.sub("it ", message, count=1) if message else ""

    def _events(self, group: str) -> list[EvictionEvent]:
        at, known = self._read.get(group, (None, []))
        if at is not None and self._clock() < at + _FRESH_S:
            return known
        fields = f"reason={_REASON},involvedObject.kind={POD_GROUP.name},involvedObject.name={group}"
        try:
            found = list_all(self._api, ObjectQuery(EVENT, self._namespace, fields=fields), EvictionEvent).items
        except CoterieError as error:
            # Without them a loss is told in other words, and nothing else changes.
            self.trouble = f"{error} {error.hint}".strip() if isinstance(error, ApiForbidden) else ""
            return []
        self.trouble = ""
        self._read = {name: one for name, one in self._read.items() if self._clock() < one[0] + _FRESH_S}
        self._read[group] = self._clock(), found
        return found
