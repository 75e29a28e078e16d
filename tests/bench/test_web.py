"""The frames of a trace: which of those that the page wanted were presented, and which were dropped."""

from __future__ import annotations

from typing import Any

from bench.web import reported_frames

PAGE, OTHER = 7, 8


def report(sequence: int, state: str, *, pid: int = PAGE) -> dict[str, Any]:
    body = {"frame_reporter": {"frame_sequence": sequence, "state": f"STATE_{state}"}}
    return {"name": "PipelineReporter", "pid": pid, "ts": 100 * sequence, "args": body}


def test_a_frame_counts_once_and_as_dropped_where_any_part_of_it_was_dropped() -> None:
    events = [
        {"name": "EventDispatch", "pid": PAGE, "ts": 100, "args": {"data": {"type": "wheel"}}},
        report(1, "PRESENTED_ALL"),
        report(2, "PRESENTED_PARTIAL"),
        report(2, "PRESENTED_ALL"),
        report(3, "PRESENTED_PARTIAL"),
        report(3, "DROPPED"),
        report(4, "NO_UPDATE_DESIRED"),
        report(4, "DROPPED", pid=OTHER),
        {"name": "PipelineReporter", "pid": PAGE, "ts": 450, "args": {}},
        report(9, "DROPPED"),
    ]
    assert reported_frames(events, 100, 800) == (2, 1)
