"""How a command ends that is about work which somebody else does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import typer

from coterie.cli.output import Output
from coterie.cli.report import fail, reporting
from coterie.service.errors import Conflict

Json = dict[str, Any]


class Ending(IntEnum):
    """Exit codes beside those that every command has."""

    CONFLICT = 5
    WORK_FAILED = 100
    WORK_CANCELLED = 103
    TIMED_OUT = 124


@contextmanager
def answering(output: Output, *, debug: bool = False) -> Iterator[None]:
    """Report errors as every command does, and conflicts with a code of their own."""
    with reporting(output, debug=debug):
        try:
            yield
        except Conflict as error:
            fail(str(error), error.hint)
            raise typer.Exit(Ending.CONFLICT) from None


def result_of(view: Json) -> int:
    """Return the exit code for how a workflow ended; 0 while it has not failed."""
    status = str(view["status"])
    if status == "FAILED_CANCELED":
        return Ending.WORK_CANCELLED
    return Ending.WORK_FAILED if status.startswith("FAILED") else 0
