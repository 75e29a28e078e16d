"""Rendered texts of workflows, so that no template is rendered again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Apply the migration."""
    op.add_column("submissions", sa.Column("rendered", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Revert the migration."""
    op.drop_column("submissions", "rendered")
