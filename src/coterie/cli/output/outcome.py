"""The exit codes of commands about work that a service does."""

from __future__ import annotations

from typing import Any

from coterie.cli.exit_codes import Exit

Json = dict[str, Any]


def result_of(view: Json) -> Exit:
    """Return the exit code for a workflow's result; 0 while it has not failed."""
    status = str(view["status"])
    if status == "FAILED_CANCELED":
        return Exit.WORK_CANCELLED
    return Exit.WORK_FAILED if status.startswith("FAILED") else Exit.DONE
