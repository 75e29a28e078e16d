"""Full disks and missing permissions are reported in plain words; a file-size limit simulates a full disk."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from coterie.backends.local.supervisor import ProcessLimits, Supervisor
from coterie.backends.local.work_order import AttemptEnded, AttemptLost
from coterie.errors import Unavailable
from tests.backends.local.builders import ended, key, order, piece, reached, shell, supervising


def cramped(limit: int, action: Callable[[], str]) -> str:
    """Return what an action says in a process that cannot make files larger than a limit."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            os.write(theirs, action().encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as answer:
        said = answer.read().decode()
    os.waitpid(pid, 0)
    return said


def test_a_disk_too_full_to_start_is_told_in_words_and_nothing_is_left_half_made(tmp_path: Path) -> None:
    def start() -> str:
        supervisor = Supervisor(tmp_path / "root", ProcessLimits(inherited=()))
        big = order("true", task="big", files=(("/big", "x" * 10_000),))
        try:
            supervisor.start([order("true"), big])
        except Unavailable as error:
            return f"{error} | {error.hint} | {supervisor.statuses()}"
        return "started"

    said = cramped(2000, start)
    assert said.startswith('cannot start "t", "big": File too large | ')
    assert "it needs room" in said
    assert said.endswith("| {}")
    with supervising(tmp_path / "root") as supervisor:
        assert supervisor.statuses() == {}
        assert [end.exit_code for end in ended(supervisor, order("true"))] == [0]


def test_a_disk_too_full_for_the_last_word_stops_a_task_before_its_first(tmp_path: Path) -> None:
    def start() -> str:
        supervisor = Supervisor(tmp_path / "root", ProcessLimits(inherited=()))
        supervisor.start([order("touch", f"{tmp_path}/ran")])
        return str(reached(supervisor, key(), AttemptLost))

    said = cramped(500, start)
    assert "the process that watches it could not start: File too large" in said
    assert not (tmp_path / "ran").exists()
    with supervising(tmp_path / "root") as supervisor:
        assert isinstance(supervisor.status(key()), AttemptLost)


def test_a_disk_that_fills_up_costs_the_log_and_not_the_task(tmp_path: Path) -> None:
    def start() -> str:
        supervisor = Supervisor(tmp_path / "root", ProcessLimits(inherited=("PATH",)))
        supervisor.start([shell("head -c 100000 /dev/zero; exit 4")])
        return str(reached(supervisor, key(), AttemptEnded))

    said = cramped(3000, start)
    assert "exit_code=4" in said
    assert "the log is incomplete: File too large" in said
    with supervising(tmp_path / "root") as supervisor:
        assert len(piece(supervisor, key())) == 3000


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_is_not_ours_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(Unavailable, match="Permission denied"):
        Supervisor(tmp_path / "closed" / "root")


def test_too_many_open_files_is_told_in_words_and_passes(tmp_path: Path) -> None:
    with supervising(tmp_path / "root") as supervisor:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        ended(supervisor, order("true", task="warm"))
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
        try:
            with pytest.raises(Unavailable, match="Too many open files"):
                supervisor.start([order("true")])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert [end.exit_code for end in ended(supervisor, order("true"))] == [0]
