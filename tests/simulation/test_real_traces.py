"""Real traces, too large for the repository, are replayed from the folder in $COTERIE_TRACES."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from coterie.simulation.trace import TraceTiming, read_trace
from tests.simulation.worlds import fabric, run

_FOLDER = os.environ.get("COTERIE_TRACES")

pytestmark = pytest.mark.skipif(
    not _FOLDER, reason="real traces are NOT tested: set COTERIE_TRACES to a folder with Philly and openb CSV files"
)


def _file(name: str) -> bytes:
    return (Path(_FOLDER or ".") / name).read_bytes()


def test_a_philly_trace_replays_whole_without_violations() -> None:
    trace = read_trace(_file("philly_muri_trace1.csv"), "philly_muri_trace1.csv")
    result = run(fabric(*([[[8, 8]] * 4] * 3)), trace)

    assert (trace.kind, len(result.jobs)) == ("philly", 1494)
    assert [(one.started, one.violations, one.undecided) for one in result.figures] == [(1494, 0, 0)] * 3


def test_an_openb_trace_replays_at_a_given_pace() -> None:
    trace = read_trace(_file("openb_pods_multigpu50.csv"), "openb_pods_multigpu50.csv", TraceTiming(60, 7200)).first(
        1000
    )
    result = run(fabric(*([[[8, 8]] * 4] * 3)), trace)

    assert trace.kind == "openb-untimed"
    assert [(one.started, one.violations) for one in result.figures] == [(1000, 0)] * 3
