"""The tables; every change needs a migration and a new revision here, and tests compare the three."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    UniqueConstraint,
    false,
    true,
)

from coterie.store.databases.columns import Number, SafeText

# The migration that leads to these tables.
REVISION = "0006"

# Constraints have names, so that migrations can refer to them on every database.
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _of_workflow(*, key: bool = True) -> Column[str]:
    return Column(
        "workflow",
        SafeText,
        ForeignKey("workflows.id", ondelete="CASCADE"),
        primary_key=key,
        nullable=False,
        index=not key,
    )


# The columns that every step changes; the unchanging ones are in a table of their own, so that a step rewrites little.
workflows = Table(
    "workflows",
    metadata,
    Column("number", Number, primary_key=True),
    Column("id", SafeText, nullable=False, unique=True),
    Column("name", SafeText, nullable=False),
    Column("pool", SafeText, nullable=False),
    Column("owner", SafeText, nullable=False),
    Column("priority", SafeText, nullable=False),
    Column("labels", JSON, nullable=False),
    Column("submitted_at", Double, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("status", SafeText, nullable=False),
    Column("finished", Boolean, nullable=False),
    Column("version", Integer, nullable=False),
    Column("client_key", SafeText),
    Column("fingerprint", SafeText, nullable=False),
    Column("digest", JSON, nullable=False),
    Column("notices", JSON, nullable=False),
    Column("state", JSON, nullable=False),
    UniqueConstraint("owner", "client_key"),
    sqlite_autoincrement=True,
)
Index("ix_workflows_pool", workflows.c.pool, workflows.c.number)
Index("ix_workflows_pool_status", workflows.c.pool, workflows.c.status, workflows.c.number)
Index("ix_workflows_owner", workflows.c.owner, workflows.c.number)
Index("ix_workflows_status", workflows.c.status, workflows.c.number)
Index("ix_workflows_submitted_at", workflows.c.submitted_at)
Index(
    "ix_workflows_unfinished",
    workflows.c.number,
    sqlite_where=workflows.c.finished == false(),
    postgresql_where=workflows.c.finished == false(),
)

# The parts of a large state, so that a step writes only those that it changes. `queued` are the groups of a part that
# are in the queue, NULL where none is.
state_parts = Table(
    "state_parts",
    metadata,
    _of_workflow(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("data", JSON, nullable=False),
    Column("queued", JSON(none_as_null=True)),
)

submissions = Table(
    "submissions",
    metadata,
    _of_workflow(),
    Column("source", LargeBinary, nullable=False),
    Column("file", SafeText, nullable=False),
    Column("sets", JSON, nullable=False),
    Column("set_strings", JSON, nullable=False),
    Column("spec", JSON, nullable=False),
    Column("amendment", JSON),
    Column("rendered", JSON),
)

files = Table(
    "files",
    metadata,
    _of_workflow(),
    Column("path", SafeText, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)

labels = Table(
    "labels",
    metadata,
    _of_workflow(),
    Column("key", SafeText, primary_key=True),
    Column("value", SafeText, nullable=False),
)
Index("ix_labels_key_value", labels.c.key, labels.c.value, labels.c.workflow)

# The number of workflows ever stored under each name.
counters = Table(
    "counters", metadata, Column("name", SafeText, primary_key=True), Column("last", Integer, nullable=False)
)

placements = Table(
    "placements",
    metadata,
    _of_workflow(),
    Column("group", SafeText, primary_key=True),
    Column("task", SafeText, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("node", SafeText, nullable=False),
    Column("gpus", JSON, nullable=False),
    Column("domains", JSON, nullable=False),
    Column("held", Boolean, nullable=False),
)
Index(
    "ix_placements_held",
    placements.c.workflow,
    sqlite_where=placements.c.held == true(),
    postgresql_where=placements.c.held == true(),
)

# An event may outlive its workflow, since the deletion is an event too.
events = Table(
    "events",
    metadata,
    Column("seq", Number, primary_key=True),
    Column("at", Double, nullable=False),
    Column("kind", SafeText, nullable=False),
    Column("message", SafeText, nullable=False),
    Column("workflow", SafeText, nullable=False),
    Column("pool", SafeText, nullable=False),
    Column("group", SafeText, nullable=False),
    Column("task", SafeText, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("data", JSON, nullable=False),
    sqlite_autoincrement=True,
)
Index("ix_events_workflow", events.c.workflow, events.c.seq)

# Databases of all releases have this table, its index and its constraints under the name `wishes`: to rename them would
# break a replica of the release before that still runs during an upgrade.
requests = Table(
    "wishes",
    metadata,
    Column("seq", Number, primary_key=True),
    _of_workflow(key=False),
    Column("observation", JSON, nullable=False),
    Column("at", Double, nullable=False),
    sqlite_autoincrement=True,
)

pools = Table(
    "pools",
    metadata,
    Column("name", SafeText, primary_key=True),
    Column("spec", JSON, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", SafeText, primary_key=True),
    Column("name", SafeText, nullable=False, unique=True),
    Column("hash", SafeText, nullable=False, unique=True),
    Column("role", SafeText, nullable=False),
    Column("owner", SafeText, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
)

leases = Table(
    "leases",
    metadata,
    Column("name", SafeText, primary_key=True),
    Column("holder", SafeText, nullable=False),
    Column("fence", Number, nullable=False),
    Column("expires_at", Double, nullable=False),
)

# The use of each pool, a row a minute; old rows are deleted when new ones are written.
samples = Table(
    "samples",
    metadata,
    Column("pool", SafeText, primary_key=True),
    Column("at", Double, primary_key=True),
    Column("gpus", Integer, nullable=False),
    Column("used", Integer, nullable=False),
    Column("free", Integer, nullable=False),
    Column("waiting", Integer, nullable=False),
    Column("waiting_gpus", Integer, nullable=False),
    Column("longest_wait_s", Double, nullable=False),
    Column("fragmentation", Double),
)

# A single row, created with the table and never changed: the unique identity of this store.
identity = Table("identity", metadata, Column("store", SafeText, primary_key=True))
