"""The events of a service: what happened, in order, and the wait for more."""

from __future__ import annotations

import time

from coterie.service.core import Json, ServiceCore
from coterie.service.views import workflows as views

# How many events are returned at most.
_MOST = 1000


class EventOperations(ServiceCore):
    """The events of all workflows and pools."""

    def events(self, after: int = 0, workflow: str | None = None, limit: int = _MOST) -> list[Json]:
        """Return the events after a number, in order."""
        if workflow is not None:
            self.store.summary(workflow)
        return [views.event(each) for each in self.store.events(after, workflow, min(max(limit, 1), _MOST))]

    def last_event(self) -> int:
        """Return the number of the newest event."""
        return self.store.last_event()

    def changed(self, after: int, timeout_s: float) -> bool:
        """Wait until there is an event after this one; return whether there is."""
        until = time.monotonic() + timeout_s
        while True:
            rings = self._rings
            if self.store.last_event() > after:
                return True
            left = until - time.monotonic()
            if left <= 0 or self._stopped:
                return False
            with self._bell:
                # Events of other replicas do not wake this one.
                if self._rings == rings:
                    self._bell.wait(min(left, self.settings.poll_s))
