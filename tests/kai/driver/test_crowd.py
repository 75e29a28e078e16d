"""Many gangs at once on racks that hold few of them: each runs whole, and all run in the end.

A share runs in every test run, and fifty gangs on racks for ten with COTERIE_CROWD=full.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from lab.api import ApiError

from lab import Lab
from tests.kai.driver.service_on_kai import CONFIG, OWN, RACK, ZONE, add_nodes, serving, settings
from tests.service.running_service import task, workflow

GANGS, ROOM = (50, 10) if os.environ.get("COTERIE_CROWD") == "full" else (12, 3)
# A gang that runs ends by itself, after a while.
ENDS = {"metadata": {"annotations": {"coterie.dev/lab-runs-for": "1s"}}}
# KAI chooses nodes for all pods of a gang in one round, and its binder binds them one after the other. A gang of which
# some pods are bound and others not even chosen for so many more rounds is a partial one.
PARTIAL_ROUNDS = 3


def _cluster() -> str:
    keys = f"topology_keys: [{{key: zone, label: {ZONE}}}, {{key: rack, label: {RACK}}}]\nnodes:\n"
    line = "- {{name: r{n}-n{m}, gpu: 8, cpu: 64, memory: 1Ti, domains: {{zone: a, rack: r{n}}}}}\n"
    return keys + "".join(line.format(n=n, m=m) for n in range(ROOM) for m in range(2))


class Sightings:
    """Observations of gangs: KAI's rounds since one is partial, and the most at a time; ends those that run."""

    def __init__(self) -> None:
        self.partial: dict[str, int] = {}
        self.worst = 0
        self.most = 0
        self._read, self._rounds = 0, 0
        self.ending: set[str] = set()

    def look(self, lab: Lab) -> None:
        """Look at all pods once."""
        bound: dict[str, list[bool]] = defaultdict(list)
        waiting: dict[str, set[str]] = defaultdict(set)
        runs: dict[str, list[str]] = defaultdict(list)
        for pod in lab.objects("pods", selector=OWN):
            if "deletionTimestamp" not in pod["metadata"]:
                name = pod["metadata"]["labels"]["coterie.dev/workflow"]
                bound[name].append("nodeName" in pod["spec"])
                if "nodeName" not in pod["spec"]:
                    waiting[name].add(pod["metadata"]["name"])
                if pod["status"].get("phase") == "Running":
                    runs[name].append(pod["metadata"]["name"])
        chosen = {request["spec"]["podName"] for request in lab.objects("bindrequests")}
        rounds = self._rounds_of(lab.programs["kai-scheduler"].log)
        partial = {name for name, found in bound.items() if any(found) and waiting[name] - chosen}
        self.partial = {name: self.partial.get(name, rounds) for name in partial}
        self.worst = max([self.worst, *(rounds - since for since in self.partial.values())])
        for name in runs.keys() - self.ending:
            if len(runs[name]) == len(bound[name]):
                self.ending.add(name)
                for each in runs[name]:
                    # The first one may have ended the gang by now.
                    with suppress(ApiError):
                        lab.api.patch("pods", each, ENDS, "default")
        self.most = max(self.most, sum(len(found) == 2 for found in runs.values()))

    def _rounds_of(self, log: Path) -> int:
        """Return how many rounds KAI has told of since this was asked first."""
        with log.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        self._rounds += new.count(b"End scheduling") if self._read else 0
        self._read += len(new)
        return self._rounds


@contextmanager
def _watched(lab: Lab) -> Iterator[Sightings]:
    found, over = Sightings(), threading.Event()

    def look() -> None:
        while not over.wait(0.2):
            found.look(lab)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join(30)


def test_no_gang_of_a_crowd_ever_runs_in_part_and_all_run_in_the_end(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_nodes(lab, _cluster())
    groups = {"g": [task("a", "run", "lead: true"), task("b", "run")]}
    config = CONFIG.replace("limit: 64", f"limit: {16 * GANGS}")
    with serving(lab, settings(tmp_path, config=config)) as here, _watched(lab) as seen:
        idents = [here.submit(workflow(f"w{n}", groups, gpu=8, topology="[{key: rack}]")) for n in range(GANGS)]
        for ident in idents:
            lab.wait(lambda ident=ident: here.service.store.workflow(ident).finished, 300, f"{ident} is finished")  # type: ignore[misc]
        assert {here.status(ident) for ident in idents} == {"COMPLETED"}
        assert {one["attempt"] for ident in idents for one in here.tasks(ident).values()} == {1}
        assert here.left() == {}
    with capsys.disabled():
        print(f"\n{GANGS} gangs on {ROOM} racks, at most {seen.most} at a time, partial for {seen.worst} rounds")  # noqa: T201 - counts
    assert seen.worst < PARTIAL_ROUNDS
    assert seen.most <= ROOM
