"""The migration of a database to the tables of this release, performed once by the first replica to start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, inspect, text

from coterie.errors import UsageError
from coterie.store.databases.database import Database
from coterie.store.tables import metadata

VERSIONS = "coterie_schema"


def migrate(database: Database) -> None:
    """Apply the missing migrations, if any."""
    script = ScriptDirectory.from_config(configuration())
    with database.reading() as connection:
        if _lacks_nothing(connection, script):
            return
    with changing(database) as connection:
        if not _revision(connection) and (
            theirs := metadata.tables.keys() & set(inspect(connection).get_table_names())
        ):
            raise UsageError(
                f"{database.name} holds tables of another program ({', '.join(sorted(theirs)[:3])})",
                "Give Coterie a database of its own.",
            )
        # Another replica may have migrated while this one waited for the lock; then nothing is left to do.
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


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection, opts={"version_table": VERSIONS}).get_current_revision()


def _lacks_nothing(connection: Connection, script: ScriptDirectory) -> bool:
    revision = _revision(connection)
    if revision is None:
        return False
    try:
        script.get_revision(revision)
    except CommandError:
        raise UsageError(
            f"the database was written by a newer Coterie (its tables are of revision {revision})",
            "Use that release or a newer one. Tables are never downgraded automatically.",
        ) from None
    return revision == script.get_current_head()
