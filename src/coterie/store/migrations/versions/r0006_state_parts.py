"""Large states in parts; those that are stored whole are divided by the next step of their workflow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_workflows = sa.table("workflows", sa.column("id", sa.Text), sa.column("state", sa.JSON))
_parts = sa.table(
    "state_parts", sa.column("workflow", sa.Text), sa.column("number", sa.Integer), sa.column("data", sa.JSON)
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
    """Revert the migration, with all states whole again."""
    connection = op.get_bind()
    for ident, state in connection.execute(sa.select(_workflows.c.id, _workflows.c.state)).all():
        if isinstance(state.get("parts"), int):
            mine = sa.select(_parts.c.data).where(_parts.c.workflow == ident).order_by(_parts.c.number)
            whole = _whole(state, connection.execute(mine).scalars().all())
            connection.execute(_workflows.update().where(_workflows.c.id == ident).values(state=whole))
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
