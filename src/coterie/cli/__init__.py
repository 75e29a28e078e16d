"""The command line: parse, call, print; results go to standard output, messages to standard error.

Nothing heavier than typer is imported until a command runs, and no command but the one that is called, so that help
and completion are instant.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from coterie.cli.app import app
from coterie.cli.exit_codes import Exit


def main() -> None:
    """Run `coterie` and exit."""
    # Whoever closes them wants to read nothing, and every print needs one.
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - open until the end
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115 - open until the end
    try:
        app(prog_name="coterie")
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except OSError as error:
        # Commands report their errors; help and the version are printed without one.
        from coterie.cli.output.errors import report_os_error

        sys.exit(report_os_error(error))
