"""Postgres: connections and the write lock of replicas, and plain sentences for its errors."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event

from coterie.errors import CoterieError, Unavailable, UsageError
from coterie.store.databases.columns import dumps, loads

# Every writer holds this lock until its commit, so that numbers (ids, events) are in commit order.
WRITE_LOCK = int.from_bytes(b"coterie")

# The share of the total patience after which a silent server is probed; the rest is for the probe.
_QUIET = 0.4
_RETRY = "It recovers by itself: try again in a few seconds."
# The class of errors of a value that is larger than Postgres can hold, for example in an index.
_TOO_LARGE = "54"
# By SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html
_WORDS = {
    "53100": ("its disk is full, nothing was written", "Make room on the server's disk, then try again."),
    "53200": ("it has no memory left", _RETRY),
    "53300": ("it has no free connection", "Raise max_connections, or run fewer replicas."),
    "55P03": ("another replica has been writing for too long", _RETRY),
    "57014": ("it took too long", _RETRY),
    "57P01": ("it was shut down", _RETRY),
    "57P02": ("it crashed and is restarting", _RETRY),
    "57P03": ("it is starting up or shutting down", _RETRY),
    "25006": ("it cannot be written: it is read-only, or a standby", "Name the primary server in the URL."),
    "25P03": ("the connection was idle for too long in the middle of a change", _RETRY),
    "42501": ("the user may not do this", "Give the database to Coterie's user: ALTER DATABASE … OWNER TO …"),
}


def engine(url: URL, patience_s: float) -> Engine:
    """Return an engine whose connections are tested before use and have time limits."""
    if find_spec("psycopg") is None:
        raise UsageError("the Postgres driver is not installed", "Install it: pip install 'coterie[postgres]'")
    from coterie.store.databases.postgres_liveness import Connector  # noqa: PLC0415 - the driver is an optional package

    wait_ms = math.ceil(patience_s * 1000)
    quiet_s = patience_s * _QUIET
    made = create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_size=8,
        max_overflow=24,
        pool_timeout=patience_s,
        pool_pre_ping=True,
        json_serializer=dumps,
        json_deserializer=loads,
        hide_parameters=True,
        connect_args={"connect_timeout": math.ceil(patience_s - quiet_s), "tcp_user_timeout": wait_ms},
    )
    connector = Connector(quiet_s)

    @event.listens_for(made, "do_connect")
    def connect(_dialect: object, _record: object, arguments: Any, parameters: Any) -> object:  # noqa: ANN401 - the driver's
        return connector.connect(*arguments, **parameters)

    @event.listens_for(made, "connect")
    def prepare(connection: Any, _: object) -> None:  # noqa: ANN401 - the driver is an optional package
        # A replica that freezes during a transaction loses the lock, so that the others continue.
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {wait_ms}")
            cursor.execute(f"SET statement_timeout = {4 * wait_ms}")
            cursor.execute(f"SET idle_in_transaction_session_timeout = {2 * wait_ms}")
        connection.commit()

    return made


def translated(error: Any, name: str) -> CoterieError:  # noqa: ANN401 - the driver is an optional package
    """Return the error for a driver exception."""
    state = getattr(error, "sqlstate", None)
    if state in _WORDS:
        what, hint = _WORDS[state]
        return Unavailable(f"{name}: the database refused: {what}", hint)
    said = (str(error).strip().splitlines() or ["no reason given"])[0]
    if state is None:
        return Unavailable(
            f"{name}: the database cannot be reached: {said}",
            "Is Postgres running, and are host, user, password and database in the URL right?",
        )
    if state.startswith(_TOO_LARGE):
        # Not Unavailable: the same value would be refused again, and other values are not.
        return UsageError(f"{name}: the database refused: {said} ({state})", "A text is too long. Shorten it.")
    return Unavailable(f"{name}: the database failed: {said} ({state})", "Try again.")
