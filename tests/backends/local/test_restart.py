"""Kills of any process at any time: no task runs twice, is lost silently, or is left running."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie.backends.local.attempt_folder import holder_of
from coterie.backends.local.machine.processes import ProcessIdentity
from coterie.backends.local.shim.ownership import stat
from coterie.backends.local.supervisor import ProcessLimits, Supervisor
from coterie.backends.local.work_order import AttemptEnded, AttemptKey, AttemptLost, AttemptRunning, WorkOrder
from tests.backends.local.builders import (
    asleep,
    children,
    ended,
    key,
    left,
    order,
    piece,
    reached,
    running,
    shell,
    supervising,
)
from tests.eventually import eventually

TASKS = 40


def in_another_process(action: Callable[[], None]) -> int:
    """Do something in a copy of this process, which may be killed; return its number."""
    pid = os.fork()
    if pid:
        return pid
    try:
        action()
    finally:
        os._exit(0)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def orders(tmp_path: Path) -> list[WorkOrder]:
    script = f'echo "$COTERIE_TASK" >> {tmp_path}/runs; setsid sleep 1000 & sleep 0.02; exit 5'
    return [shell(script, task=f"t{number}", environment={"COTERIE_TASK": f"t{number}"}) for number in range(TASKS)]


def serve(root: Path, wanted: list[WorkOrder]) -> None:
    """Do what a service does, for ever."""
    supervisor = Supervisor(root, ProcessLimits(processes=4))
    for one, two in zip(wanted[::2], wanted[1::2], strict=True):
        supervisor.start([one, two])
    while True:
        supervisor.wait(1.0)


def all_over(supervisor: Supervisor, wanted: list[WorkOrder]) -> dict[AttemptKey, AttemptEnded | AttemptLost]:
    for one, two in zip(wanted[::2], wanted[1::2], strict=True):
        supervisor.start([one, two])
    found = {each.key: reached(supervisor, each.key, AttemptEnded) for each in wanted}
    return {key: status for key, status in found.items() if isinstance(status, AttemptEnded | AttemptLost)}


@pytest.mark.slow("kills a service at many moments")
def test_a_service_killed_at_any_moment_loses_nothing_and_runs_nothing_twice(tmp_path: Path) -> None:
    chance = random.Random(7)  # noqa: S311 - moments, not secrets
    wanted, root = orders(tmp_path), tmp_path / "root"
    rounds, longest_s = 0, 0.06
    # Some begin before the last service is killed, on a busy machine only if it is given more time.
    while rounds < 50 or not (tmp_path / "runs").exists():
        service = in_another_process(lambda: serve(root, wanted))
        time.sleep(chance.uniform(0, longest_s))
        kill(service)
        rounds += 1
        longest_s *= 1.0 if rounds < 50 else 1.5
    with supervising(root, processes=4) as supervisor:
        found = all_over(supervisor, wanted)
        assert all(isinstance(status, AttemptEnded) and status.exit_code == 5 for status in found.values()), found
        runs = Counter((tmp_path / "runs").read_text().split())
        assert runs == {each.key.task: 1 for each in wanted}
        eventually(lambda: not left(root), "all processes are gone")


def test_shims_killed_at_any_moment_leave_nothing_running_and_run_nothing_twice(tmp_path: Path) -> None:
    chance = random.Random(11)  # noqa: S311 - moments, not secrets
    wanted, root = orders(tmp_path), tmp_path / "root"
    Supervisor(root).close()
    service = in_another_process(lambda: serve(root, wanted))
    for _ in range(25):
        time.sleep(chance.uniform(0, 0.03))
        if victims := left(root):
            _try_to_kill(chance.choice(victims))
    kill(service)
    with supervising(root, processes=4) as supervisor:
        found = all_over(supervisor, wanted)
        runs = Counter((tmp_path / "runs").read_text().split())
        assert set(runs.values()) <= {1}
        done = {key.task for key, status in found.items() if isinstance(status, AttemptEnded) and status.exit_code == 5}
        assert done <= set(runs)
        assert len(found) == TASKS
        eventually(lambda: not left(root), "all processes are gone")


def _try_to_kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def shim_of(root: Path, which: AttemptKey) -> int:
    holder = holder_of(root / which.path)
    assert isinstance(holder, ProcessIdentity)
    return holder.pid


SPAN = f"1000.{os.getpid()}2"
WITHOUT_GROUP = (
    "; without a control group, processes that left its session and cleared their environment were not found"
)
ESCAPE = f"""
    (setsid sh -c 'trap "" TERM; sleep {SPAN}' &)
    env -i sleep {SPAN} &
    echo ready
    sleep {SPAN}
