"""A unique name for every store, so that data folders can record the store they belong to."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Apply the migration."""
    made = op.create_table("identity", sa.Column("store", sa.Text(), nullable=False), sa.PrimaryKeyConstraint("store"))
    op.bulk_insert(made, [{"store": secrets.token_hex(8)}])


def downgrade() -> None:
    """Revert the migration."""
    op.drop_table("identity")
