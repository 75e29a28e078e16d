"""What keeps the service from doing all it should, for those who look after it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

# Silent unless whoever runs the service wants a log: `coterie run` shows its own.
_log = logging.getLogger("coterie.troubles")
_log.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Trouble:
    """One problem: since when, with what, in words."""

    since: float
    what: str
    message: str


@dataclass(eq=False)
class Troubles:
    """The problems of the moment, one per thing, the beginning and end of each also in the log.

    Its methods may be called from any thread.
    """

    now: Callable[[], float]
    _known: dict[str, Trouble] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, what: str, message: str) -> bool:
        """Note a problem; tell whether there was none with this thing before."""
        with self._lock:
            known = self._known.get(what)
            found = replace(known, message=message) if known else Trouble(self.now(), what, message)
            self._known[what] = found
        if known is None:
            _log.warning("trouble", extra={"what": what, "said": message})
        return known is None

    def solve(self, what: str) -> None:
        """Note that a thing works again."""
        with self._lock:
            known = self._known.pop(what, None)
        if known is not None:
            _log.info("solved", extra={"what": what, "after_s": round(self.now() - known.since, 3)})

    def all(self) -> list[Trouble]:
        """Return the problems, the oldest first."""
        with self._lock:
            return sorted(self._known.values(), key=lambda trouble: trouble.since)
