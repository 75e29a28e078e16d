"""Lists on screens of any width keep their most important columns readable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from coterie.cli.output.refusals import why_lines
from coterie.cli.output.workflows import list_lines
from coterie.rendering.text import Style, columns

NODES = "blue-rack-n[1-18],red-rack-n[1-18]"


def row(ident: str, status: str, reason: str = "", tasks: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Return a workflow as lists have it."""
    counted = {"total": 18, "running": 0, "completed": 0, "failed": 0, **(tasks or {})}
    waiting = {"reason": reason, "message": "so it is", "since": None} if reason else None
    some: dict[str, Any] = {
        "pool": "research",
        "gpus": 72,
        "message": "",
        "cleaning": False,
        "ended": None,
        "priority": "NORMAL",
    }
    some |= {"nodes": [f"{rack}-rack-n{n}" for rack in ("blue", "red") for n in range(1, 19)] if tasks else []}
    at = "2026-01-31T12:00:00Z"
    return {"id": ident, "status": status, "tasks": counted, "waiting": waiting, "submitted": at, "started": at, **some}


@pytest.mark.parametrize("width", [200, 100, 80, 60, 45])
def test_the_reason_is_never_cut_and_nodes_say_so_where_they_are(width: int) -> None:
    rows = [row("pretrain-2", "PENDING", "ComputeDomainNotReady"), row("pretrain-1", "RUNNING", tasks={"running": 18})]

    lines = list(list_lines(rows, Style(width), 0.0))

    assert [line for line in lines if columns(line) > width] == []
    assert lines[0].split()[-1] == "WHERE/WHY"
    assert lines[1].endswith("  ComputeDomainNotReady")
    assert lines[2].endswith((NODES, "…"))


def test_where_there_is_no_room_at_all_what_is_cut_says_so() -> None:
    lines = list(list_lines([row("pretrain-2", "PENDING", "ComputeDomainNotReady")], Style(30), 0.0))

    assert lines[1].split() == ["pretrai…", "PENDING", "ComputeDom…"]


def test_a_wide_screen_goes_without_nothing() -> None:
    head, *_ = list_lines([row("pretrain-1", "RUNNING")], Style(200), 0.0)

    assert head.split() == ["ID", "STATUS", "POOL", "TASKS", "GPUS", "AGE", "RAN", "WHERE/WHY"]


@pytest.mark.parametrize(
    ("status", "tasks", "words"),
    [
        ("PENDING", {}, " 18 "),
        ("RUNNING", {"running": 18}, " 18 run "),
        ("RUNNING", {"running": 12}, " 12/18 run "),
        ("RUNNING", {"running": 15, "completed": 3}, " 3/18 done "),
        ("COMPLETED", {"completed": 18}, " 18 done "),
        ("FAILED", {"completed": 3, "failed": 2}, " 2/18 failed "),
        ("FAILED_CANCELED", {"failed": 18}, " 18 canceled "),
    ],
)
def test_tasks_are_told_by_the_word_that_says_most(status: str, tasks: dict[str, int], words: str) -> None:
    lines = list(list_lines([row("pretrain-1", status, tasks=tasks)], Style(200), 0.0))

    assert words in lines[1]


@pytest.mark.parametrize("width", [120, 60])
def test_ways_out_come_with_the_option_that_shows_them(width: int) -> None:
    ways = [
        {
            "change": "fits when other-1 ends",
            "command": "coterie why wf-1/g --without other-1",
            "options": [{"name": "without", "value": "other-1"}],
        },
        {"change": "is within the limit if an admin raises it", "command": "", "options": []},
    ]
    refusal = {"reason": "NoCapacity", "message": "no", "level": None, "best": [], "holders": [], "ways_out": ways}
    group = {"name": "g", "verdict": "waiting", "waiting": None, "refusal": refusal}

    lines = list(why_lines({"id": "wf-1", "waiting": 1, "groups": [group]}, Style(width), 0.0))

    said = " ".join(" ".join(lines).split())
    assert "fits when other-1 ends --without other-1" in said
    assert lines[-1] == "  coterie why wf-1/g --without other-1"
    assert [line for line in lines if line != line.rstrip()] == []
