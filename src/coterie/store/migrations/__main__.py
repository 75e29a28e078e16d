"""The generator of a new migration: the difference between the declared tables and the existing migrations."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from alembic import command
from alembic.script import ScriptDirectory

from coterie.store.databases.database import database
from coterie.store.upgrade import changing, configuration, upgrade


def main(message: str) -> None:
    """Compare the tables with a fully migrated database, and write the difference as a new migration."""
    with tempfile.TemporaryDirectory() as folder:
        made = database(str(Path(folder, "draft.db")), patience_s=5)
        upgrade(made)
        with changing(made) as connection:
            config = configuration(connection)
            config.set_main_option("file_template", "r%%(rev)s_%%(slug)s")
            number = len(list(ScriptDirectory.from_config(config).walk_revisions())) + 1
            command.revision(config, message, autogenerate=True, rev_id=f"{number:04}")


if __name__ == "__main__":
    main(sys.argv[1])
