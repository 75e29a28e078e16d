"""Console blocks of Markdown files: their commands are run, and the output replaces the recorded one.

A block holds commands that begin with `$ coterie`, each followed by what it prints; a backslash at the end of a line
continues the command. Blocks whose first line is another command are left alone.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache

from coterie.cli.exit_codes import Exit
from tests.examples.fork_server import ROOT, forked_call

__all__ = ["ROOT", "commands", "refreshed", "run"]

_BLOCK = re.compile(r"^```console\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
_PROMPT = "$ "
# A document shows answers, among them refusals; never a crash, however willing one is to rewrite.
_EXPECTED = {Exit.DONE, Exit.INVALID, Exit.NOT_FOUND, Exit.MUST_WAIT, Exit.NEVER_FITS}


@cache
def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `coterie` from the root of the repository, with both streams in one, as a terminal shows them."""
    environment = {name: value for name, value in os.environ.items() if name != "COTERIE_CONFIG"}
    # Workers of a parallel run name the current test here; it would make a new server for each.
    environment.pop("PYTEST_CURRENT_TEST", None)
    return forked_call(arguments, {**environment, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONUTF8": "1"})


def refreshed(text: str) -> str:
    """Return a document with the output of every command in it as the program prints it now."""
    return _BLOCK.sub(lambda found: f"```console\n{_rerun(found['body'])}```", text)


def _rerun(body: str) -> str:
    if not body.startswith(f"{_PROMPT}coterie "):
        return body
    return "\n".join(f"{written}\n{_output(command)}" for written, command in commands(body))


def commands(body: str) -> Iterator[tuple[str, str]]:
    """Yield each command as it is written, and in one line."""
    lines = body.splitlines()
    for start, line in enumerate(lines):
        if not line.startswith(_PROMPT):
            continue
        end = start
        while lines[end].endswith("\\"):
            end += 1
        written = lines[start : end + 1]
        yield "\n".join(written), " ".join(part.removesuffix("\\") for part in written)


def _output(command: str) -> str:
    program, *arguments = shlex.split(command.removeprefix(_PROMPT))
    if program != "coterie":
        raise ValueError(f"a console block runs only coterie, not {program}")
    done = run(*arguments)
    if done.returncode not in _EXPECTED:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}")
    printed = done.stdout.rstrip("\n")
    # Lines that are cut off or padded on screen look the same; editors remove the blanks at their ends.
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
