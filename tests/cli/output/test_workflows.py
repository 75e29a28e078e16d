"""Workflows as lines of text."""

from __future__ import annotations

from typing import Any

import pytest

from coterie.cli.handlers.remote.pool import pool_table
from coterie.cli.output.workflows import workflow_lines
from coterie.rendering.text import Style

STYLE = Style(width=100, colour=False)
NOON = 1_800_000_000.0  # 2027-01-15T08:00:00Z


@pytest.mark.parametrize(
    ("started", "ended", "words"),
    [
        (None, None, "queued 30s"),
        (None, "2027-01-15T07:59:40.000Z", "queued 10s"),
        ("2027-01-15T07:59:54.000Z", None, "ran 6.0s"),
        ("2027-01-15T07:59:50.000Z", "2027-01-15T07:59:54.000Z", "ran 4.0s"),
    ],
)
def test_the_title_says_how_long_the_latest_run_took(started: str | None, ended: str | None, words: str) -> None:
    view: dict[str, Any] = {
        "id": "train-1",
        "status": "RUNNING",
        "pool": "lab",
        "gpus": 0,
        "tasks": {"total": 1},
        "submitted": "2027-01-15T07:59:30.000Z",
        "started": started,
        "ended": ended,
        "cleaning": False,
        "message": "",
        "groups": [],
    }

    assert next(workflow_lines(view, STYLE, NOON)) == f"train-1   RUNNING   pool lab   1 task   {words}"


def test_a_pool_whose_nodes_are_not_known_has_no_counts() -> None:
    pool: dict[str, Any] = {
        "name": "far",
        "default": False,
        "nodes": 0,
        "backend": "hall",
        "counted": False,
        "unreachable": "connection refused",
        "gpus": {"used": 0, "total": 0, "free": 0, "limit": 8, "guarantee": None, "out_of_service": 0},
        "workflows": {"running": 0, "waiting": 1},
        "topology_keys": [{"key": "rack", "label": "rack"}],
    }

    lines = [line.split() for line in pool_table([pool], STYLE, wide=False)]

    assert lines[1] == ["far", "-", "-", "8", "-", "-", "-", "0", "1", "rack"]
    assert lines[2] == ["-:", "the", "nodes", "of", "far", "are", "not", "known", "here."]
    assert " ".join(lines[3]) == "The cluster of backend hall cannot be reached: connection refused"

    *_, last = pool_table([{**pool, "unreachable": "connecting"}], STYLE, wide=False)
    assert last == "The service is connecting to the cluster of backend hall."
