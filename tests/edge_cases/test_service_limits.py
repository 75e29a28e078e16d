"""The limits of a service: tasks, processes, open files, and periods without a leader."""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from coterie.config.configuration import Pool
from coterie.errors import SpecErrors
from coterie.service.service import Service
from coterie.service.settings import Submission
from coterie.service.submission.compilation import read, rehearse
from coterie.topology.levels import Topology
from tests.backends.local.test_open_files import few_files
from tests.eventually import eventually
from tests.service.running_service import ServiceFolder, single, task, workflow

pytestmark = pytest.mark.slow("fills a running service up to its limits")

Json = dict[str, Any]
PATIENCE_S = 120.0


@pytest.fixture
def place(tmp_path: Path) -> ServiceFolder:
    return ServiceFolder(tmp_path / "place")


@pytest.fixture
def small(place: ServiceFolder) -> Iterator[Service]:
    with Service(place.settings(processes=4)) as found:
        yield found


def crowd(name: str, tasks: int, script: str = "true", fields: str = "") -> Submission:
    """Return a workflow of one group of tasks that need no GPU."""
    members = [task(f"t{number}", script, "" if number else "lead: true") for number in range(tasks)]
    found = workflow(name, {"g": members}, gpu=0)
    return Submission(found.source.replace(b"  - name: g\n", f"  - name: g\n{fields}".encode()))


def refused(service: Service, submission: Submission) -> list[tuple[str, str]]:
    """Return message and hint of each fault; a dry run has the same ones."""
    found = []
    for ask in (service.submit, lambda one: service.plan(one, rehearsed=True)):
        with pytest.raises(SpecErrors) as caught:
            ask(submission)
        assert all(fault.place and fault.place.line for fault in caught.value.faults)
        found.append([(fault.message, fault.hint) for fault in caught.value.faults])
    assert found[0] == found[1]
    return found[0]


def test_the_memory_that_a_check_takes_does_not_grow_with_the_square_of_the_tasks() -> None:
    found = read(crowd("large", 3000, fields="    barrier: false\n"))
    tracemalloc.start()
    try:
        rehearse(found, Pool.for_levels(Topology()), {})
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8 << 20


def test_a_workflow_of_more_tasks_than_are_taken_is_refused_with_one_fault() -> None:
    groups = "".join(f"  - {{name: t{number}, image: i, command: [run]}}\n" for number in range(10_001))
    found = read(Submission(f"version: 2\nworkflow:\n  name: large\n  tasks:\n{groups}".encode()))
    with pytest.raises(SpecErrors) as caught:
        rehearse(found, Pool.for_levels(Topology()), {})
    [fault] = caught.value.faults
    assert fault.message == "the workflow has 10,001 tasks, and at most 10,000 are allowed"
    assert "several workflows" in fault.hint
    assert (fault.place and fault.place.line) == 4


def test_a_gang_of_more_tasks_than_ever_run_at_a_time_is_refused_when_it_is_submitted(small: Service) -> None:
    [(message, hint)] = refused(small, crowd("gang", 5))
    assert message == 'group "g" has 5 tasks that start together, and at most 4 tasks run at a time here'
    assert "--processes 5" in hint
    assert "barrier: false" in hint
    assert small.submit(crowd("fits", 4))["created"]


def test_a_plan_says_of_such_a_gang_that_it_never_starts(small: Service) -> None:
    warnings = small.plan(crowd("gang", 5))["warnings"]
    assert [(each["code"], "at most 4 tasks run at a time" in each["message"]) for each in warnings][-1] == (
        "NeverFits",
        True,
    )


def test_a_gang_that_was_taken_when_more_could_run_fails_in_words_when_it_is_its_turn(place: ServiceFolder) -> None:
    with Service(place.settings(processes=8)) as service:
        hold = service.submit(crowd("hold", 1, "sleep 600"))["id"]
        service.wait(hold, lambda view: view["status"] == "RUNNING", timeout_s=PATIENCE_S)
        ident = service.submit(crowd("gang", 8))["id"]
        service.wait(ident, lambda view: view["waiting"], timeout_s=PATIENCE_S)
    with Service(place.settings(processes=4)) as service:
        service.cancel(hold, force=True)
        view = service.wait(ident, timeout_s=PATIENCE_S)
    assert view["status"] == "FAILED_BACKEND_ERROR"
    assert "8 tasks are to start together, and at most 4 tasks run at a time here" in view["message"]


