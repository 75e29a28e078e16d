"""The errors of commands: faults with their frames, one-line errors, a traceback only on request."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import typer

from coterie.cli.exit_codes import Exit
from coterie.cli.output.formats import Output, safe
from coterie.cli.output.screen import show_data
from coterie.errors import (
    Conflict,
    CoterieError,
    Fault,
    Forbidden,
    NeverFits,
    NotFound,
    Place,
    PlanStale,
    Reason,
    SpecErrors,
    Unauthorized,
    Unavailable,
    UsageError,
)

_OS_HINT = "Check that it exists, that you may use it, and that its disk has room."
# The first match counts.
_CODES: dict[type[CoterieError], tuple[Exit, str]] = {
    SpecErrors: (Exit.INVALID, Reason.INVALID_SPEC),
    NotFound: (Exit.NOT_FOUND, "NotFound"),
    PlanStale: (Exit.CONFLICT, "PlanStale"),
    NeverFits: (Exit.NEVER_FITS, "NeverFits"),
    Conflict: (Exit.CONFLICT, "Conflict"),
    UsageError: (Exit.USAGE, "BadRequest"),
    Unavailable: (Exit.TRY_AGAIN, "Unavailable"),
    Forbidden: (Exit.FAILED, "Forbidden"),
    Unauthorized: (Exit.FAILED, "Unauthorized"),
}


@contextmanager
def reporting(output: Output, *, debug: bool = False) -> Iterator[None]:
    """Turn errors into messages and exit codes; with JSON or YAML output, faults are data on standard output."""
    try:
        with _reported(output, debug=debug):
            yield
    except BrokenPipeError:
        # The reader of our output has closed it; exit silently, without errors of a flush at exit.
        _discard(sys.stdout)
        _discard(sys.stderr)
        raise typer.Exit(Exit.PIPE) from None


@contextmanager
def _reported(output: Output, *, debug: bool) -> Iterator[None]:
    try:
        yield
    except CoterieError as error:
        raise typer.Exit(report(error, output)) from None
    except (typer.Exit, BrokenPipeError, KeyboardInterrupt):
        raise
    except OSError as error:
        raise typer.Exit(report_os_error(error, output)) from None
    except Exception as error:  # noqa: BLE001 - the last line of defence: users get a sentence, not a stack
        if debug:
            traceback.print_exc()
        unexpected = CoterieError(
            f"unexpected {type(error).__name__}: {error}", "Run it again with --debug for details."
        )
        raise typer.Exit(report(unexpected, output)) from None


def _discard(stream: TextIO) -> None:
    """Discard what a stream has not written yet, and whatever comes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def report_os_error(error: OSError, output: Output = Output.TABLE) -> Exit:
    """Report an error of the operating system, and return the exit code."""
    # Output that cannot be written cannot carry a report of that either, and is not tried again at exit.
    told = CoterieError(f"{error.filename or 'output'}: {error.strerror or error}", _OS_HINT)
    # A process may have been started without an output.
    if stream := getattr(sys, "stdout", None):
        try:
            stream.flush()
        except OSError:
            _discard(stream)
    return report(told, output if error.filename else Output.TABLE)


def report(error: CoterieError, output: Output) -> Exit:
    """Report an error, as data on standard output where data was requested, and return the exit code."""
    if output in {Output.JSON, Output.YAML}:
        show_data(error_data(error), output)
    elif isinstance(error, SpecErrors):
        print_faults(error.faults)
    else:
        fail(str(error), error.hint)
    return code_of(error)


def error_data(error: CoterieError) -> dict[str, Any]:
    """Return an error as the JSON object in place of an answer."""
    from coterie.planning.report import errors_json

    if isinstance(error, SpecErrors):
        return errors_json(error.faults)
    place = {"file": error.file, "line": None, "column": None}
    return errors_json([], [{"code": _name_of(error), "message": str(error), **place, "hint": error.hint}])


def code_of(error: CoterieError) -> Exit:
    """Return the exit code of an error; of several faults, invalid input comes before unsupported features."""
    if isinstance(error, SpecErrors) and all(fault.code is Reason.UNSUPPORTED for fault in error.faults):
        return Exit.UNSUPPORTED
    return next((code for kind, (code, _) in _CODES.items() if isinstance(error, kind)), Exit.FAILED)


def _name_of(error: CoterieError) -> str:
    """Return the code of an error without faults, the same as the API's."""
    return next((name for kind, (_, name) in _CODES.items() if isinstance(error, kind)), "Failed")


def fail(message: str, hint: str = "") -> None:
    """Print one error on standard error."""
    typer.echo(f"error: {safe(message)}", err=True)
    if hint:
        typer.echo(f"hint: {safe(hint)}", err=True)


def shows_colours() -> bool:
    """Return whether standard error is a terminal that shows colours and rules."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_faults(faults: Sequence[Fault]) -> None:
    """Print every fault with its source frame on standard error."""
    rule = ("╷", "│ ", "╵") if shows_colours() else ("", "", "")
    for fault in faults:
        lines = _lines(fault)
        if rule[0]:
            lines = [rule[0], *(rule[1] + line for line in lines), rule[2]]
            lines[1] = lines[1].replace("error", typer.style("error", fg="red", bold=True), 1)
        typer.echo("\n".join(lines), err=True)
        if not rule[0]:
            typer.echo(err=True)
    # A fault without a place, such as a file that does not exist, is in none of the files that the others are in.
    files = dict.fromkeys(fault.place.file for fault in faults if fault.place) if all(f.place for f in faults) else {}
    if len(faults) > 1:
        typer.echo(f"{len(faults)} faults in {safe(', '.join(files)) or 'the input'}", err=True)


def _lines(fault: Fault) -> list[str]:
    lines = [f"error[{fault.code.value}]: {fault.message}"]
    if fault.place:
        lines += ["", f"  {_where(fault.place)}", *_frame(fault.place)]
    if fault.hint:
        lines += ["", *fault.hint.split("\n")]
    return [safe(line) for line in lines]


def _where(place: Place) -> str:
    return ":".join(str(part) for part in (place.file, place.line, place.column) if part is not None)


def _frame(place: Place) -> list[str]:
    if not place.frame:
        return []
    width = len(str(place.frame[-1][0]))
    lines = []
    for number, text in place.frame:
        lines.append(f"{number:>{width}} | {text}")
        if number == place.line and place.column:
            lines.append(f"{'':>{width}} | {' ' * (place.column - 1)}{'^' * max(1, place.length)}")
    return lines