"""


def test_a_killed_shim_takes_its_command_along_and_the_attempt_is_lost(supervisor: Supervisor, tmp_path: Path) -> None:
    running(supervisor, shell(ESCAPE))
    eventually(lambda: piece(supervisor, key()), "it runs")
    os.kill(shim_of(tmp_path / "root", key()), signal.SIGKILL)
    found = reached(supervisor, key(), AttemptLost)
    # Not everybody may make control groups.
    grouped = (tmp_path / "root" / key().path / "cgroup").exists()
    assert found == AttemptLost(f"the process that watched it was killed{'' if grouped else WITHOUT_GROUP}")
    assert left(tmp_path / "root") == asleep(SPAN) == []
    supervisor.start([shell(ESCAPE)])
    assert supervisor.status(key()) == found


def test_what_was_lost_while_nobody_looked_is_found_out_and_cleaned_up(tmp_path: Path) -> None:
    root = tmp_path / "root"
    before = Supervisor(root)
    command = running(before, shell(ESCAPE))
    eventually(lambda: piece(before, key()), "it runs")
    shim = shim_of(root, key())
    before.close()
    os.kill(shim, signal.SIGKILL)
    eventually(lambda: command not in left(root), "the command dies with its shim")
    assert left(root)
    with supervising(root) as after:
        assert isinstance(after.status(key()), AttemptLost)
        assert left(root) == asleep(SPAN) == []
    with supervising(root) as again:
        assert again.statuses() == {}


def test_tasks_outlive_the_process_that_starts_their_watchers_and_another_takes_its_place(tmp_path: Path) -> None:
    others = children(os.getpid())
    with supervising(tmp_path / "root") as supervisor:
        pid = running(supervisor, shell(f"while ! test -e {tmp_path}/go; do sleep 0.01; done; exit 9"))
        (fork_server,) = children(os.getpid()) - others
        # The shim may become a child of this process, which adopts orphans.
        others.add(int((stat(pid) or [])[1]))
        os.kill(fork_server, signal.SIGKILL)
        (second,) = ended(supervisor, order("true", task="second"))
        assert second.exit_code == 0
        assert children(os.getpid()) - others != {fork_server}
        assert AttemptRunning(pid, getattr(supervisor.status(key()), "since", 0.0)) == supervisor.status(key())
        (tmp_path / "go").touch()
        assert getattr(reached(supervisor, key(), AttemptEnded), "exit_code", None) == 9
    eventually(lambda: not children(os.getpid()) - others)


def test_a_running_task_is_found_again_and_its_exit_code_too(tmp_path: Path) -> None:
    root = tmp_path / "root"
    before = Supervisor(root)
    pid = running(before, shell(f"while ! test -e {tmp_path}/go; do sleep 0.01; done; exit 9"))
    before.close()
    with supervising(root) as after:
        found = after.status(key())
        assert isinstance(found, AttemptRunning)
        assert found.pid == pid
        (tmp_path / "go").touch()
        assert getattr(reached(after, key(), AttemptEnded), "exit_code", None) == 9


def test_a_stop_that_its_sender_did_not_live_to_deliver_is_delivered_by_the_next(tmp_path: Path) -> None:
    root = tmp_path / "root"
    before = Supervisor(root)
    running(before, order("sleep", "1000"))
    before.close()
    (root / key().path / "stop").write_text("5")
    with supervising(root) as after:
        assert getattr(reached(after, key(), AttemptEnded), "why", None) == "stopped"


def test_an_attempt_from_before_the_machine_was_restarted_is_lost(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with supervising(root) as before:
        ended(before, order("true"))
        folder = root / key().path
        (folder / "exit").unlink()
        (folder / "claim").write_text(f"shim {os.getpid()} 1 another-boot")
        (folder / "pid").write_text(f"{os.getpid()} 1 another-boot 0")
        (folder / "cgroup").write_text("another-boot /sys/fs/cgroup/freezer/coterie-1-1")
        with supervising(root) as after:
            # Nothing survives that, in a control group or not.
            assert after.status(key()) == AttemptLost("the machine was restarted while it ran")


def test_a_number_used_again_by_another_process_is_not_mistaken(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with supervising(root) as before:
        ended(before, order("true"))
        folder = root / key().path
        holder = (folder / "claim").read_text().split()
        (folder / "exit").unlink()
        (folder / "claim").write_text(f"shim {os.getpid()} 1 {holder[3]}")
        (folder / "pid").write_text(f"{os.getppid()} 1 {holder[3]} 0")
        with supervising(root) as after:
            assert isinstance(after.status(key()), AttemptLost)


def test_one_attempt_started_by_many_processes_at_once_runs_once(tmp_path: Path) -> None:
    root = tmp_path / "root"
    wanted = [shell(f"echo {number} >> {tmp_path}/runs", task=f"t{number}") for number in range(5)]

    def start() -> None:
        supervisor = Supervisor(root)
        for each in wanted:
            supervisor.start([each])
        for each in wanted:
            reached(supervisor, each.key, AttemptEnded)

    for pid in [in_another_process(start) for _ in range(6)]:
        os.waitpid(pid, 0)
    assert sorted((tmp_path / "runs").read_text().split()) == [str(number) for number in range(5)]
    with supervising(root) as supervisor:
        assert all(isinstance(status, AttemptEnded) for status in supervisor.statuses().values())


def test_a_folder_half_made_by_a_process_that_died_is_swept_away(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / ".new" / "999999999-1-0" / "files").mkdir(parents=True)
    with supervising(root) as supervisor:
        supervisor.remove(key().workflow)
        eventually(lambda: not list((root / ".new").iterdir()))


def test_a_removal_ends_processes_whose_folder_is_gone(supervisor: Supervisor, tmp_path: Path) -> None:
    root = tmp_path / "root"
    running(supervisor, order("sleep", "1000"))
    (root / key().path).rename(tmp_path / "elsewhere")
    supervisor.remove(key().workflow)
    assert left(root) == []


@pytest.mark.parametrize("made", ["mkfifo ../$f", "ln -s /dev/zero ../$f", "ln -s $HOME ../$f", "mkdir ../$f"])
def test_a_task_that_replaced_its_files_is_lost_after_a_restart_and_leaves_nothing(tmp_path: Path, made: str) -> None:
    root, done = tmp_path / "root", tmp_path / "done"
    names = "log log.times exit pid claim order.json stop lost"
    first = Supervisor(root, ProcessLimits())
    first.start([shell(f"for f in {names}; do rm -f ../$f; {made}; done; touch {done}; sleep 1000")])
    eventually(done.exists)
    first.close()
    assert left(root)

    with supervising(root) as supervisor:
        assert isinstance(reached(supervisor, key(), AttemptLost), AttemptLost)
        assert not left(root)


def test_folders_that_a_killed_process_left_empty_are_removed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with supervising(root) as supervisor:
        ended(supervisor, shell("true"))
        (root / key().workflow / "other" / "task").mkdir(parents=True)
        (root / "dead-1" / "g" / "t").mkdir(parents=True)
        supervisor.remove("dead-1")
        assert not (root / "dead-1").exists()

        (root / "dead-2" / "g").mkdir(parents=True)
        with supervising(root) as second:
            assert not (root / "dead-2").exists()
            assert not (root / key().workflow / "other").exists()
            assert second.statuses().keys() == {key()}


def test_a_restart_opens_only_the_files_of_each_ended_attempt_and_resolves_no_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, reserved = list[str](), list[int]()
    read, opened, lstat = os.pread, os.open, os.lstat

    def pread(handle: int, size: int, offset: int) -> bytes:
        reserved.append(size)
        return read(handle, size, offset)

    def counted(action: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *arguments: Any, **named: Any) -> Any:
            calls.append(str(path))
            return action(path, *arguments, **named)

        return call

    def restarted() -> int:
        calls.clear()
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", counted(opened))
            patch.setattr(os, "lstat", counted(lstat))
            patch.setattr(os, "pread", pread)
            Supervisor(tmp_path).close()
        return len([path for path in calls if path.startswith(f"{tmp_path}/w-1")])

    def watched(one: WorkOrder) -> bool:
        holder = holder_of(tmp_path / one.key.path)
        return isinstance(holder, ProcessIdentity) and holder.alive()

    counts = []
    with supervising(tmp_path) as supervisor:
        for first in (0, 10):
            wanted = [order("true", task=f"t{number}") for number in range(first, first + 10)]
            assert len(ended(supervisor, *wanted)) == 10
            eventually(lambda: not any(map(watched, wanted)))  # noqa: B023 - called at once
            counts.append(restarted())
    # The attempts that started together, the process, and the end.
    assert counts[1] - counts[0] == 3 * 10
    assert max(reserved) <= 1 << 16
