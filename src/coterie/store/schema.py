"""The schema of a database: created in an empty one, upgraded in an older one, by the first replica to start."""

from __future__ import annotations

import secrets

from sqlalchemy import Column, Connection, MetaData, String, Table, insert, inspect, select

from coterie.errors import UsageError
from coterie.store.databases.database import Database
from coterie.store.tables import REVISION, identity, metadata

# Alembic's table: a single row with the revision of the tables. Alembic itself is loaded only for an upgrade.
VERSIONS = "coterie_schema"
_versions = Table(VERSIONS, MetaData(), Column("version_num", String(32), primary_key=True))
_versions.primary_key.name = f"{VERSIONS}_pkc"


def prepare(database: Database) -> None:
    """Create the tables in an empty database, or upgrade those of an older release."""
    with database.reading() as connection:
        found = _revision(connection)
    if found is None:
        with database.writing() as connection:
            # Another replica may have created the tables while this one waited for the lock.
            found = _revision(connection)
            if found is None:
                _create(connection, database.name)
    if found not in {None, REVISION}:
        from coterie.store.upgrade import upgrade  # noqa: PLC0415 - alembic takes as long to load as all else to start

        upgrade(database)


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSIONS):
        return None
    return connection.execute(select(_versions.c.version_num)).scalar_one_or_none()


def _create(connection: Connection, name: str) -> None:
    if theirs := metadata.tables.keys() & set(inspect(connection).get_table_names()):
        raise UsageError(
            f"{name} holds tables of another program ({', '.join(sorted(theirs)[:3])})",
            "Give Coterie a database of its own.",
        )
    metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(identity), {"store": secrets.token_hex(8)})
    _versions.create(connection, checkfirst=True)
    connection.execute(insert(_versions), {"version_num": REVISION})
