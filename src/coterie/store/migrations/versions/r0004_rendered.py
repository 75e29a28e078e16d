"""Rendered texts of workflows, so that no template is rendered again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Take the step."""
    op.add_column("submissions", sa.Column("rendered", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Take it back."""
    op.drop_column("submissions", "rendered")
