"""Changes that users make to workflows with the options of their submission."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Apply the migration."""
    op.add_column("submissions", sa.Column("amendment", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Revert the migration."""
    op.drop_column("submissions", "amendment")
