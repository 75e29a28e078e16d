"""A jump of the machine's clock ends no task."""

from __future__ import annotations

from pathlib import Path

import pytest

from coterie.service.clock import SteadyClock
from coterie.service.service import Service
from tests.eventually import eventually
from tests.service.running_service import ServiceFolder, single

PATIENCE_S = 60.0


class Machine:
    """The clocks of a machine, set by the test."""

    def __init__(self) -> None:
        self.wall, self.passed = 1_000_000.0, 50.0

    def clock(self, folder: Path) -> SteadyClock:
        return SteadyClock(folder, lambda: self.wall, lambda: self.passed)

    def wait(self, seconds: float) -> None:
        self.wall += seconds
        self.passed += seconds


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_seconds_that_pass_count_and_jumps_do_not_even_across_a_restart(tmp_path: Path, jump: float) -> None:
    machine = Machine()
    clock = machine.clock(tmp_path)
    machine.wait(10)
    machine.wall += jump
    assert clock() == pytest.approx(1_000_010)
    assert clock.ahead_s == pytest.approx(jump)
    again = machine.clock(tmp_path)
    assert again() == pytest.approx(1_000_010)

    again.adjust()
    assert again() == pytest.approx(1_000_010 + jump)
    assert again.ahead_s == 0
    assert machine.clock(tmp_path)() == pytest.approx(1_000_010 + jump)


def test_small_corrections_are_nothing_to_speak_of(tmp_path: Path) -> None:
    machine = Machine()
    clock = machine.clock(tmp_path)
    machine.wall += 5
    assert clock.ahead_s == 0


def test_after_a_boot_the_clock_of_the_machine_counts(tmp_path: Path) -> None:
    machine = Machine()
    machine.clock(tmp_path)
    text = (tmp_path / ".clock").read_text(encoding="utf-8")
    (tmp_path / ".clock").write_text("another-boot " + text.split()[1], encoding="utf-8")
    machine.wall += 3600
    assert machine.clock(tmp_path)() == pytest.approx(1_003_600)


def test_a_jump_of_an_hour_ends_no_task_with_a_time_limit(tmp_path: Path) -> None:
    place = ServiceFolder(tmp_path / "place")
    place.folder.mkdir()
    machine = Machine()
    limits = "  timeout: {exec_timeout: 10m, queue_timeout: 10m}"
    with Service(place.settings(now=machine.clock(place.folder))) as service:
        running = service.submit(single("running", "sleep 600", rest=limits))["id"]
        for _ in range(7):
            service.submit(single("full", "sleep 600"))
        eventually(lambda: service.pool("main")["gpus"]["free"] == 0)
        waiting = service.submit(single("waiting", "sleep 600", rest=limits))["id"]
        eventually(lambda: bool(service.workflow(waiting)["waiting"]))
        machine.wall += 3600
        machine.wait(1)
        other = service.submit(single("other", "true", gpu=0))["id"]
        assert service.wait(other, timeout_s=PATIENCE_S)["status"] == "COMPLETED"
        eventually(lambda: "clock" in {each["what"] for each in service.health()["problems"]})

        assert service.workflow(running)["status"] == "RUNNING"
        assert not service.workflow(waiting)["finished"]
        machine.wait(700)
        assert service.wait(running, timeout_s=PATIENCE_S)["status"] == "FAILED_EXEC_TIMEOUT"
        assert service.wait(waiting, timeout_s=PATIENCE_S)["status"] == "FAILED_QUEUE_TIMEOUT"
