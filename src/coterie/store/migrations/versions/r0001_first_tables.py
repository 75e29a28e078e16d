"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Apply the migration."""
    _workflows()
    _parts_of_workflows()
    _others()


def downgrade() -> None:
    """Revert the migration."""
    for table in (
        "leases",
        "tokens",
        "pools",
        "wishes",
        "events",
        "placements",
        "counters",
        "labels",
        "files",
        "submissions",
        "workflows",
    ):
        op.drop_table(table)


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _time(name: str, *, nullable: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Double(), nullable=nullable)


def _whole(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=False)


def _json(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.JSON(), nullable=False)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _of_workflow(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["workflow"], ["workflows.id"], name=f"fk_{table}_workflow_workflows", ondelete="CASCADE"
    )


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def _workflows() -> None:
    op.create_table(
        "workflows",
        sa.Column("number", _NUMBER, nullable=False),
        *map(_text, ("id", "name", "pool", "owner", "priority")),
        _json("labels"),
        _time("submitted_at"),
        _time("started_at", nullable=True),
        _time("ended_at", nullable=True),
        _text("status"),
        _flag("finished"),
        _whole("version"),
        _text("client_key", nullable=True),
        _text("fingerprint"),
        *map(_json, ("digest", "notices", "state")),
        _key("workflows", "number"),
        sa.UniqueConstraint("id", name="uq_workflows_id"),
        sa.UniqueConstraint("owner", "client_key", name="uq_workflows_owner_client_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_workflows_pool", "workflows", ["pool", "number"])
    op.create_index("ix_workflows_pool_status", "workflows", ["pool", "status", "number"])
    op.create_index("ix_workflows_owner", "workflows", ["owner", "number"])
    op.create_index("ix_workflows_status", "workflows", ["status", "number"])
    op.create_index("ix_workflows_submitted_at", "workflows", ["submitted_at"])
    op.create_index(
        "ix_workflows_unfinished",
        "workflows",
        ["number"],
        sqlite_where=sa.text("finished = 0"),
        postgresql_where=sa.text("finished = false"),
    )


def _parts_of_workflows() -> None:
    op.create_table(
        "submissions",
        _text("workflow"),
        sa.Column("source", sa.LargeBinary(), nullable=False),
        _text("file"),
        *map(_json, ("sets", "set_strings", "spec")),
        _of_workflow("submissions"),
        _key("submissions", "workflow"),
    )
    op.create_table(
        "files",
        *map(_text, ("workflow", "path")),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        _of_workflow("files"),
        _key("files", "workflow", "path"),
    )
    op.create_table(
        "labels", *map(_text, ("workflow", "key", "value")), _of_workflow("labels"), _key("labels", "workflow", "key")
    )
    op.create_index("ix_labels_key_value", "labels", ["key", "value", "workflow"])
    op.create_table(
        "placements",
        *map(_text, ("workflow", "group", "task")),
        _whole("attempt"),
        _text("node"),
        *map(_json, ("gpus", "domains")),
        _flag("held"),
        _of_workflow("placements"),
        _key("placements", "workflow", "group", "task", "attempt"),
    )
    op.create_index(
        "ix_placements_held",
        "placements",
        ["workflow"],
        sqlite_where=sa.text("held = 1"),
        postgresql_where=sa.text("held = true"),
    )
    op.create_table(
        "wishes",
        sa.Column("seq", _NUMBER, nullable=False),
        _text("workflow"),
        _json("observation"),
        _time("at"),
        _of_workflow("wishes"),
        _key("wishes", "seq"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_wishes_workflow", "wishes", ["workflow"])


def _others() -> None:
    op.create_table("counters", _text("name"), _whole("last"), _key("counters", "name"))
    op.create_table(
        "events",
        sa.Column("seq", _NUMBER, nullable=False),
        _time("at"),
        *map(_text, ("kind", "message", "workflow", "pool", "group", "task")),
        _whole("attempt"),
        _json("data"),
        _key("events", "seq"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_workflow", "events", ["workflow", "seq"])
    op.create_table(
        "pools",
        _text("name"),
        _json("spec"),
        _whole("version"),
        *map(_time, ("created_at", "updated_at")),
        _key("pools", "name"),
    )
    op.create_table(
        "tokens",
        *map(_text, ("id", "name", "hash", "role", "owner")),
        _time("created_at"),
        _time("expires_at", nullable=True),
        _key("tokens", "id"),
        sa.UniqueConstraint("name", name="uq_tokens_name"),
        sa.UniqueConstraint("hash", name="uq_tokens_hash"),
    )
    op.create_table(
        "leases",
        *map(_text, ("name", "holder")),
        sa.Column("fence", _NUMBER, nullable=False),
        _time("expires_at"),
        _key("leases", "name"),
    )
