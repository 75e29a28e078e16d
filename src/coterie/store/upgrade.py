"""The upgrade of a database to the tables of this release, by the migrations that it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, text

from coterie.errors import UsageError
from coterie.store.databases.database import Database
from coterie.store.schema import VERSIONS


def upgrade(database: Database) -> None:
    """Apply the missing migrations; refuse the tables of a newer release."""
    script = ScriptDirectory.from_config(configuration())
    with database.reading() as connection:
        # Without the write lock, which the replicas of the newer release may hold for long.
        _refuse_newer(script, connection)
    with changing(database) as connection:
        # Another replica may have migrated while this one waited for the lock: to a newer release, or to this one, and
        # then nothing is left to do.
        _refuse_newer(script, connection)
        command.upgrade(configuration(connection), "head")


@contextmanager
def changing(database: Database) -> Iterator[Connection]:
    """Yield a transaction that may change tables, with no concurrent writer."""
    if database.path is None:
        with database.writing() as connection:
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            yield connection
        return
    try:
        with database.writing(rebuilding=True) as connection:
            yield connection
            if broken := connection.exec_driver_sql("PRAGMA foreign_key_check").first():
                raise UsageError(
                    f"{database.name}: a row of {broken[0]} refers to a row that does not exist", "Restore a backup."
                )
    finally:
        # A connection without foreign-key checks must not be reused for anything else.
        database.close()


def configuration(connection: Connection | None = None) -> Config:
    """Return alembic's configuration; its commands run inside the connection's transaction."""
    config = Config()
    config.set_main_option("script_location", "coterie.store:migrations")
    config.attributes["connection"] = connection
    return config


def _refuse_newer(script: ScriptDirectory, connection: Connection) -> None:
    revision = MigrationContext.configure(connection, opts={"version_table": VERSIONS}).get_current_revision()
    if revision is None:
        return
    try:
        script.get_revision(revision)
    except CommandError:
        raise UsageError(
            f"the database was written by a newer Coterie (its tables are of revision {revision})",
            "Use that release or a newer one. Tables are never downgraded automatically.",
        ) from None
