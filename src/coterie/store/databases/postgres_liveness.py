"""Connections to a Postgres server that may stop answering without closing: frozen, swapped out, or cut off.

The server's own timeouts do not elapse while it is frozen, and the kernel of its machine still accepts data. Therefore
a client that has waited for a while probes whether the server accepts a new connection, and gives up when it does not.
A statement that only takes long is left alone. Needs the driver, so it is imported only where there is one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, OperationalError
from psycopg.errors import ConnectionTimeout

# How long other threads do not try to connect after one failed.
_PAUSE_S = 1.0


class ProbedConnection(Connection[Any]):
    """A connection that stops waiting when its server accepts no connections any more."""

    quiet_s: float
    answers: Callable[[], bool]

    def wait(self, gen: Generator[Any, Any, Any], *rest: Any, **more: Any) -> Any:  # noqa: ANN401 - passed on as they are
        """Wait for an answer without a time limit, as long as the server accepts connections."""
        return super().wait(self._probed(gen), *rest, **more)

    def _probed(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        look_at = time.monotonic() + self.quiet_s
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() >= look_at:
                    if not self.answers():
                        self.close()
                        raise OperationalError("it does not answer, and accepts no connection")
                    look_at = time.monotonic() + self.quiet_s
                wanted = gen.send(ready)
        except StopIteration as done:
            return done.value


@dataclass(eq=False)
class Connector:
    """The connections to one server, for all threads."""

    quiet_s: float
    _silent_until: float = 0.0

    def connect(self, *arguments: Any, **parameters: Any) -> ProbedConnection:  # noqa: ANN401 - the driver's
        """Connect; fail at once where another attempt has just timed out."""
        if time.monotonic() < self._silent_until:
            raise ConnectionTimeout("an attempt a moment ago timed out")
        try:
            made = ProbedConnection.connect(*arguments, **parameters)
        except ConnectionTimeout:
            self._silent_until = time.monotonic() + _PAUSE_S
            raise
        made.quiet_s = self.quiet_s
        made.answers = lambda: self._answers(*arguments, **parameters)
        return made

    def _answers(self, *arguments: Any, **parameters: Any) -> bool:  # noqa: ANN401 - the driver's
        """Return whether the server answers a new connection, even if only to refuse it."""
        try:
            self.connect(*arguments, **parameters).close()
        except OperationalError as error:
            return "FATAL" in str(error)
        return True
