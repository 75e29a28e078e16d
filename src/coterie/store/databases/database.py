"""A database with one writer at a time and with driver errors translated to plain sentences."""

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

from coterie.errors import Conflict, CoterieError, Unavailable, UsageError
from coterie.store.databases import postgres, sqlite
from coterie.store.databases.interrupts import postponed

_SQLITE = frozenset({"sqlite", "sqlite+pysqlite"})
_POSTGRES = frozenset({"postgresql", "postgresql+psycopg", "postgres"})


@dataclass(eq=False)
class Database:
    """The connections to one database; `name`, for messages, holds no password."""

    name: str
    engine: Engine
    patience_s: float
    translated: Callable[[Any, str], CoterieError]
    path: Path | None = None
    _inode: int = 0
    # What was found to be damaged, if anything: a write could make it worse.
    _damage: str = ""
    # Writing threads of one process queue for this lock: SQLite would have them poll the file.
    _write_lock: threading.Lock = field(default_factory=threading.Lock)
    # Reading threads queue too: SQLite releases the GIL at every row, and threads that compete for it take three times
    # as long as threads that wait.
    _read_lock: threading.RLock = field(default_factory=threading.RLock)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection whose statements all see the same commit."""
        with (
            postponed(),
            self._locked(self._read_lock),
            self._driver_errors_translated(),
            self.engine.connect() as connection,
        ):
            if self.path is None:
                connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    @contextmanager
    def writing(self, *, rebuilding: bool = False) -> Iterator[Connection]:
        """Yield an exclusive write transaction; it is committed unless an exception is raised."""
        if self.path is None:
            with postponed(), self._driver_errors_translated(), self.engine.begin() as connection:
                connection.execute(select(func.pg_advisory_xact_lock(postgres.WRITE_LOCK)))
                yield connection
            return
        if self._damage:
            raise sqlite.damaged(self.name, self._damage)
        with postponed(), self._locked(self._write_lock):
            self._check_file(self.path)
            with self._driver_errors_translated(), self.engine.connect() as connection:
                connection.execution_options(**{sqlite.WRITING: True, sqlite.REBUILDING: rebuilding})
                with connection.begin():
                    yield connection

    @contextmanager
    def _locked(self, lock: threading.Lock | threading.RLock) -> Iterator[None]:
        """Hold a lock of SQLite's threads; raise Unavailable if it is not free in time."""
        if self.path is None:
            yield
            return
        if not lock.acquire(timeout=self.patience_s):
            hint = "It is overloaded, or another program has locked it. Try again."
            raise Unavailable(f"{self.name}: the database is busy", hint)
        try:
            yield
        finally:
            lock.release()

    def check(self) -> None:
        """Raise `Unavailable` for a damaged SQLite file, and never write to it again."""
        if self.path is None:
            return
        with self.reading() as connection:
            found = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one())
        if found != "ok":
            self._damage = " ".join(found.split())
            raise sqlite.damaged(self.name, self._damage)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _check_file(self, path: Path) -> None:
        """Refuse to write to a deleted file: all its data would be lost with the last connection."""
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
    def _driver_errors_translated(self) -> Iterator[None]:
        try:
            yield
        except (DataError, OverflowError) as error:
            # Not Unavailable: the database works, and the same value would be refused again.
            said = _first_line(getattr(error, "orig", error))
            raise UsageError(
                f"{self.name}: the database refused a value: {said}", "Change it, and try again."
            ) from error
        except IntegrityError as error:
            raise Conflict(
                f"{self.name}: the database refused a change that contradicts its content: {_first_line(error.orig)}",
                "Something else may have changed at the same moment: look again, and repeat it if need be.",
            ) from error
        except DBAPIError as error:
            if self.path is not None and sqlite.is_damage(error.orig):
                self._damage = self._damage or str(error.orig)
            raise self.translated(error.orig, self.name) from error
        except NoConnection as error:
            raise Unavailable(
                f"{self.name}: all connections are in use", "The database is overloaded. Try again."
            ) from error


def _first_line(error: object) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0]


def database(address: str, patience_s: float) -> Database:
    """Return the database at a URL, or in the SQLite file at a path, without connecting to it."""
    url = _url(address)
    if url.drivername in _SQLITE:
        path = sqlite.created(url)
        return Database(str(path), sqlite.engine(url, patience_s), patience_s, sqlite.translated, path)
    return Database(_shown(url), postgres.engine(url, patience_s), patience_s, postgres.translated)


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
    """Return a URL without its password, wherever it is."""
    where = {key: value for key, value in url.query.items() if key in {"host", "port"}}
    return URL.create("postgresql", url.username, None, url.host, url.port, url.database, where).render_as_string()
