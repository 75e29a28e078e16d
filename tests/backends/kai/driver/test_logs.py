"""Logs of pods, with the times of their lines, and as kept after the pods."""

from __future__ import annotations

from pathlib import Path

from coterie.backends.base.driver import TaskAttempt
from coterie.backends.base.settings import DriverSettings
from coterie.backends.kai.driver.logs import KaiOutput, KeptLogs, TimedLog, parse

RAW = b"2026-11-17T10:00:00.5Z one\n2026-11-17T10:00:00.9Z two\n2026-11-17T10:00:07Z three\n2026-11-17T10:00:08Z \n"
TEN = 1794909600.0
KEY = TaskAttempt("w-1", "g", "t", 2)


def test_times_are_taken_off_the_lines_and_lead_to_offsets() -> None:
    log = parse(RAW)
    assert log.text == b"one\ntwo\nthree\n\n"
    assert log.offset(TEN + 3) == len(b"one\ntwo\n")
    assert log.offset(0.0) == 0
    assert log.offset(TEN + 60) is None


def test_text_without_times_stays_as_it_is() -> None:
    assert parse(b"plain words\nno time").text == b"plain words\nno time"
    assert parse(b"").text == b""


def test_a_kept_log_is_read_in_parts_and_goes_with_its_workflow(tmp_path: Path) -> None:
    settings = DriverSettings(tmp_path / "tasks")
    kept = KeptLogs(settings)
    assert kept.read(KEY) is None
    kept.keep(KEY, parse(RAW))
    kept.keep(KEY, TimedLog(b"later"))
    output = KaiOutput(settings)
    assert output.log(KEY, 0) == b"one\ntwo\nthree\n\n"
    assert output.log(KEY, 4, 3) == b"two"
    assert output.log(KEY, -7) == b"three\n\n"
    assert output.log_offset(KEY, TEN + 7) == len(b"one\ntwo\n")
    assert output.folder(KEY) is None
    assert kept.workflows() == {"w-1"}
    kept.forget("w-1")
    assert kept.workflows() == set()
    assert output.log(TaskAttempt("w-1", "g", "t", 0), 0) == b""
