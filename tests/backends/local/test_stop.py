"""The end of local tasks on request: grace periods, kills, time limits, and cleanup of child processes."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from coterie.backends.local.shim.exit import send_group
from coterie.backends.local.supervisor import Supervisor
from coterie.backends.local.work_order import AttemptEnded, AttemptRunning, AttemptStarting
from tests.backends.local.builders import ended, key, left, log, order, piece, reached, running, shell, supervising
from tests.eventually import eventually

STUBBORN = """
    trap '' TERM INT HUP
    (trap '' TERM; setsid sh -c 'trap "" TERM; sleep 1000' & sleep 1000) &
    echo ready
    while :; do sleep 1; done
"""


def stopped(supervisor: Supervisor) -> AttemptEnded:
    found = reached(supervisor, key(), AttemptEnded)
    assert isinstance(found, AttemptEnded), found
    return found


def test_a_stopped_task_may_clean_up_and_its_exit_code_counts(supervisor: Supervisor) -> None:
    running(supervisor, shell("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done"))
    eventually(lambda: "ready" in log(supervisor), "the trap is set")
    supervisor.stop(key(), 30)
    found = stopped(supervisor)
    assert (found.exit_code, found.why) == (3, "stopped")
    assert log(supervisor).endswith("bye\n")


def test_a_task_that_will_not_stop_is_ended_after_the_grace_with_all_its_children(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    running(supervisor, shell(STUBBORN))
    eventually(lambda: "ready" in log(supervisor), "it runs")
    begun = time.monotonic()
    supervisor.stop(key(), 0.3)
    found = stopped(supervisor)
    assert (found.exit_code, found.why, found.note) == (137, "stopped", "")
    assert time.monotonic() - begun >= 0.3
    assert left(tmp_path / "root") == []


def test_a_kill_does_not_wait_for_the_grace_of_an_earlier_stop(supervisor: Supervisor) -> None:
    running(supervisor, shell(STUBBORN))
    eventually(lambda: "ready" in log(supervisor), "it runs")
    supervisor.stop(key(), 1000)
    supervisor.kill(key())
    assert stopped(supervisor).exit_code == 137


def test_a_halted_task_is_stopped_too(supervisor: Supervisor) -> None:
    pid = running(supervisor, order("sleep", "1000"))
    os.kill(pid, signal.SIGSTOP)
    supervisor.stop(key(), 1000)
    assert stopped(supervisor).exit_code == 143


def test_a_task_that_runs_too_long_is_stopped_and_says_why(supervisor: Supervisor) -> None:
    [found] = ended(supervisor, order("sleep", "1000", timeout_s=0.2))
    assert (found.exit_code, found.why) == (143, "timeout")
    assert "it ran longer than 0.2 s" in log(supervisor)


def test_a_task_that_ignores_its_time_limit_is_ended(supervisor: Supervisor) -> None:
    for attempt, limit_s in enumerate((0.2, 2, 20), 1):
        one = shell(STUBBORN, attempt=attempt, timeout_s=limit_s, grace_s=0.1)
        [found] = ended(supervisor, one)
        if b"ready" in piece(supervisor, one.key):  # else it was too slow to begin to ignore anything
            break
    assert (found.exit_code, found.why) == (137, "timeout")


def test_stopping_is_idempotent_and_does_not_change_what_is_over(supervisor: Supervisor) -> None:
    supervisor.stop(key("never-heard-of"))
    [before] = ended(supervisor, order("true"))
    supervisor.stop(key())
    supervisor.kill(key())
    assert supervisor.status(key()) == before


def test_a_task_that_was_stopped_before_it_began_never_does(supervisor: Supervisor, tmp_path: Path) -> None:
    """The order and its withdrawal may cross; either the task never ran, or it was stopped while it ran."""
    for number in range(10):
        supervisor.start([shell(f"echo x >> {tmp_path}/runs; sleep 1000", task=f"t{number}")])
        supervisor.stop(key(f"t{number}"), 0.0)
        found = reached(supervisor, key(f"t{number}"), AttemptEnded)
        assert isinstance(found, AttemptEnded)
        assert found.why in ("withdrawn", "stopped")
    eventually(lambda: not left(tmp_path / "root"), "shims that came too late are gone")


def test_with_one_that_waits_all_are_withdrawn_that_were_to_start_with_it(tmp_path: Path) -> None:
    with supervising(tmp_path / "root", processes=2) as supervisor:
        running(supervisor, order("sleep", "1000"))
        supervisor.start([order("true", task="a"), order("true", task="b")])
        assert supervisor.status(key("a")) == AttemptStarting()
        supervisor.stop(key("b"))
        assert [getattr(supervisor.status(key(task)), "why", "") for task in "ab"] == ["withdrawn", "withdrawn"]
        assert isinstance(supervisor.status(key()), AttemptRunning)


def test_whoever_waits_is_woken_by_what_another_thread_finds_out(supervisor: Supervisor) -> None:
    running(supervisor, order("sleep", "1000"))
    while supervisor.wait(0.0):
        pass
    woken: list[bool] = []
    waiter = threading.Thread(target=lambda: woken.append(supervisor.wait(60.0)))
    waiter.start()
    supervisor.kill(key())
    eventually(lambda: isinstance(supervisor.status(key()), AttemptEnded), "it ended")
    waiter.join(30.0)
    assert woken == [True]


def test_waiting_ends_when_the_time_is_up(supervisor: Supervisor) -> None:
    assert not supervisor.wait(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_shim_stops_its_task(supervisor: Supervisor, number: int) -> None:
    pid = running(supervisor, order("sleep", "1000"))
    os.kill(int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]), number)
    assert stopped(supervisor).why == "stopped"


def test_a_command_that_has_no_process_group_yet_is_stopped_too() -> None:
    # The command forms its group shortly after the fork, and the shim may be told to stop before.
    with subprocess.Popen(["/bin/sleep", "1000"]) as command:
        send_group(command.pid, signal.SIGTERM)
        assert command.wait(timeout=30) == -signal.SIGTERM
