"""The budget of all logs."""

from __future__ import annotations

from pathlib import Path

from coterie.backends.local.attempt_folder import ENDED
from coterie.backends.local.files.log_budget import LogBudget


def test_running_logs_count_and_the_oldest_ended_ones_give_way(tmp_path: Path) -> None:
    def log(workflow: str, size: int) -> Path:
        path = tmp_path / workflow / "g" / "t" / "1" / "log"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * size)
        return path

    old, new = log(f"{ENDED}/old-1", 2000), log(f"{ENDED}/new-2", 2000)
    budget = LogBudget(tmp_path, 5000)
    budget.add("old-1")
    budget.add("new-2")
    assert (old.stat().st_size, new.stat().st_size) == (2000, 2000)

    running = log("running-3", 2000)
    budget.add("new-2")
    assert old.stat().st_size == 2000, "running logs are measured by the check alone"
    budget.check()
    assert b"this log was removed" in old.read_bytes()
    assert (new.stat().st_size, running.stat().st_size) == (2000, 2000)

    running.parents[3].rename(tmp_path / ENDED / "running-3")
    budget.add("running-3")
    assert new.stat().st_size == 2000, "it counts once"
