"""Connections to a Postgres that may stop answering without hanging up: frozen, swapped out, or cut off.

The timeouts of a server do not pass while it is frozen, and the kernel of its machine goes on taking data. So whoever
has waited for a while looks whether the server still lets anybody in, and gives up when it does not. A statement that
merely takes long is left alone. Needs the driver, so it is imported only where there is one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, OperationalError
from psycopg.errors import ConnectionTimeout

# How long others need not try to connect after one could not.
_PAUSE_S = 1.0


class Attended(Connection[Any]):
    """A connection on which nobody waits for a server that answers to nobody."""

    quiet_s: float
    answers: Callable[[], bool]

    def wait(self, gen: Generator[Any, Any, Any], *rest: Any, **more: Any) -> Any:  # noqa: ANN401 - passed on as they are
        """Wait for an answer, however long it takes, as long as the server is there."""
        return super().wait(self._attended(gen), *rest, **more)

    def _attended(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        look_at = time.monotonic() + self.quiet_s
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() >= look_at:
                    if not self.answers():
                        self.close()
                        raise OperationalError("it does not answer, and lets nobody in")
                    look_at = time.monotonic() + self.quiet_s
                wanted = gen.send(ready)
        except StopIteration as done:
            return done.value


@dataclass(eq=False)
class Line:
    """The way to one server, for all threads."""

    quiet_s: float
    _silent_until: float = 0.0

    def connect(self, *arguments: Any, **parameters: Any) -> Attended:  # noqa: ANN401 - the driver's
        """Connect; fail at once where somebody has just waited in vain."""
        if time.monotonic() < self._silent_until:
            raise ConnectionTimeout("it did not answer a moment ago")
        try:
            made = Attended.connect(*arguments, **parameters)
        except ConnectionTimeout:
            self._silent_until = time.monotonic() + _PAUSE_S
            raise
        made.quiet_s = self.quiet_s
        made.answers = lambda: self._answers(*arguments, **parameters)
        return made

    def _answers(self, *arguments: Any, **parameters: Any) -> bool:  # noqa: ANN401 - the driver's
        """Tell whether the server answers to a newcomer, be it that it has no room for one."""
        try:
            self.connect(*arguments, **parameters).close()
        except OperationalError as error:
            return "FATAL" in str(error)
        return True
