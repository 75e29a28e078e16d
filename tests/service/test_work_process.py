"""Long computations of requests run in processes of their own, which end with their callers."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from coterie.cancellation import Abandoned, cancelled_by
from coterie.errors import Fault, Hint, SpecErrors, Unavailable, UsageError
from coterie.service.service import Service
from coterie.service.work_process import WorkProcesses, _decoded, _encoded
from tests.eventually import eventually
from tests.service.running_service import ServiceFolder, task, workflow

pytestmark = pytest.mark.slow("starts processes that load the planner")


@pytest.fixture(autouse=True)
def modules_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes find the functions of this module, which they do not look for in the current folder."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.fixture
def processes() -> Iterator[WorkProcesses]:
    found = WorkProcesses(1)
    yield found
    found.close()


def own() -> tuple[int, int]:
    return os.getpid(), os.nice(0)


def faulty() -> None:
    raise SpecErrors([Fault("it is wrong", hint=Hint("Use --this.", "--this"))])


def lasting(folder: str) -> None:
    Path(folder, str(os.getpid())).touch()
    time.sleep(600)


def endless() -> None:
    while True:
        pass


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_work_is_done_by_one_process_after_another_with_a_low_priority(processes: WorkProcesses) -> None:
    pid, nice = processes.run("it", own)
    assert pid != os.getpid()
    assert nice > os.nice(0)
    assert processes.run("it", own) == (pid, nice)


def test_an_error_comes_back_whole(processes: WorkProcesses) -> None:
    with pytest.raises(SpecErrors, match="it is wrong") as raised:
        processes.run("it", faulty)
    assert raised.value.faults[0].hint == "Use --this."


def test_work_ends_when_its_caller_leaves(processes: WorkProcesses, tmp_path: Path) -> None:
    left, ended = threading.Event(), list[BaseException]()

    def ask() -> None:
        with cancelled_by(left):
            try:
                processes.run("it", lasting, str(tmp_path))
            except Abandoned as error:
                ended.append(error)

    caller = threading.Thread(target=ask)
    caller.start()
    eventually(lambda: bool(list(tmp_path.iterdir())))
    [pid] = (int(each.name) for each in tmp_path.iterdir())
    left.set()
    caller.join(60)
    assert ended
    assert not Path(f"/proc/{pid}").exists()
    assert processes.run("it", own)[0] != pid


def test_work_has_a_limit_of_processor_time() -> None:
    processes = WorkProcesses(1, processor_s=1)
    with pytest.raises(UsageError, match="it takes more than 1 s of processor time"):
        processes.run("it", endless)
    processes.close()


def test_a_process_that_was_killed_is_replaced(processes: WorkProcesses) -> None:
    with pytest.raises(Unavailable, match="the process that worked on it has ended"):
        processes.run("it", killed)
    assert processes.run("it", own)


def test_a_process_that_was_killed_while_idle_is_not_used(processes: WorkProcesses) -> None:
    pid, _ = processes.run("it", own)
    os.kill(pid, signal.SIGKILL)
    assert processes.run("it", own)[0] != pid


def test_modules_in_the_current_folder_are_not_imported(
    processes: WorkProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("select.py").write_text("raise SystemExit('not the module of Python')")
    monkeypatch.chdir(tmp_path)
    assert processes.run("it", own)


def test_a_process_answers_where_more_than_a_thousand_files_are_open(processes: WorkProcesses) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2048)), hard))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        while (number := os.open(os.devnull, os.O_RDONLY)) < 1024:
            stack.callback(os.close, number)
        stack.callback(os.close, number)
        assert processes.run("it", own)


def test_a_large_submission_and_a_large_plan_are_the_same_as_small_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = {f"g{number}": [task(f"t{number}", "true")] for number in range(3)}
    text = workflow("three", groups, gpu=0)
    with Service(ServiceFolder(tmp_path / "place").settings()) as service:
        here, ident = service.plan(text), service.submit(text)["id"]
        assert service.wait(ident, timeout_s=60)["status"] == "COMPLETED"
        monkeypatch.setattr("coterie.service.workflow_operations._LARGE", 0)
        monkeypatch.setattr("coterie.service.workflow_operations._LARGE_PLAN", 0)
        there, again = service.plan(text), service.submit(text, plan=here["id"])["id"]
        assert service.wait(again, timeout_s=60)["status"] == "COMPLETED"
        assert service._processes._all
    for each in (here, there):
        each["stats"] = None
    assert there == here
    assert not service._processes._all


class Growth:
    """A value that another one gains an entry with, when it is copied for the first time."""

    def __init__(self, grown: dict[str, object]) -> None:
        self.grown = grown

    def __reduce__(self) -> tuple[type[int], tuple[()]]:
        self.grown["meanwhile"] = 1
        return int, ()


def test_a_value_that_grows_while_it_is_copied_is_copied_again() -> None:
    value: dict[str, object] = {}
    value |= {"first": Growth(value), "second": 2}
    assert _decoded(_encoded(value)) == {"first": 0, "second": 2, "meanwhile": 1}
