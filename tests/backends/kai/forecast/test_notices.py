"""Plans for KAI report the gangs that KAI would leave pending, as far as that was checked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coterie.backends.kai.forecast import notices
from coterie.planning.plan import Plan, Planner
from coterie.topology.cluster import GPU, STORAGE
from tests.planning.builders import cluster, drawn, gangs, planned, pool, running, workload
from tests.scenarios.sketch import Drawing

TWO = "cluster rack\n  rack r1 [8 8]  rack r2 [8]"
MIXED = "g: 1 x 8gpu + 2 x 4gpu required=rack"
SIBLINGS = """
    g:
      a: 5 x 1gpu required=rack
      b: 4 x 1gpu required=rack
      c: 3 x 1gpu required=rack
      d: 3 x 1gpu required=rack
"""


def plan(drawing: Drawing, text: str, scheduler: str = "kai") -> Plan:
    (found,) = planned(drawing, workload(drawing, text, where=pool(drawing, scheduler=scheduler)))
    return found


def told(found: Plan) -> list[str]:
    return [notice.code for notice in found.notices if notice.code.startswith("Kai")]


def stored(drawing: Drawing) -> Drawing:
    drawing.nodes = {
        name: replace(node, allocatable={**node.allocatable, STORAGE: 1 << 30}) for name, node in drawing.nodes.items()
    }
    return drawing


def test_a_gang_that_kai_leaves_pending_is_told_with_its_plan() -> None:
    assert told(plan(drawn(TWO), MIXED)) == ["KaiWouldWait"]
    assert told(plan(drawn("cluster rack\n  rack r1 [9]  rack r2 [6]"), SIBLINGS)) == ["KaiWouldWait"]


def test_nothing_is_told_for_another_scheduler_or_for_a_gang_that_is_not_placed() -> None:
    assert told(plan(drawn(TWO), MIXED, "local")) == []
    assert told(plan(drawn(TWO), "g: 1 x 8gpu + 3 x 4gpu required=rack")) == []


def test_what_rendering_avoids_needs_no_warning() -> None:
    assert told(plan(stored(drawn(TWO)), MIXED)) == []


def test_gangs_of_one_workload_are_looked_at_beside_each_other() -> None:
    """The second fits by itself on r2, and beside the first only as the engine puts it."""
    drawing = drawn("cluster rack\n  rack r1 [8 8]  rack r2 [8 8]")
    first, second = "a: 2 x 8gpu required=rack", "b: 1 x 8gpu + 2 x 4gpu required=rack"
    found = plan(drawing, f"{first}\n{second}")

    assert found.verdict == "placed"
    assert [notice.message.split('"')[1] for notice in found.notices if notice.code == "KaiWouldWait"] == ["b"]


def test_gangs_that_are_alike_are_warned_of_once() -> None:
    drawing = drawn("cluster rack\n  rack r1 [8 8]  rack r2 [8 8]")

    assert told(plan(drawing, f"{MIXED}\n{MIXED.replace('g:', 'h:')}")) == ["KaiWouldWait"]


def test_a_gang_of_which_all_runs_is_not_looked_at() -> None:
    drawing = drawn(TWO)
    (gang,) = gangs(MIXED, drawing)
    running(drawing, gang, {"g-0": "r1-1", "g-1": "r1-2", "g-2": "r1-2"})

    assert told(plan(drawing, MIXED)) == []


def test_what_was_not_looked_at_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "_MOST_PAIRS", 9)
    drawing = drawn(TWO)
    three = "a: 1 x 8gpu required=rack\nb: 2 x 4gpu required=rack\nc: 2 x 4gpu required=rack"
    found = plan(drawing, three)

    assert told(found) == ["KaiNotChecked"]
    assert 'group "c" was not checked' in found.notices[-1].message


def test_what_if_changes_count() -> None:
    drawing = drawn("cluster rack of 8\n  rack r1 [8 4:x]")
    one = workload(drawing, "g: 1 x 8gpu + 1 x 4gpu", where=pool(drawing, scheduler="kai"))

    assert told(Planner(cluster(drawing)).plan(one)) == []
    assert cluster(drawing).allocatable[cluster(drawing).resource(GPU)].tolist() == [8, 8]
