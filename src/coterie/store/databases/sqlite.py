"""SQLite: one file, concurrent readers beside one writer, and plain sentences for its errors."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event

from coterie.errors import CoterieError, NotFound, Unavailable, UsageError
from coterie.store.databases.columns import dumps, loads

# A connection option: the transaction may write, so it takes the write lock when it begins and not in its middle.
WRITING = "coterie_writing"
# A connection option: foreign keys are not checked, because a rebuilt table is dropped in between.
REBUILDING = "coterie_rebuilding"

_THREADS = 48


def engine(url: URL, patience_s: float) -> Engine:
    """Return an engine for a file that `created` has made or found."""
    made = create_engine(
        url,
        pool_size=_THREADS,
        max_overflow=0,
        pool_timeout=patience_s,
        json_serializer=dumps,
        json_deserializer=loads,
        hide_parameters=True,
        connect_args={"timeout": patience_s},
    )

    @event.listens_for(made, "connect")
    def prepare(connection: sqlite3.Connection, _: object) -> None:
        # `begin` below begins transactions; the driver would begin them late, and never for reading.
        connection.isolation_level = None
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(made, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        if options.get(REBUILDING):
            connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get(WRITING) else "BEGIN")

    return made


def created(url: URL) -> Path:
    """Return the file's path; a missing database is created empty and readable only by its owner."""
    if url.database in {None, "", ":memory:"} or str(url.database).startswith("file:"):
        raise UsageError(
            "the store needs a file: an in-memory database is lost with the service",
            "Write sqlite:///PATH, or the path alone.",
        )
    if url.host or url.username or url.query or "\0" in str(url.database):
        raise UsageError("the store's path cannot be read", "Write sqlite:///PATH, with a fourth / before a full path.")
    path = Path(str(url.database))
    if path.is_dir():
        raise UsageError(f"{path} is a folder", "Name a file in it.")
    if not path.parent.is_dir():
        raise NotFound(f"{path}: there is no folder {path.parent}", f"Create it first: mkdir -p {path.parent}")
    try:
        if not path.exists():
            _create(path)
    except sqlite3.Error as error:
        raise translated(error, str(path)) from None
    except OSError as error:
        raise Unavailable(
            f"{path}: the database cannot be created: {error.strerror}",
            "Check the folder's permissions and free space.",
        ) from None
    return path


def _create(path: Path) -> None:
    # Created under another name and closed before it gets its own, so that others only ever find a complete file. An
    # existing file is never opened here, because closing it would release the locks that this process has on it.
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        os.close(handle)
        with closing(sqlite3.connect(draft)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.unlink(draft)  # noqa: PTH108 - beside its twin os.link


def _is_full(file: str) -> bool:
    try:
        return not os.statvfs(Path(file).parent).f_bavail
    except OSError:
        return False


def is_damage(error: object) -> bool:
    """Return whether an error of the driver says that the file is damaged."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT


def damaged(name: str, found: object) -> Unavailable:
    """Return the error for a damaged file."""
    hint = "Nothing is written to it. Stop the service, keep a copy of the file, and restore a backup."
    return Unavailable(f"{name}: the database is damaged ({found})", hint)


def translated(error: Any, name: str) -> CoterieError:  # noqa: ANN401 - the driver's error, whatever it is
    """Return the error for a driver exception."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return Unavailable(
            f"{name}: the database is locked by another program",
            "Try again. If it lasts, check who has the file open: fuser -v FILE.",
        )
    # The shared-memory file in the same folder cannot grow either, which SQLite reports under another code.
    if code == sqlite3.SQLITE_FULL or (code in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN} and _is_full(name)):
        return Unavailable(f"{name}: the disk is full, nothing was written", "Make room, then try again.")
    if code == sqlite3.SQLITE_READONLY:
        return Unavailable(
            f"{name}: the database cannot be written",
            "Check the permissions of the file and of its folder, and whether the disk is mounted read-only.",
        )
    if code in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}:
        return Unavailable(
            f"{name}: the database cannot be opened", "Check the permissions of the file and of its folder."
        )
    if code == sqlite3.SQLITE_IOERR:
        return Unavailable(
            f"{name}: the disk cannot be read or written ({error})",
            "Check whether it is full, whether a size limit applies (ulimit -f), and the kernel's log.",
        )
    if code == sqlite3.SQLITE_NOTADB:
        return UsageError(f"{name} is not a database of Coterie", "Name another file, or move this one away.")
    if code == sqlite3.SQLITE_CORRUPT:
        return damaged(name, error)
    return Unavailable(f"{name}: the database failed: {error}", "Try again.")
