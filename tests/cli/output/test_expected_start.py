"""The position of a gang in the queue, and its expected start as far as it is known."""

from __future__ import annotations

from typing import Any, cast

import pytest

from coterie.cli.client.client import Client
from coterie.cli.output.expected_start import expectations, within
from coterie.cli.output.refusals import why_lines
from coterie.cli.output.workflows import list_lines
from coterie.errors import NotFound
from coterie.lifecycle import GroupRules, GroupState, Status
from coterie.rendering.text import ASCII, Style
from coterie.service.views.workflows import ends_by

Json = dict[str, Any]

NOW = 1_000_000.0
SOON, LATER = "1970-01-12T13:50:40Z", "1970-01-12T15:46:40Z"  # in four minutes, in two hours
WIDE = Style(200, ASCII, colour=False)


def holder(*limits: str | None) -> Json:
    """Return a workflow of groups that run, with when they end at the latest."""
    return {"groups": [{"started": SOON, "ended": None, "ends_by": limit} for limit in limits]}


class FakeService:
    """A service that knows some workflows, and why one of them waits."""

    def __init__(self, *owners: str, position: int = 1) -> None:
        options = [*(("without", owner) for owner in owners), ("prefer", "rack")]
        ways = [
            {"change": "places", "command": "coterie plan", "options": [{"name": name, "value": value}]}
            for name, value in options
        ]
        refusal = {"reason": "NoCapacity", "message": "no", "level": None, "best": [], "holders": [], "ways_out": ways}
        self.group = {"name": "g", "verdict": "waiting", "waiting": None, "refusal": refusal, "position": position}

    def why(self, ident: str, _: str | None) -> Json:
        return {"id": ident, "status": "PENDING", "position": 1, "waiting": 3, "groups": [self.group]}

    def workflow(self, ident: str) -> Json:
        found = {
            "soon": holder(SOON),
            "later": holder(SOON, LATER),
            "endless": holder(SOON, None),
            "over": holder("1970-01-01T00:00:00Z"),
            "idle": {"groups": [{"started": None, "ended": None}]},
        }
        if ident not in found:
            raise NotFound(ident)
        return found[ident]


@pytest.mark.parametrize(
    ("owners", "position", "expected"),
    [
        (("soon",), 1, "4m"),
        (("later",), 1, "2h"),
        (("later", "soon"), 1, "4m"),
        (("endless", "later"), 1, "2h"),
        (("endless",), 1, None),
        (("over",), 1, None),
        (("idle",), 1, None),
        (("pods-of-others",), 1, None),
        ((), 1, None),
        (("soon",), 2, None),
    ],
)
def test_only_the_first_in_the_queue_that_waits_for_work_with_a_time_limit_can_expect_anything(
    owners: tuple[str, ...], position: int, expected: str | None
) -> None:
    known = FakeService(*owners, position=position)

    assert within(cast("Client", known), known.group, NOW) == expected


def test_a_group_without_a_refusal_expects_nothing() -> None:
    assert within(cast("Client", FakeService()), {"refusal": None, "position": 1}, NOW) is None


def test_a_wide_list_has_position_and_expected_start_and_a_dash_where_nothing_is_known() -> None:
    common = {
        "status": "PENDING",
        "pool": "lab",
        "tasks": {"total": 1, "running": 0, "completed": 0, "failed": 0},
        "gpus": 1,
        "submitted": None,
        "started": None,
        "ended": None,
        "labels": {},
        "priority": "NORMAL",
        "owner": "ana",
        "waiting": None,
        "message": "",
        "cleaning": False,
        "nodes": [],
    }
    rows = [{**common, "id": "a-1", "position": 1}, {**common, "id": "b-1", "position": None}]
    expected = expectations(cast("Client", FakeService("soon")), rows, NOW)
    head, first, second = list_lines(rows, WIDE, NOW, expected=expected)

    assert head.split()[7:10] == ["PRIORITY", "POS", "ETA"]
    assert first.split()[7:10] == ["NORMAL", "1", "<4m"]
    assert second.split()[7:10] == ["NORMAL", "-", "-"]


def test_why_says_whose_turn_it_is_and_within_what_time_a_place_is_expected() -> None:
    answer = FakeService("soon").why("a-1", None)

    head = next(why_lines(answer, WIDE, NOW, {"g": "4m"}))

    assert head == "? a-1/g   waiting   NoCapacity   position 1 of 3   expected within 4m"


@pytest.mark.parametrize(
    ("started", "ended", "limit", "expected"),
    [(10.0, None, 60.0, 70.0), (None, None, 60.0, None), (10.0, 20.0, 60.0, None), (10.0, None, None, None)],
)
def test_a_group_ends_by_its_time_limit_while_it_runs(
    started: float | None, ended: float | None, limit: float | None, expected: float | None
) -> None:
    group = GroupState("g", (), status=Status.RUNNING, started=started, ended=ended)

    assert ends_by(GroupRules("g", (), exec_timeout_s=limit), group) == expected
