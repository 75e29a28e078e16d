"""Few open files: tasks wait for file handles, start together or not at all, and keep their own limit."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.backends.local import supervisor
from coterie.backends.local.machine import open_files
from coterie.backends.local.shim_launcher import ForkServer, ShimProcess
from coterie.backends.local.work_order import AttemptEnded, AttemptLost, AttemptRunning, AttemptStarting
from coterie.errors import UsageError
from tests.backends.local.builders import ended, key, order, piece, reached, shell, supervising
from tests.eventually import eventually


@contextlib.contextmanager
def few_files(limit: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_tasks_have_the_limit_of_open_files_that_there_was_before_it_was_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_files, "_before", [])
    with few_files(700), supervising(tmp_path / "root") as found:
        open_files.raise_limit()
        open_files.raise_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 700
        ended(found, shell("ulimit -Sn"))
        assert piece(found, key()) == b"700\n"


@given(st.integers(1, 20_000))
def test_the_limit_that_is_asked_for_is_enough_and_hardly_more(tasks: int) -> None:
    def most(limit: int) -> int:
        return limit - max(96, limit // 4)

    wanted = open_files.wanted_for(tasks)
    assert most(wanted) >= tasks * open_files.PER_TASK > most(wanted - 2)


def test_more_than_there_are_handles_for_are_refused_in_words(tmp_path: Path) -> None:
    with few_files(256), supervising(tmp_path / "root", processes=400) as found:
        with pytest.raises(
            UsageError, match="at most 80 tasks run at a time here, because no more than 256 files"
        ) as caught:
            found.start([order("true", task=f"t{number}") for number in range(150)])
        assert "ulimit -n 400" in caught.value.hint
        assert found.statuses() == {}


def test_those_for_whom_there_are_no_handles_wait_say_so_and_start_together_when_there_are(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    first = [shell(f"until test -e {gate}; do sleep 0.1; done", task=f"a{number}") for number in range(60)]
    second = [order("true", task=f"b{number}") for number in range(60)]
    with few_files(256), supervising(tmp_path / "root", processes=400) as found:
        found.start(first)
        assert found.problem == ""
        found.start(second)
        assert {found.status(each.key) for each in second} == {AttemptStarting()}
        assert "60 tasks cannot start (w-1/g/b0/1, " in found.problem
        assert "256 files" in found.problem
        gate.touch()
        ends = [reached(found, each.key, AttemptEnded) for each in second]
        assert all(isinstance(end, AttemptEnded) and end.exit_code == 0 for end in ends)
        assert found.problem == ""


class Closed(ForkServer):
    """A fork_server that starts two shims and then no more."""

    left = 2

    def launch(self, folder: Path) -> ShimProcess:
        if not type(self).left:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        type(self).left -= 1
        return super().launch(folder)


def test_those_that_began_without_the_others_are_ended_when_the_others_cannot_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coterie.backends.local.attempts.ForkServer", Closed)
    monkeypatch.setattr(supervisor, "_PATIENCE_S", 0.3)
    company = [order("sleep", "1000", task=task) for task in "abcd"]
    with supervising(tmp_path / "root") as found:
        found.start(company)
        assert "2 tasks cannot start (w-1/g/c/1, w-1/g/d/1): Too many open files" in found.problem
        states = [reached(found, each.key, AttemptEnded) for each in company]
        assert [type(each) for each in states] == [AttemptEnded, AttemptEnded, AttemptLost, AttemptLost]
        assert states[3] == AttemptLost("it could not start together with the others: Too many open files")
        found.statuses()
        assert found.problem == ""
        monkeypatch.setattr(Closed, "left", 10)
        assert isinstance(reached_anew(found, tmp_path), AttemptRunning)


def reached_anew(found: supervisor.Supervisor, tmp_path: Path) -> object:
    """Return what becomes of the next attempt."""
    found.start([shell(f"touch {tmp_path}/again; sleep 1000", attempt=2)])
    eventually((tmp_path / "again").exists, "nothing begins")
    return reached(found, key(attempt=2), AttemptRunning)


def test_a_handle_that_finds_no_room_is_one_too_few_and_no_other_problem(tmp_path: Path) -> None:
    fork_server = ForkServer()
    (tmp_path / "attempt").mkdir()
    fork_server.launch(tmp_path / "attempt").close()
    taken: list[int] = []
    try:
        with few_files(max(map(int, os.listdir("/proc/self/fd"))) + 4):  # noqa: PTH208 - numbers alone
            with contextlib.suppress(OSError):
                while True:
                    taken.append(os.dup(0))
            for each in (taken.pop(), taken.pop()):
                os.close(each)
            with pytest.raises(OSError, match="Too many open files"):
                fork_server.launch(tmp_path / "attempt")
    finally:
        for each in taken:
            os.close(each)
        fork_server.close()