def test_tasks_without_a_barrier_run_as_room_comes_and_never_more_at_a_time(small: Service, tmp_path: Path) -> None:
    script = f"echo + >> {tmp_path}/trace; sleep 0.05; echo - >> {tmp_path}/trace"
    fields = "    barrier: false\n    ignoreNonleadStatus: false\n"
    ident = small.submit(crowd("sweep", 12, script, fields))["id"]
    view = small.wait(ident, timeout_s=PATIENCE_S)
    assert (view["status"], view["tasks"]["completed"]) == ("COMPLETED", 12)
    depth = most = 0
    for line in (tmp_path / "trace").read_text().split():
        depth += 1 if line == "+" else -1
        most = max(most, depth)
    assert 1 <= most <= 4


def test_gangs_that_wait_for_open_files_are_told_of_and_start_together_when_there_are_some(
    place: ServiceFolder, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    here = tmp_path / "here"
    here.mkdir()
    meet = f"touch {here}/$COTERIE_RANK; until test $(ls {here} | wc -l) -ge 60; do sleep 0.2; done"
    with few_files(320), Service(place.settings(processes=400)) as service, ExitStack() as after:
        [(message, hint)] = refused(service, crowd("never", 150))
        assert "at most 112 tasks run at a time here, because no more than 320 files may be open" in message
        assert "ulimit -n" in hint
        after.callback(gate.touch)  # whatever comes, nobody waits there for ever
        first = service.submit(crowd("first", 80, f"until test -e {gate}; do sleep 0.2; done"))["id"]
        assert service.wait(first, lambda view: view["status"] == "RUNNING", timeout_s=PATIENCE_S)
        second = service.submit(crowd("second", 60, meet))["id"]
        eventually(lambda: service.workflow(second)["waiting"], "nothing is said")
        waiting = service.workflow(second)["waiting"]
        assert waiting["reason"] == "NoCapacity"
        assert "112" in waiting["message"]
        assert list(here.iterdir()) == []
        gate.touch()
        assert service.wait(second, timeout_s=PATIENCE_S)["status"] == "COMPLETED"


def seconds(view: Json) -> float:
    """Return how long something ran."""
    return (datetime.fromisoformat(view["ended"]) - datetime.fromisoformat(view["started"])).total_seconds()


def left_alone(place: ServiceFolder, submission: Submission) -> tuple[str, Path]:
    """Run a task to its end while no service is there; return the workflow and the task's folder."""
    with Service(place.settings()) as service:
        ident = service.submit(submission)["id"]
        view = service.wait(ident, lambda view: bool(view["started"]), timeout_s=PATIENCE_S)
        assert view["started"], view
    folder = place.folder / f"state/tasks/{ident}/g/t/1"
    Path(f"{place.folder}/gate").touch()
    eventually((folder / "exit").exists, "the task does not end")
    return ident, folder


@pytest.mark.parametrize(("code", "status"), [(0, "COMPLETED"), (7, "FAILED")])
def test_a_task_that_ended_in_time_while_the_service_was_down_is_judged_by_its_own_clock(
    place: ServiceFolder, code: int, status: str
) -> None:
    script = f"until test -e {place.folder}/gate; do sleep 0.02; done; exit {code}"
    ident, _ = left_alone(place, single("alone", script, rest="  timeout: {exec_timeout: 40s}\n"))
    # The service comes back long after the limit.
    with Service(place.settings(now=lambda: time.time() + 100)) as service:
        view = service.wait(ident, timeout_s=PATIENCE_S)
    [one] = view["groups"][0]["tasks"]
    assert (view["status"], one["exit_code"]) == (status, code), view
    assert [seconds(each) < 40 for each in (view, view["groups"][0], one)] == [True] * 3


def test_a_task_that_ended_too_late_while_the_service_was_down_is_over_its_time(place: ServiceFolder) -> None:
    script = f"until test -e {place.folder}/gate; do sleep 0.02; done; sleep 1.2"
    ident, _ = left_alone(place, single("alone", script, rest="  timeout: {exec_timeout: 1s}\n"))
    with Service(place.settings()) as service:
        view = service.wait(ident, timeout_s=PATIENCE_S)
    [one] = view["groups"][0]["tasks"]
    assert (view["status"], one["status"]) == ("FAILED_EXEC_TIMEOUT", "FAILED_EXEC_TIMEOUT")
    assert seconds(one) >= 1


def test_what_a_task_has_written_is_found_in_one_place_before_and_after_its_end(
    place: ServiceFolder, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with Service(place.settings()) as service:
        ident = service.submit(single("out", f"echo kept > {{{{output}}}}/said; cat {gate}"))["id"]
        said = place.folder / f"state/tasks/{ident}/g/t/1/output/said"
        eventually(said.exists, "nothing is written")
        gate.write_text("go")
        assert service.wait(ident, timeout_s=PATIENCE_S)["finished"]
        eventually((place.folder / "state/tasks/.ended" / ident).exists, "it is not archived")
        assert said.read_text() == "kept\n"
        service.delete(ident)
        eventually(lambda: not said.exists(), "it is still there")
        assert not (place.folder / "state/tasks" / ident).is_symlink()
