"""The problems that keep the service from its work, for its operators."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from coterie.errors import Unavailable

# Silent unless the operator of the service configures a log: `coterie run` shows its own.
_log = logging.getLogger("coterie.problems")
_log.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class ServiceProblem:
    """One problem: its start, its subject, and its message."""

    since: float
    what: str
    message: str


@dataclass(eq=False)
class ServiceProblems:
    """The current problems, one per subject; the start and end of each are also logged.

    Its methods may be called from any thread.
    """

    now: Callable[[], float]
    _known: dict[str, ServiceProblem] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, what: str, message: str) -> bool:
        """Record a problem; return whether its subject had none before."""
        with self._lock:
            known = self._known.get(what)
            found = replace(known, message=message) if known else ServiceProblem(self.now(), what, message)
            self._known[what] = found
        if known is None:
            _log.warning("problem", extra={"what": what, "reason": message})
        return known is None

    def solve(self, what: str) -> None:
        """Record that a subject works again."""
        with self._lock:
            known = self._known.pop(what, None)
        if known is not None:
            _log.info("solved", extra={"what": what, "after_s": round(self.now() - known.since, 3)})

    @contextmanager
    def reported(self, what: str) -> Iterator[None]:
        """Handle one backend in isolation: its unavailability is recorded as a problem, and the others continue."""
        try:
            yield
        except Unavailable as error:
            self.say(what, str(error))

    def all(self) -> list[ServiceProblem]:
        """Return the problems, oldest first."""
        with self._lock:
            return sorted(self._known.values(), key=lambda each: each.since)
