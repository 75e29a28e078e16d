"""A prompt at the terminal, which disappears by itself once there is nothing left to decide."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Mapping
from typing import TypeVar

import typer

from coterie.cli.exit_codes import Exit
from coterie.cli.output.formats import safe

T = TypeVar("T")

_LOOK_S = 0.5


def user_present() -> bool:
    """Return whether there is a user to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def choose(question: str, choices: Mapping[str, T], default: str, over: Callable[[], bool]) -> T | None:
    """Ask until a key of the choices is given; Enter alone means the default, whose key is a capital.

    Returns None once the matter is `over`, or where no answer is possible any more.
    """
    known = ", ".join(key.upper() if key == default else key for key in choices)
    prompt = safe(f"{question} ")
    typer.echo(f"\n{prompt}", err=True, nl=False)
    while not over():
        if not select.select([sys.stdin], [], [], _LOOK_S)[0]:
            continue
        given = os.read(sys.stdin.fileno(), 1024).decode(errors="replace")
        if not given:
            break
        key = given.strip().lower() or default
        if key[:1] in choices:
            return choices[key[:1]]
        typer.echo(safe(f'"{key[:20]}" is not one of {known}\n') + prompt, err=True, nl=False)
    typer.echo(err=True)
    return None


def confirm(question: str) -> None:
    """Ask a user at the terminal, and end the command unless they agree; scripts are not asked."""
    if user_present() and not choose(f"{question}? [y/N]", {"y": True, "n": False}, "n", lambda: False):
        typer.echo("nothing changed", err=True)
        raise typer.Exit(Exit.INTERRUPTED)
