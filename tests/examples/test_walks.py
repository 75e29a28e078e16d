"""Blocks that talk to a service are run against one, in order, and print what the document shows.

The first block of a document finds an unused service. Only times may differ from run to run.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from coterie.cli.exit_codes import Exit
from tests.backends.local.builders import supervising
from tests.examples.console import ROOT, commands

pytestmark = pytest.mark.slow("runs whole documents step by step on a service of their own")

CONFIG = ROOT / "examples/12-team/coterie.yaml"
IDENT = re.compile(r"[a-z0-9-]+-[0-9]+")
BLOCK = re.compile(r"^```console service\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = [
    page
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"))
    if BLOCK.search(page.read_text(encoding="utf-8"))
]
EXPECTED = {Exit.DONE, Exit.WORK_CANCELLED, Exit.MUST_WAIT, Exit.NEVER_FITS}
TIMES = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+\b(?: \d+s)?|\d\d:\d\d:\d\d(\.\d+)?Z?|\d{4}-\d\d-\d\d")


@contextmanager
def service(folder: Path) -> Iterator[Mapping[str, str]]:
    """Start a service of its own; yield what its users need in their environment."""
    told = {"NO_COLOR": "1", "COLUMNS": "110", "PYTHONUTF8": "1", "COTERIE_STATE": str(folder)}
    environment = {**{key: value for key, value in os.environ.items() if not key.startswith("COTERIE_")}, **told}
    options = ["serve", "--config", str(CONFIG), "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "coterie", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
    )
    with process:
        assert process.stdout
        try:
            yield {**environment, "COTERIE_SERVER": process.stdout.readline().strip()}
        finally:
            process.send_signal(signal.SIGTERM)
    with supervising(folder / "tasks"):
        """Whatever the walk left running ends here."""


def said(command: str, environment: Mapping[str, str]) -> str:
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "coterie"
    done = subprocess.run(
        [sys.executable, "-m", "coterie", *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode in EXPECTED, f"{command} ended with {done.returncode}:\n{done.stdout}"
    if arguments[0] == "submit" and "--dry-run" not in arguments and done.returncode == Exit.DONE:
        # Warnings may come before the id, which has a line of its own.
        taken_up(environment["COTERIE_SERVER"], next(filter(IDENT.fullmatch, done.stdout.splitlines())))
    # Only services with the web page tell its address, and that differs from run to run.
    lines = (line.rstrip() for line in done.stdout.rstrip("\n").splitlines() if not line.startswith("web page: "))
    return "".join(f"{line}\n" for line in lines)


def taken_up(server: str, workflow: str) -> None:
    """Wait until a workflow runs, or is known to wait: whoever reads a document is slower than that."""
    deadline = time.monotonic() + 60
    while True:
        found = httpx2.get(f"{server}/api/v1/workflows/{workflow}").json()
        if found["status"] == "RUNNING" or any(group["waiting"] for group in found["groups"]):
            return
        assert time.monotonic() < deadline, found


def test_there_are_walks() -> None:
    assert PAGES


@pytest.mark.parametrize("slow", ["4.1s", "59s", "1m3s", "12m", "1h2m", "3d2h"])
def test_how_long_something_took_may_differ_however_long_it_took(slow: str) -> None:
    assert timeless("12s") == timeless(slow)
    assert timeless("done-1  4.1s   web") == timeless(f"done-1  {slow} web")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_walk_goes_as_the_document_says(page: Path, tmp_path: Path, *, rewrite: bool) -> None:
    written = page.read_text(encoding="utf-8")
    with service(tmp_path / "state") as environment:
        real = BLOCK.sub(
            lambda found: (
                "```console service\n"
                + "\n".join(f"{shown}\n{said(command, environment)}" for shown, command in commands(found["body"]))
                + "```"
            ),
            written,
        )
    if timeless(written) == timeless(real):
        return
    if rewrite:
        page.write_text(real, encoding="utf-8")
    else:
        assert timeless(written) == timeless(real)


def timeless(text: str) -> str:
    """Return a text without its times, and without how wide they made their columns."""
    # A workflow may have ended before the answer to its cancellation.
    said = re.sub(r"is being canceled$", "is canceled", text, flags=re.MULTILINE)
    return re.sub(r"[ ─]+", " ", TIMES.sub("~", said))
