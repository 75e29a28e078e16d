"""The start-up time of `coterie --help`, against an empty command line."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.timing import once

_EMPTY = '''"""A command line that does nothing."""

import typer

app = typer.Typer(OPTIONS)


@app.command()
def nothing() -> None:
    """Do nothing."""


app()
'''


@dataclass(frozen=True, slots=True)
class Startup:
    """The best of several times in milliseconds from the start of Python to its end."""

    coterie_ms: float
    empty_ms: float
    bare_ms: float  # the empty app again, its help printed without rich
    python_ms: float


def measure(runs: int) -> Startup:
    """Start each alternately, so that a busy moment affects all of them."""
    with tempfile.TemporaryDirectory() as folder:
        empty, bare = Path(folder) / "empty.py", Path(folder) / "bare.py"
        empty.write_text(_EMPTY.replace("OPTIONS", ""))
        bare.write_text(_EMPTY.replace("OPTIONS", "rich_markup_mode=None"))
        commands = (
            [sys.executable, "-m", "coterie", "--help"],
            [sys.executable, str(empty), "--help"],
            [sys.executable, str(bare), "--help"],
            [sys.executable, "-c", "pass"],
        )
        times = [[_run(command) for command in commands] for _ in range(runs)]
    coterie, nothing, plain, python = (min(column) / 1e3 for column in zip(*times, strict=True))
    return Startup(coterie, nothing, plain, python)


def _run(command: list[str]) -> float:
    return once(
        lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - listed above
    )[0]
