"""The environment that alembic runs; the caller owns the connection and its transaction."""

from __future__ import annotations

from typing import Literal

from alembic import context

from coterie.store.databases.columns import SafeText
from coterie.store.schema import VERSIONS
from coterie.store.tables import metadata


def rendered(kind: str, item: object, _: object) -> str | Literal[False]:
    """Return our text type as plain text, so that a migration does not change when our column types do."""
    return "sa.Text()" if kind == "type" and isinstance(item, SafeText) else False


connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_item=rendered,
    version_table=VERSIONS,
    # SQLite alters a table by rebuilding it.
    render_as_batch=connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
