"""Samples of the use of pools over the last day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Apply the migration."""
    op.create_table(
        "samples",
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.Column("free", sa.Integer(), nullable=False),
        sa.Column("waiting", sa.Integer(), nullable=False),
        sa.Column("waiting_gpus", sa.Integer(), nullable=False),
        sa.Column("longest_wait_s", sa.Double(), nullable=False),
        sa.Column("fragmentation", sa.Double()),
        sa.PrimaryKeyConstraint("pool", "at", name="pk_samples"),
    )


def downgrade() -> None:
    """Revert the migration."""
    op.drop_table("samples")
