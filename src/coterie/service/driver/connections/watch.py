"""Threads that wait for news of backends."""

from __future__ import annotations

import threading
from collections.abc import Callable

from coterie.errors import Unavailable
from coterie.service.driver.connections.drivers import Connection
from coterie.service.driver.problems import ServiceProblems

# How long a thread that waits for news may delay the closing.
_WAKE_S = 0.2
# How long to wait before a backend that could not be read is read again.
_PAUSE_S = 1.0


class BackendWatch:
    """One thread for each backend; `poke` is called when the driver of one has news."""

    def __init__(self, problems: ServiceProblems, poke: Callable[[], None]) -> None:
        self._problems, self._poke = problems, poke
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []
        self._current: dict[str, Connection] = {}

    def add(self, connection: Connection) -> None:
        """Wait for the news of one more backend, or of one whose driver was opened anew."""
        self._current[connection.home] = connection
        name = f"coterie-watch {connection.home}".strip()
        thread = threading.Thread(target=self._watch, args=(connection,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        """End all threads."""
        self._closed.set()
        for thread in self._threads:
            thread.join()

    def _watch(self, connection: Connection) -> None:
        while not self._closed.is_set() and self._current[connection.home] is connection:
            try:
                if connection.driver.wait(_WAKE_S):
                    self._poke()
            except Unavailable as error:
                self._problems.say(connection.problem, str(error))
                self._closed.wait(_PAUSE_S)
