"""The lease of a leading replica, renewed on a thread of its own, so that long work of the driver does not lose it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from coterie.errors import Conflict, CoterieError
from coterie.service.driver.problems import ServiceProblems
from coterie.service.settings import Settings
from coterie.store import Lease, Store

# How long a turn of the driver may take before it is reported as slow.
SLOW_S = 2.0
# How long a turn may take before the lease is no longer renewed, so that another replica can lead.
STUCK_S = 300.0
_LOOK_S = 0.5
_SLOW = "turn"


class HeldLease:
    """An acquired lease; `lost` is called once when another replica has it.

    Its fence protects the store in any case. `check` protects everything else: it is called before actions.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        problems: ServiceProblems,
        lease: Lease,
        lost: Callable[[], None],
    ) -> None:
        self._store, self._settings, self._problems = store, settings, problems
        self._lease, self._lost = lease, lost
        self._taken = False
        self._began: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_ended, name="coterie-lease", daemon=True)
        self._thread.start()

    @property
    def fence(self) -> int:
        """The number that every save under this lease states."""
        return self._lease.fence

    @property
    def lease(self) -> Lease:
        """The lease as last renewed."""
        return self._lease

    @property
    def doubtful(self) -> bool:
        """Whether another replica may have the lease, as after a long suspension of this one."""
        return self._taken or self._settings.now() >= self._lease.expires_at

    def check(self) -> None:
        """Raise `Conflict` unless the lease is certainly held now."""
        if self.doubtful:
            raise Conflict("the lease has run out", "Another replica may lead now.")

    def renew(self) -> None:
        """Extend the lease now; raise `Conflict` where another replica has acquired it."""
        try:
            self._lease = self._store.renew(self._lease, self._settings.now(), self._settings.lease_s)
        except Conflict:
            self._taken = True
            raise

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Watch a turn of the driver; a slow one is a problem until one is not."""
        self._began = began = time.monotonic()
        try:
            yield
        finally:
            self._began = None
            if time.monotonic() - began < SLOW_S:
                self._problems.solve(_SLOW)

    def release(self) -> None:
        """End the renewal and return the lease, if the store can be reached."""
        self._ended.set()
        self._thread.join()
        self._problems.solve(_SLOW)
        if not self._taken:
            self._store.release(self._lease)

    def _renew_until_ended(self) -> None:
        ttl = self._settings.lease_s
        due = time.monotonic() + ttl / 3
        while not self._ended.wait(min(_LOOK_S, ttl / 6)) and not self._taken:
            now = time.monotonic()
            took = 0.0 if (began := self._began) is None else now - began
            if took >= SLOW_S:
                self._problems.say(_SLOW, f"a turn of the driver is slow: {took:.0f} s so far")
            if now < due or took >= STUCK_S:
                continue
            try:
                self.renew()
            except Conflict:
                self._lost()
            except CoterieError:
                continue  # the leader reports the store; until the lease expires, it is tried again
            due = now + ttl / 3
