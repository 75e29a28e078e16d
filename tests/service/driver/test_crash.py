"""Kills at random moments leave every workflow with the result it would have had."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.service.crash_worker import DISTURBANCES, submissions

pytestmark = pytest.mark.slow("kills a service again and again, at random moments")

KILLS = int(os.environ.get("COTERIE_KILLS", "100"))
SEEDS = [1, 2, 3, 4]


@pytest.mark.parametrize("seed", SEEDS)
def test_after_kills_at_random_moments_every_workflow_ends_as_it_would_have(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "place"
    kills = KILLS // len(SEEDS)
    done = subprocess.run(
        [sys.executable, "-m", "tests.service.crash_worker", str(folder), str(kills), str(seed)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    wanted = submissions(folder / "ledger")
    lines = (folder / "ledger").read_text(encoding="utf-8").splitlines()
    runs = Counter((line.split()[0].rpartition("-")[0], line.split()[1]) for line in lines)
    expected = {(_name(each.source), task): count for each, _, tasks in wanted for task, count in tasks.items()}
    assert found["ended"].keys() == {_name(each.source) for each, _, _ in wanted}
    assert {name: ended[:2] for name, ended in found["ended"].items()} == {
        _name(each.source): [status, True] for each, status, _ in wanted
    }
    assert max(Counter(lines).values()) == 1, "an attempt ran twice"
    assert runs == expected
    assert found["held"] == {}
    eventually(lambda: not _left(folder), lambda: _left(folder))


@pytest.mark.parametrize("seed", [5, 6])
def test_cancels_retries_deletions_pools_and_killed_watchers_beside_the_kills_lose_and_repeat_nothing(
    tmp_path: Path, seed: int
) -> None:
    folder = tmp_path / "place"
    kills = KILLS // len(SEEDS)
    done = subprocess.run(
        [sys.executable, "-m", "tests.service.crash_worker", str(folder), str(kills), str(seed), "disturbed"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    lines = (folder / "ledger").read_text(encoding="utf-8").splitlines()
    assert max(Counter(lines).values()) == 1, "an attempt ran twice"
    deleted = {ident.rpartition("-")[0] for ident in found["deleted"]}
    assert found["ended"].keys() | deleted == {_name(each.source) for each, _, _ in submissions(folder / "ledger")}
    assert found["ended"].keys().isdisjoint(deleted)
    assert {ended[1] for ended in found["ended"].values()} <= {True}
    assert not [ident for ident in found["deleted"] if (folder / "state" / "tasks" / ident).exists()]
    assert found["held"] == {}
    assert found["problems"] == []
    # Which of them meet something that they can change depends on the moment.
    assert kills < len(DISTURBANCES) or found["disturbances"]
    eventually(lambda: not _left(folder), lambda: _left(folder))


def _name(source: bytes) -> str:
    return source.decode().split("name: ", 1)[1].split("\n", 1)[0]


def _left(folder: Path) -> list[str]:
    """Return the processes whose environment speaks of the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if str(folder).encode() in entry.read_bytes():
                found.append(entry.parent.name)
        except OSError:
            continue
    return found
