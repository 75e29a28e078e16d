"""A database that can be read and written, one writer at a time, and that fails in words."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, func, make_url, select
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as NoConnection

from coterie.errors import CoterieError, Unavailable, UsageError
from coterie.store import postgres, sqlite

_SQLITE = frozenset({"sqlite", "sqlite+pysqlite"})
_POSTGRES = frozenset({"postgresql", "postgresql+psycopg", "postgres"})


@dataclass(eq=False)
class Database:
    """Connections to one database. `name` is how messages call it; it holds no password."""

    name: str
    engine: Engine
    patience_s: float
    in_words: Callable[[Any, str], CoterieError]
    path: Path | None = None
    _inode: int = 0
    # Threads of one process take turns here: SQLite would have them poll the file.
    _turn: threading.Lock = field(default_factory=threading.Lock)
    # Those that read take turns too: SQLite lets go of Python at every row, and threads that fight for it take three
    # times as long as threads that wait.
    _look: threading.RLock = field(default_factory=threading.RLock)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection that sees what is committed."""
        with self._in_turn(self._look), self._failing_in_words(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self, *, rebuilding: bool = False) -> Iterator[Connection]:
        """Give a transaction that nobody else writes beside; it is committed unless something is raised."""
        if self.path is None:
            with self._failing_in_words(), self.engine.begin() as connection:
                connection.execute(select(func.pg_advisory_xact_lock(postgres.TURN)))
                yield connection
            return
        with self._in_turn(self._turn):
            self._look_at(self.path)
            with self._failing_in_words(), self.engine.connect() as connection:
                connection.execution_options(**{sqlite.WRITING: True, sqlite.REBUILDING: rebuilding})
                with connection.begin():
                    yield connection

    @contextmanager
    def _in_turn(self, turn: threading.Lock | threading.RLock) -> Iterator[None]:
        """Wait for one's turn, where there are turns, and not for ever."""
        if self.path is None:
            yield
            return
        if not turn.acquire(timeout=self.patience_s):
            hint = "Too much is asked of it, or another program has locked it. Try again."
            raise Unavailable(f"{self.name}: the database is busy", hint)
        try:
            yield
        finally:
            turn.release()

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _look_at(self, path: Path) -> None:
        """Refuse to write into a file that has no name any more: it would all be gone with the last connection."""
        try:
            found = os.stat(path).st_ino  # noqa: PTH116 - for every write; a Path's costs twice as much
        except OSError:
            found = 0
        self._inode = self._inode or found
        if found != self._inode or not found:
            raise Unavailable(
                f"{self.name}: the database file was removed or replaced while in use",
                "Put it back, or restart the service to use the new one.",
            )

    @contextmanager
    def _failing_in_words(self) -> Iterator[None]:
        try:
            yield
        except (DataError, IntegrityError):
            raise  # the database is well; to ask it for the same again would be of no use
        except DBAPIError as error:
            raise self.in_words(error.orig, self.name) from error
        except NoConnection as error:
            raise Unavailable(f"{self.name}: all connections are in use", "Too much is asked. Try again.") from error


def database(address: str, patience_s: float) -> Database:
    """Return the database at a URL, or in the SQLite file at a path; nothing is connected yet."""
    url = _url(address)
    if url.drivername in _SQLITE:
        path = sqlite.created(url)
        return Database(str(path), sqlite.engine(url, patience_s), patience_s, sqlite.in_words, path)
    return Database(_shown(url), postgres.engine(url, patience_s), patience_s, postgres.in_words)


def _url(address: str) -> URL:
    if ":" not in address.partition("/")[0]:
        return URL.create("sqlite", database=address)
    scheme = address.partition(":")[0]
    if scheme not in _SQLITE | _POSTGRES:
        raise UsageError(
            f'the store cannot be of type "{scheme}"', "Use sqlite:///PATH or postgresql://USER@HOST/NAME."
        )
    try:
        return make_url(address)
    except (ArgumentError, ValueError):
        # The address is not repeated: it may hold a password.
        raise UsageError(
            "the store's URL cannot be read", "Write postgresql://USER:PASSWORD@HOST:PORT/NAME, with %40 for @."
        ) from None


def _shown(url: URL) -> str:
    """Return a URL without its password, wherever that stands."""
    where = {key: value for key, value in url.query.items() if key in {"host", "port"}}
    return URL.create("postgresql", url.username, None, url.host, url.port, url.database, where).render_as_string()
