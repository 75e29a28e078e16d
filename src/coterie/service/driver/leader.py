"""The leader's loop and election: replicas of one store have one leader at a time, the holder of the lease.

The lease's fence keeps a former holder from saving anything. A leader may end at any moment, even by `kill -9`: the
next one rebuilds everything from the store and from the drivers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from coterie.errors import Conflict, CoterieError, Unavailable
from coterie.service.clock import SteadyClock
from coterie.service.driver.board import Board
from coterie.service.driver.election.held_lease import HeldLease
from coterie.service.driver.election.replica import is_gone
from coterie.service.driver.problems import ServiceProblems
from coterie.service.driver.workflows.texts import Fresh
from coterie.service.pools.catalog import LiveCatalog
from coterie.service.settings import Settings
from coterie.store import Lease, Store

_log = logging.getLogger("coterie.driver")
_log.addHandler(logging.NullHandler())

# How long to wait before an unavailable store is asked again.
_PAUSE_S = 0.5
# Conflicts of this many turns are a problem, unless a save succeeds, or none has happened for so long.
_MANY_CONFLICTS, _CONFLICT_S = 2, 10.0


class Leader:
    """The driver of a store's workflows while it holds the lease; `saved` is called after each save."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        catalogue: LiveCatalog,
        problems: ServiceProblems,
        saved: Callable[[], None],
        fresh: Fresh,
    ) -> None:
        self._store, self._settings, self._catalogue = store, settings, catalogue
        self._problems, self._saved, self._fresh = problems, saved, fresh
        self._poked = threading.Event()
        self._asked = threading.Event()  # whether a user has poked it
        self._stopping = False
        self._lease: HeldLease | None = None
        self._board: Board | None = None
        self._failing = False
        self._conflicts = 0  # turns that ended with one since the last save
        self._conflict_at = 0.0

    @property
    def leading(self) -> bool:
        """Whether this replica leads."""
        return self._board is not None

    @property
    def failing(self) -> bool:
        """Whether nothing is driven, although it should be, because of an unexpected error."""
        return self._failing

    @property
    def load(self) -> tuple[int, int]:
        """The number of running tasks and of waiting gangs."""
        board = self._board
        return (board.running, board.waiting) if board else (0, 0)

    def poke(self) -> None:
        """Announce new work of a user; from any thread."""
        self._asked.set()
        self._poked.set()

    def stop(self) -> None:
        """Ask the loop to end; from any thread. Tasks keep running."""
        self._stopping = True
        self._poked.set()

    def run(self) -> None:
        """Drive until `stop`."""
        try:
            while not self._stopping:
                self._poked.clear()
                self._asked.clear()
                self._poked.wait(self._turn())
        finally:
            self._resign()

    def _turn(self) -> float:
        """Perform all due work; return how long to wait for more."""
        now, driving = self._settings.now(), False
        try:
            lease = self._held_lease(now)
            if lease is None:
                self._conflicts = 0
                for what in ("store", "driver"):
                    self._problems.solve(what)
                return min(self._settings.poll_s, self._settings.lease_s / 4)
            with lease.turn():
                driving = True
                news, wait = self._current_board().turn(now, lease)
        except Unavailable as error:
            self._problems.say("store", f"{error}. {error.hint}".strip())
            return _PAUSE_S
        except Conflict as error:
            self._doubt()
            if not driving:
                return min(self._settings.poll_s, _PAUSE_S)  # another replica leads now
            self._conflicts, self._conflict_at = self._conflicts + 1, time.monotonic()
            if self._conflicts < _MANY_CONFLICTS:
                return 0.0  # another replica was faster, which the stored state shows
            self._failing = True
            self._problems.say("driver", f"{error}. It is retried.")
            return _PAUSE_S
        except Exception as error:  # noqa: BLE001 - requests would still be taken, and nothing done about them
            _log.exception("unexpected error in the leader's loop")
            self._failing = True
            self._problems.say("driver", f"unexpected {type(error).__name__}: {error}. It is retried.")
            self._doubt()
            return _PAUSE_S
        self._problems.solve("store")
        # A turn without anything to save does not show that the next save will be accepted.
        if news or time.monotonic() - self._conflict_at > _CONFLICT_S:
            self._conflicts = 0
        if self._conflicts < _MANY_CONFLICTS:
            self._failing = False
            self._problems.solve("driver")
        self._note_configuration()
        self._note_clock()
        if news:
            self._saved()
        return wait

    def _current_board(self) -> Board:
        if self._board is None:
            world = (self._store, self._settings, self._catalogue, self._problems)
            self._board = Board(*world, self._poked.set, self._asked.is_set, self._fresh)
        return self._board

    def _held_lease(self, now: float) -> HeldLease | None:
        if self._lease is None:
            found = self._store.acquire(self._settings.holder, now, self._settings.lease_s) or self._inherited(now)
            if found is not None:
                self._lease = HeldLease(self._store, self._settings, self._problems, found, self._poked.set)
        elif self._board is None or self._lease.doubtful:
            self._lease.renew()  # before anything is read or done: another leader may have saved and started something
        return self._lease

    def _inherited(self, now: float) -> Lease | None:
        """Take over the lease of a replica that died on this machine, without waiting for its expiry."""
        leader = self._store.leader()
        if leader is None or not is_gone(leader.holder):
            return None
        self._store.release(leader)
        return self._store.acquire(self._settings.holder, now, self._settings.lease_s)

    def _doubt(self) -> None:
        """Restart from the stored state if the lease is still held; without it, there is nothing to do."""
        if self._board is None:
            self._give_up()
        else:
            self._board.close()
            self._board = None

    def _give_up(self) -> None:
        if self._lease is not None:
            lease, self._lease = self._lease, None
            try:
                lease.release()
            except CoterieError as error:
                self._problems.say("store", str(error))

    def _note_configuration(self) -> None:
        if self._catalogue.problem:
            self._problems.say("configuration", self._catalogue.problem)
        else:
            self._problems.solve("configuration")

    def _note_clock(self) -> None:
        clock = self._settings.now
        if isinstance(clock, SteadyClock) and (ahead := clock.ahead_s):
            said = f"the clock of the machine was set {'forward' if ahead > 0 else 'back'} by {abs(ahead):,.0f} s"
            self._problems.say("clock", f"{said}; times are counted as before until a restart without workflows")
        else:
            self._problems.solve("clock")

    def _resign(self) -> None:
        if self._board is not None:
            self._board.close()
            self._board = None
        self._give_up()
