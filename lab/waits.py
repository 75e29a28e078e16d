"""Waits for something to happen in a lab, with the evidence when it does not."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, TypeVar

from coterie.sources.assemble import shortened
from lab.api import ApiError, Object
from lab.errors import LabError, TimeoutExpiredError
from lab.process import Program

if TYPE_CHECKING:
    from lab.cluster import Lab

T = TypeVar("T")

_SHORTEST, _LONGEST = 0.02, 0.25
# Timeouts are those of a quiet machine. On a busy one everything may take several times as long; a wait whose condition
# comes true ends at once all the same.
_BUSY = 3.0
_MOST_PODS, _MOST_EVENTS, _LONGEST_EVENT = 40, 8, 600
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def wait(lab: Lab, predicate: Callable[[], T], timeout: float, what: str) -> T:
    """Return what `predicate` returns as soon as that is true; raise with the evidence when the time is over."""
    awaited = what or getattr(predicate, "__name__", "it")
    return wait_for(predicate, timeout * _BUSY, awaited, lab.programs.values(), lambda: f"\n{evidence(lab)}")


def wait_for(
    predicate: Callable[[], T],
    timeout: float,
    what: str,
    programs: Collection[Program],
    explain: Callable[[], str] = lambda: "",
) -> T:
    """Return what `predicate` returns as soon as that is true; raise when the time is over or a program has ended."""
    deadline = time.monotonic() + timeout
    pause = _SHORTEST
    while True:
        # A process that was held up for long looks once more before it gives up.
        over = time.monotonic() > deadline
        if found := predicate():
            return found
        check(programs)
        if over:
            raise TimeoutExpiredError(f"not within {timeout:g} s: {what}{explain()}")
        time.sleep(pause)
        pause = min(_LONGEST, pause * 1.5)


def check(programs: Iterable[Program]) -> None:
    """Raise `LabError` with the last lines of a program that has ended by itself."""
    for program in programs:
        if ended := program.ended:
            raise LabError(f"{program.name} ended ({ended}): {program.tail(5) or 'no output'}")


def listens(port: int) -> bool:
    """Whether somebody accepts connections at a port of this machine."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def evidence(lab: Lab) -> str:
    """Return the evidence why something did not happen: pods, their events, and the scheduler's log."""
    parts = []
    try:
        parts.append("pods:\n" + "\n".join(_pod(pod) for pod in lab.objects("pods")[:_MOST_PODS]))
        events = sorted(lab.objects("events"), key=lambda event: str(event.get("lastTimestamp") or ""))
        parts.append("events:\n" + "\n".join(_event(event) for event in events[-_MOST_EVENTS:]))
    except ApiError as error:
        parts.append(f"(no pods or events: {error})")
    schedulers = [program for name, program in lab.programs.items() if name.startswith(("kai-", "kube-scheduler"))]
    parts += [f"{program.name}:\n{_last_words(program)}" for program in schedulers]
    parts.append(f"logs: {lab.logs}")
    return "\n".join(parts)


def _last_words(program: Program) -> str:
    return "\n".join(shortened(_COLOUR.sub("", line), 300) for line in program.tail(10).splitlines())


def _pod(pod: Object) -> str:
    meta, status = pod["metadata"], pod.get("status", {})
    place = pod["spec"].get("nodeName", "no node")
    return f"  {meta['namespace']}/{meta['name']}: {status.get('phase', '?')} on {place}"


def _event(event: Object) -> str:
    about = event.get("involvedObject", {})
    said = " ".join(str(event.get("message")).split())
    return f"  {about.get('kind')} {about.get('name')}: {event.get('reason')}: {shortened(said, _LONGEST_EVENT)}"
