"""Many short local tasks end, and queries about them stay cheap."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

import pytest

from coterie.backends.local.work_order import AttemptEnded
from tests.backends.local.builders import order, reached, supervising

# A thousand take half a minute on two processors, so they are for whoever asks.
TASKS = int(os.environ.get("COTERIE_SHORT_TASKS", "200"))


@pytest.mark.slow("runs hundreds of processes")
def test_many_short_tasks_end_and_asking_about_them_is_cheap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = [order("true", task=f"t{number}") for number in range(TASKS)]
    with supervising(tmp_path / "root", processes=8) as supervisor:
        begun = time.perf_counter()
        for each in wanted:
            supervisor.start([each])
        accepted = time.perf_counter() - begun
        for each in wanted:
            reached(supervisor, each.key, AttemptEnded)
        took = time.perf_counter() - begun
        asked = math.inf
        for _ in range(5):  # the machine may stop the test at any of them
            begun = time.perf_counter()
            found = supervisor.statuses()
            asked = min(asked, time.perf_counter() - begun)
        with capsys.disabled():
            print(f"\n{TASKS} tasks: {took / TASKS * 1e3:.1f} ms each, accepted in {accepted / TASKS * 1e3:.2f} ms,")  # noqa: T201 - a measurement is meant to be seen
            print(f"asked about all of them in {asked * 1e3:.2f} ms")  # noqa: T201 - the same
        assert all(isinstance(status, AttemptEnded) and status.exit_code == 0 for status in found.values())
        assert len(found) == TASKS
        assert asked < accepted, "a question about all is cheaper than their start"
