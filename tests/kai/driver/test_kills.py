"""A service that is killed again and again while its workflows run on a real cluster.

A share of the kills happens in every run. All of them: COTERIE_KILLS=200 pytest -q -s tests/kai/driver/test_kills.py
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from lab.api import ApiError

from lab import Lab
from tests.cli.command import ROOT
from tests.eventually import eventually
from tests.kai.driver.service_on_kai import KINDS, OWN, add_nodes
from tests.seed import SEED

KILLS = int(os.environ.get("COTERIE_KILLS", "6"))
# Actions and writes between two kills; a round of workflows has about a hundred of them.
_FURTHEST = 20
_PER_ROUND = 8
# In KAI, channels can stay taken after their pods are gone (docs/kai.md, P), on a busy machine mostly. A round takes
# those of one rack, and there are two racks; so KAI is restarted after every other kill, which takes half a second.
_RESTART_KAI = 2
_WORKER_S = 600.0
_STATUSES = {"run": "COMPLETED", "wait": "FAILED_CANCELED", "fail": "COMPLETED"}


@contextmanager
def _seen(lab: Lab) -> Iterator[dict[tuple[str, str], set[str]]]:
    """Collect the uids of all objects by kind and name, for as long as the block lasts."""
    found: dict[tuple[str, str], set[str]] = {}
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            for kind in ("pods", "podgroups.scheduling.run.ai", "computedomains"):
                # What one look misses, the next one sees.
                with suppress(ApiError):
                    for each in lab.objects(kind, selector=OWN):
                        found.setdefault((kind, each["metadata"]["name"]), set()).add(each["metadata"]["uid"])

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join(30)


@pytest.mark.time_limit(900 + 30 * KILLS)
def test_a_killed_service_loses_nothing_creates_nothing_twice_and_leaves_nothing(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_nodes(lab)
    rounds = -(-KILLS // _PER_ROUND)
    dice = random.Random(SEED)  # noqa: S311 - moments of kills
    killed = 0
    with _seen(lab) as uids:
        while killed < KILLS:
            done = _worker(lab, tmp_path, dice.randint(1, _FURTHEST), rounds)
            if done.returncode != -signal.SIGKILL:
                # All rounds are over before the last kill: there are more.
                assert done.returncode == 0, done.stderr
                rounds += 1
                continue
            killed += 1
            if killed % _RESTART_KAI == 0:
                lab.programs["kai-scheduler"].stop()
                lab.programs["kai-scheduler"].start()
        done = _worker(lab, tmp_path, 0, rounds)
        assert done.returncode == 0, done.stderr
        eventually(lambda: _left(lab) == [], lambda: str(_left(lab)))
    statuses = json.loads(done.stdout)
    wanted = {f"{name}{n}-1": status for n in range(rounds) for name, status in _STATUSES.items()}
    twice = {name: found for name, found in uids.items() if len(found) > 1}
    with capsys.disabled():
        counted = f"{killed} kills, {len(wanted) + rounds} workflows, {len(uids)} objects"
        print(f"\n{counted}: leaked {len(_left(lab))}, created twice {len(twice)}")  # noqa: T201 - counts
    assert statuses == wanted
    assert twice == {}


def _left(lab: Lab) -> list[str]:
    return [each["metadata"]["name"] for kind in KINDS for each in lab.objects(kind, selector=OWN)]


def _worker(lab: Lab, folder: Path, after: int, rounds: int) -> subprocess.CompletedProcess[str]:
    program = (sys.executable, "-m", "tests.kai.driver.kill_worker")
    command = [*program, str(folder), str(lab.kubeconfig), str(after), str(rounds)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=_WORKER_S)
