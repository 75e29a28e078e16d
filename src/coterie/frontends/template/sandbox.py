"""The parent side of the template worker: start, limits, and its answer."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coterie.cancellation import POLL_S, check

SECONDS = 2.0
MEMORY = 200 << 20

# The worker limits its own processor time; this bounds one that gets no processor at all.
_PATIENCE = 60.0
_WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True, slots=True)
class RenderedTemplate:
    """A rendered template, the names of the variables it refers to, and the rendering of its traced form."""

    text: str
    names: frozenset[str]
    traced: str | None = None


@dataclass(frozen=True, slots=True)
class RenderFault:
    """One reason why a template did not render; `kind` is the worker's name for it."""

    kind: str
    line: int | None = None
    detail: str = ""


class RenderError(Exception):
    """Raised when a template does not render."""

    def __init__(self, *found: RenderFault) -> None:
        super().__init__(", ".join(fault.kind for fault in found))
        self.found = found


def run(template: str, variables: Mapping[str, Any], output: int, traced: str = "") -> RenderedTemplate:
    """Return a template rendered in a separate process; raise `RenderError` if it does not render.

    `traced` is the same template with marks in its lines.
    """
    limits = {"seconds": SECONDS, "memory": MEMORY, "output": output}
    request = {"template": template, "variables": variables, "traced": traced, **limits}
    try:
        done = _completed(json.dumps(request).encode())
    except subprocess.TimeoutExpired:
        raise RenderError(RenderFault("time")) from None
    except OSError as error:
        raise RenderError(RenderFault("start", detail=error.strerror or str(error))) from None
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGPROF):
        raise RenderError(RenderFault("time"))
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise RenderError(_crash(done.returncode, done.stderr.decode(errors="replace"))) from None
    if "error" in answer:
        raise RenderError(*(RenderFault(each["kind"], each["line"], each["detail"]) for each in answer["error"]))
    return RenderedTemplate(answer["text"], frozenset(answer["names"]), answer.get("traced"))


def _completed(request: bytes) -> subprocess.CompletedProcess[bytes]:
    """Return the ended worker; raise `Abandoned` when the caller leaves, and `TimeoutExpired` after a long time."""
    with subprocess.Popen(  # noqa: S603 - our own file, by our own interpreter
        [sys.executable, "-I", str(_WORKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={},  # a template must not see the environment of this process
    ) as worker:
        until = time.monotonic() + _PATIENCE
        unsent: bytes | None = request
        try:
            while True:
                try:
                    out, err = worker.communicate(unsent, timeout=POLL_S)
                    return subprocess.CompletedProcess(worker.args, worker.returncode, out, err)
                except subprocess.TimeoutExpired:
                    unsent = None
                    check()
                    if time.monotonic() > until:
                        raise
        except BaseException:
            worker.kill()
            raise


def _crash(code: int, words: str) -> RenderFault:
    last = words.strip().rpartition("\n")[2]
    if "MemoryError" in words or code in (-signal.SIGABRT, -signal.SIGSEGV):
        return RenderFault("memory")
    if "_Overtime" in words:
        return RenderFault("time")
    return RenderFault("start", detail=last or f"exit status {code}")
