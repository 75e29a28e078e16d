"""The delay that another user of a service notices: workflows of one task, and cancellations, beside an attack."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from coterie.service.service import Service
from coterie.service.settings import Submission
from tests import limits
from tests.service.running_service import single

# The whole form of every attack: COTERIE_HOSTILE=full pytest --all tests/hostile
FULL = os.environ.get("COTERIE_HOSTILE") == "full"
# The longest delay at the 99th percentile. The short form runs beside other tests on a busy machine.
LIMIT_S = 2.0 if FULL else 60.0
PATIENCE_S = 600.0 if FULL else 60.0
# A whole attack takes longer than a test usually may.
TIME_LIMIT_S = 1800.0 if FULL else limits.TIME_LIMIT_S
ROUNDS = 40 if FULL else 4


def sized(short: int, full: int) -> int:
    """Return the size of an attack."""
    return full if FULL else short


@dataclass
class Delays:
    """The delays of probes and of cancellations in seconds, and how often the service was not ready."""

    probes: list[float] = field(default_factory=list)
    cancels: list[float] = field(default_factory=list)
    unready: int = 0
    problems: set[str] = field(default_factory=set)  # what the health said meanwhile

    def check(self, attack: str, allowed: Collection[str] = ()) -> None:
        """Print the percentiles, and fail where the 99th is over the limit, or another problem is said."""
        words = ", ".join(
            f"{name} {_at(found, 0.5):.2f} s and {_at(found, 0.99):.2f} s"
            for name, found in (("probes", self.probes), ("cancellations", self.cancels))
        )
        sys.stdout.write(f"\n{attack}: 50 and 99 % of {words}; not ready {self.unready} times")
        sys.stdout.write(f"; problems: {', '.join(sorted(self.problems)) or 'none'}\n")
        assert _at(self.probes, 0.99) < LIMIT_S
        assert _at(self.cancels, 0.99) < LIMIT_S
        assert not self.unready
        # A turn may be slow on a busy machine, which is then said; nothing else is wrong, unless other tests run too.
        assert not FULL or self.problems <= {"turn", *allowed}


def probed(service: Service, rounds: int = ROUNDS, beside: Callable[[Service], object] = lambda _: None) -> Delays:
    """Run probes and cancellations one after another; `beside` is done before each."""
    found = Delays()
    for number in range(rounds):
        beside(service)
        began = time.monotonic()
        ident = service.submit(_urgent("probe", "true"))["id"]
        view = service.wait(ident, timeout_s=PATIENCE_S)
        assert view["status"] == "COMPLETED", view
        found.probes.append(time.monotonic() - began)
        if number % 4 == 0:
            found.cancels.append(_cancelled(service))
        health = service.health()
        found.unready += not health["ready"]
        found.problems |= {each["what"] for each in health["problems"]}
    return found


def _cancelled(service: Service) -> float:
    ident = service.submit(_urgent("victim", "sleep 1000"))["id"]
    view = service.wait(ident, lambda one: bool(one["status"] == "RUNNING"), PATIENCE_S)
    assert view["status"] == "RUNNING", view
    began = time.monotonic()
    service.cancel(ident, force=True)
    view = service.wait(ident, timeout_s=PATIENCE_S)
    assert view["finished"], view
    return time.monotonic() - began


def _urgent(name: str, script: str) -> Submission:
    """Return a workflow that waits for nobody else's turn: the service is measured, and not the room in a pool."""
    return replace(single(name, script, gpu=0), priority="HIGH")


def _at(found: list[float], part: float) -> float:
    ordered = sorted(found)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]
