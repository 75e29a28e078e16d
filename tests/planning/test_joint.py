"""Groups that start together are placed jointly where in sequence they do not all fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from coterie.errors import Reason
from coterie.gang.tree import Gang
from coterie.placement.engine import NoPlacement
from coterie.placement.joint import DecidedFamily, JointCapacity, JointPlacement, place_together
from coterie.placement.refusal import Verdict
from coterie.planning import sequence
from coterie.planning.plan import Plan, Planner
from coterie.planning.workload import Workload
from tests.planning.builders import cluster, drawn, gangs, nodes, planned, pool, running, workload
from tests.scenarios.sketch import Drawing

# `free` takes the tighter rack, r1, which is the only one that `picky` can use.
RACKS = "cluster rack\n  rack r1 [8 8]\n  rack r2 [8 8 8]"
FREE = "free: 1 x 8gpu"
PICKY = "picky: 2 x 8gpu required=rack excluding=r2-1,r2-2,r2-3"
BOTH = f"{FREE}\n{PICKY}"


def plan(text: str, *, drawing: Drawing | None = None, limit: int | None = None, scheduler: str = "local") -> Plan:
    there = drawing or drawn(RACKS)
    (found,) = planned(there, workload(there, text, where=pool(there, limit=limit, scheduler=scheduler)))
    return found


def verdicts(found: Plan) -> dict[str, str]:
    return {one.gang.name: one.decision.verdict.value for one in found.gangs}


def codes(found: Plan) -> list[str]:
    return [notice.code for notice in found.notices]


def test_a_group_that_has_a_choice_moves_for_one_that_has_none() -> None:
    assert nodes(plan(FREE), "free") == ["r1-1"]

    found = plan(BOTH)

    assert (nodes(found, "free"), nodes(found, "picky")) == (["r2-1"], ["r1-1", "r1-2"])
    assert found.verdict is Verdict.PLACED
    assert [one.decision.found.optimal for one in found.gangs if one.decision.found] == [True, True]
    assert [outcome.domains for one in found.gangs for outcome in one.outcomes] == [(("r1",),)]


def test_what_fits_in_the_order_of_the_file_stays_where_it_was() -> None:
    found = plan(f"{PICKY}\n{FREE}\nlast: 2 x 8gpu required=rack")

    assert [nodes(found, name) for name in ("picky", "free", "last")] == [
        ["r1-1", "r1-2"],
        ["r2-1"],
        ["r2-2", "r2-3"],
    ]


def test_a_group_that_does_not_fit_even_so_moves_nobody() -> None:
    found = plan(f"free: 4 x 8gpu\n{PICKY}\nlast: 1 x 8gpu")

    assert nodes(found, "free") == nodes(plan("free: 4 x 8gpu"), "free")
    assert verdicts(found) == {"free": "placed", "picky": "waiting", "last": "placed"}


def test_three_groups_make_room_for_each_other() -> None:
    """Racks of 6 and 5 nodes, groups of 3, 3 and 5: file order puts the first into the rack of 5."""
    drawing = drawn("cluster rack\n  rack r1 [8 8 8 8 8 8]\n  rack r2 [8 8 8 8 8]")
    found = plan(
        "a: 3 x 8gpu required=rack\nb: 3 x 8gpu required=rack\nc: 5 x 8gpu required=rack",
        drawing=drawing,
    )

    homes = [one.outcomes[0].domains for one in found.gangs]
    assert homes == [(("r1",),), (("r1",),), (("r2",),)]


@pytest.mark.parametrize(
    ("needs", "placed"),
    [
        ({}, True),
        ({"free": "first", "picky": "first"}, True),
        ({"picky": "first"}, False),
        ({"free": "first"}, False),
    ],
)
def test_only_groups_that_start_at_one_moment_make_room(needs: dict[str, str], *, placed: bool) -> None:
    """One that starts later finds the other running."""
    drawing = drawn(RACKS)
    asked = workload(drawing, f"first: 1 x 1cpu\n{BOTH}", needs=needs)

    (found,) = planned(drawing, asked)

    assert (nodes(found, "picky") is not None) is placed
    assert nodes(found, "free") == (["r2-1"] if placed else ["r1-1"])


def test_tasks_that_run_do_not_move() -> None:
    drawing = drawn(RACKS)
    (free,) = gangs("free: 2 x 8gpu", drawing)
    running(drawing, free, {"free-0": "r1-1"})

    found = plan(f"free: 2 x 8gpu\n{PICKY}", drawing=drawing)

    assert nodes(found, "free") == ["r1-1", "r1-2"]
    assert verdicts(found)["picky"] == "waiting"


def test_the_rest_of_a_gang_that_runs_moves() -> None:
    drawing = drawn(RACKS)
    (free,) = gangs("free: 2 x 8gpu", drawing)
    running(drawing, free, {"free-0": "r2-3"})

    found = plan(f"free: 2 x 8gpu\n{PICKY}", drawing=drawing)

    assert (nodes(found, "free"), nodes(found, "picky")) == (["r2-3", "r2-1"], ["r1-1", "r1-2"])


def test_wanted_tasks_of_earlier_groups_move_and_are_not_lost() -> None:
    drawing = drawn(RACKS)
    kept = plan(f"free: 1 x 8gpu + wanted 2 x 8gpu\n{PICKY}", drawing=drawing)
    lost = plan(f"free: 1 x 8gpu + wanted 3 x 8gpu\n{PICKY}", drawing=drawing)

    assert nodes(kept, "free") == ["r2-1", "r2-2", "r2-3"]
    assert nodes(kept, "picky") == ["r1-1", "r1-2"]
    assert verdicts(lost) == {"free": "placed", "picky": "waiting"}


def test_wanted_tasks_of_the_newcomer_are_added_as_far_as_there_is_room() -> None:
    picky = "picky: 1 x 8gpu + wanted 2 x 8gpu required=rack excluding=r1-2,r2-1,r2-2,r2-3"
    found = plan(f"{FREE}\n{picky}")

    assert nodes(found, "free") == ["r1-2"]
    placed = found.gangs[1].decision.found
    assert placed
    assert (dict(placed.nodes), placed.left_out) == ({"picky-0": "r1-1"}, ("picky-1", "picky-2"))


def test_gangs_move_for_one_that_follows_another() -> None:
    """The follower has to be in the rack of its leader, and finds room there once `free` has left it."""
    drawing = drawn("cluster rack\n  rack r1 [8 8]\n  rack r2 [8 8 8]")
    free, leader, follower = gangs(
        f"{FREE}\n"
        "lead: 1 x 8gpu required=rack excluding=r2-1,r2-2,r2-3\n"
        "next: 1 x 8gpu required=rack excluding=r2-1,r2-2,r2-3",
        drawing,
    )
    asked = Workload("wf", "PodCliqueSet", pool(drawing), (free, leader, replace(follower, follows="lead")))

    found = Planner(cluster(drawing)).plan(asked)

    assert [nodes(found, name) for name in ("free", "lead", "next")] == [["r2-1"], ["r1-1"], ["r1-2"]]


@pytest.mark.parametrize(("limit", "reason"), [(24, None), (23, Reason.OVER_QUOTA)])
def test_groups_together_keep_to_the_limit_of_the_pool(limit: int, reason: Reason | None) -> None:
    refusal = plan(BOTH, limit=limit).gangs[1].decision.refusal

    assert (refusal.reason if refusal else None) is reason


def test_what_is_not_proved_is_undecided_and_says_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence, "SIDE_BUDGET", 0)
    found = plan(f"{FREE}\n{PICKY}")

    assert verdicts(found) == {"free": "placed", "picky": "undecided"}
    refusal = found.gangs[1].decision.refusal
    assert refusal
    assert refusal.reason is Reason.UNDECIDED
    assert refusal.ways_out
    assert nodes(found, "free") == ["r1-1"]


def test_groups_of_one_kind_are_asked_about_together_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counting(
        others: Sequence[DecidedFamily], new: Sequence[Gang], room: JointCapacity, budget: int
    ) -> JointPlacement | NoPlacement:
        asked.append(len(others))
        return place_together(others, new, room, budget)

    monkeypatch.setattr(sequence, "place_together", counting)
    found = plan("\n".join(f"g{n}: 2 x 8gpu required=rack" for n in range(8)))

    assert list(verdicts(found).values()) == ["placed"] * 2 + ["waiting"] * 6
    assert asked == [2]


def test_the_next_workload_sees_where_groups_were_moved_to() -> None:
    drawing = drawn(RACKS)
    _, after = planned(drawing, workload(drawing, BOTH), workload(drawing, "g: 2 x 8gpu required=rack", name="next"))

    assert nodes(after, "g") == ["r2-2", "r2-3"]


def test_a_plan_for_kai_warns_that_kai_places_groups_one_after_the_other() -> None:
    (warning,) = [notice for notice in plan(BOTH, scheduler="kai").notices if notice.code == "GreedyGroups"]

    assert warning.message == (
        'group "picky" has its place only because "free" was planned together with it: KAI places one group after the '
        'other, and can leave "picky" pending until more is free'
    )
    assert "GreedyGroups" not in codes(plan(BOTH))
    assert "GreedyGroups" not in codes(plan(f"{PICKY}\n{FREE}", scheduler="kai"))


@pytest.mark.parametrize(
    ("first", "scheduler", "placed"),
    [("", "kai", True), (" preferred=rack", "kai", False), (" preferred=rack", "local", True)],
)
def test_together_too_gangs_with_constraints_keep_off_nodes_that_kai_hides(
    first: str, scheduler: str, *, placed: bool
) -> None:
    """The node without a label is in no rack, and KAI does not see it for a gang that says anything about racks."""
    drawing = drawn("cluster rack\n  rack r1 [8]  rack - [9]")
    name = next(name for name in drawing.nodes if not name.startswith("r1"))
    text = f"a: 1 x 8gpu{first}\nb: 1 x 8gpu required=rack"
    found = plan(text, drawing=drawing, scheduler=scheduler)

    assert verdicts(found) == {"a": "placed", "b": "placed" if placed else "waiting"}
    assert nodes(found, "a") == ([name] if placed else ["r1-1"])
