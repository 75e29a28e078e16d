"""Large states in parts; those that are stored whole are divided by the next step of their workflow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_workflows = sa.table("workflows", sa.column("id", sa.Text), sa.column("state", sa.JSON), sa.column("digest", sa.JSON))
_parts = sa.table(
    "state_parts",
    sa.column("workflow", sa.Text),
    sa.column("number", sa.Integer),
    sa.column("data", sa.JSON),
    sa.column("queued", sa.JSON),
)


def upgrade() -> None:
    """Apply the migration."""
    op.create_table(
        "state_parts",
        sa.Column("workflow", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("queued", sa.JSON()),
        sa.ForeignKeyConstraint(
            ["workflow"], ["workflows.id"], name="fk_state_parts_workflow_workflows", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("workflow", "number", name="pk_state_parts"),
    )


def downgrade() -> None:
    """Revert the migration, with all states whole again; one that lacks a part stays, and cannot be read."""
    connection = op.get_bind()
    for ident, state, digest in connection.execute(sa.select(_workflows)).all():
        count = state.get("parts")
        if not isinstance(count, int):
            continue
        mine = sa.select(_parts).where(_parts.c.workflow == ident, _parts.c.number < count).order_by(_parts.c.number)
        parts = connection.execute(mine).all()
        if len(parts) == count:
            queued = [entry for part in parts for entry in part.queued or ()]
            rest = {key: value for key, value in digest.items() if key != "queued_groups"}
            values = {"state": _whole(state, [part.data for part in parts]), "digest": {**rest, "queued": queued}}
            connection.execute(_workflows.update().where(_workflows.c.id == ident).values(values))
    op.drop_table("state_parts")


def _whole(state: dict[str, Any], parts: Iterable[list[dict[str, Any]]]) -> dict[str, Any]:
    groups: list[dict[str, Any]] = []
    for piece in (piece for part in parts for piece in part):
        if "name" in piece:
            groups.append(piece)
        else:
            groups[-1]["tasks"] += piece["tasks"]
    rest = {key: value for key, value in state.items() if key != "parts"}
    return {**rest, "version": 1, "groups": groups}
