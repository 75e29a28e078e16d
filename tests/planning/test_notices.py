"""The notices of a plan: hidden nodes, label findings, sizes that waste racks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coterie.errors import Notice, Reason
from coterie.placement.refusal import Refusal, Verdict
from coterie.placement.whatif import Uncordon
from coterie.planning.advice.notices import notices_for
from coterie.planning.plan import Plan, Planner
from coterie.rendering.refusals import message
from coterie.topology.levels import Topology
from tests.planning.builders import cluster, drawn, nodes, planned, pool, workload

PARTLY_LABELLED = """
    cluster zone > rack
      zone a: rack r1 [8 8]  rack - [8 8]
"""


def notices(drawing_text: str, gang: str, scheduler: str = "local") -> list[Notice]:
    drawing = drawn(drawing_text)
    asked = workload(drawing, gang, where=pool(drawing, scheduler=scheduler))
    return list(notices_for(asked, drawing.domains(), asked.gangs))


def codes(drawing_text: str, gang: str, scheduler: str = "local") -> list[str]:
    return [notice.code for notice in notices(drawing_text, gang, scheduler)]


@pytest.mark.parametrize(("scheduler", "verdict"), [("local", Verdict.PLACED), ("kai", Verdict.IMPOSSIBLE)])
def test_kai_does_not_use_nodes_that_lack_a_label(scheduler: str, verdict: Verdict) -> None:
    """Four nodes are in the zone, and two of them have no rack: KAI sees two."""
    drawing = drawn(PARTLY_LABELLED)

    (plan,) = planned(drawing, workload(drawing, "g: 3 x 8gpu required=zone", where=pool(drawing, scheduler=scheduler)))

    assert plan.verdict is verdict


def test_uncordoning_a_node_that_kai_does_not_see_is_no_way_out() -> None:
    drawing = drawn("cluster zone > rack\n  zone a: rack r1 [8]  rack - [8!]")

    (plan,) = planned(drawing, workload(drawing, "g: 2 x 8gpu required=zone", where=pool(drawing, scheduler="kai")))

    assert plan.gangs[0].decision.refusal
    assert [way for way in plan.gangs[0].decision.refusal.ways_out if isinstance(way.change, Uncordon)] == []


def test_nodes_hidden_from_kai_are_named() -> None:
    found = [one for one in notices(PARTLY_LABELLED, "g: 2 x 8gpu required=zone", "kai") if "Hidden" in one.code]

    assert [one.code for one in found] == ["HiddenFromScheduler"]
    assert found[0].message.endswith(": a-[1-2]")


def test_kai_uses_every_node_for_work_without_constraints() -> None:
    drawing = drawn(PARTLY_LABELLED)
    asked = workload(drawing, "g: 4 x 8gpu", where=pool(drawing, scheduler="kai"))

    (plan,) = planned(drawing, asked)

    assert nodes(plan, "g") is not None
    assert plan.notices == ()


def test_nothing_is_hidden_from_the_embedded_engine() -> None:
    assert "HiddenFromScheduler" not in codes(PARTLY_LABELLED, "g: 2 x 8gpu required=zone")


@pytest.mark.parametrize(
    ("text", "gang", "expected"),
    [
        (PARTLY_LABELLED, "g: 2 x 8gpu required=rack", ["LabelMissing"]),
        (PARTLY_LABELLED, "g: 2 x 8gpu required=zone", []),
        (PARTLY_LABELLED, "g: 2 x 8gpu", []),
        ("cluster zone > rack\n  zone a: rack - [8 8]", "g: 2 x 8gpu preferred=rack", ["LabelOnNoNode"]),
        ("cluster rack\n  rack r1 [8]  rack R1 [8]", "g: 2 x 1gpu required=rack", ["CaseTwins"]),
    ],
    ids=["missing on some", "another level", "no constraint", "on no node", "case"],
)
def test_odd_labels_are_told_to_those_who_use_the_level(text: str, gang: str, expected: list[str]) -> None:
    assert [code for code in codes(text, gang) if code != "DoesNotTile"] == expected


RACK_OF_18 = "cluster rack of 4\n  rack r1 [18x4]\n  rack r2 [9x4 9x.]"


@pytest.mark.parametrize(
    ("tasks", "warned"),
    [(1, False), (4, False), (5, True), (8, True), (9, False), (10, True), (17, True), (18, False), (19, False)],
)
def test_groups_that_leave_a_remainder_in_every_domain_are_told(tasks: int, *, warned: bool) -> None:
    """Up to three fit: what is left over counts. Where four fit or more, or only one could ever, it does not."""
    assert codes(RACK_OF_18, f"g: {tasks} x 4gpu required=rack") == (["DoesNotTile"] if warned else [])


def test_a_remainder_is_counted_on_the_empty_cluster_and_in_the_right_number() -> None:
    (many,) = notices(RACK_OF_18, "g: 8 x 4gpu required=rack")
    (one,) = notices(RACK_OF_18, "g: 17 x 4gpu required=rack")

    assert "which holds 18: 2 places are left" in many.message
    assert "which holds 18: 1 place is left" in one.message


def test_a_wish_and_mixed_sizes_do_not_tile_anything() -> None:
    assert codes(RACK_OF_18, "g: 8 x 4gpu preferred=rack") == []
    assert codes(RACK_OF_18, "g: 7 x 4gpu + 1 x 2gpu required=rack") == []


GRAINED = "cluster zone > rack of 4\n  zone a: rack r1 [4 4 4 4]  rack r2 [4 4 4 4]  rack r3 [4 4 4 4]"


@pytest.mark.parametrize(
    ("cluster_text", "gang"),
    [
        (
            "cluster rack\n  rack r1 [6x1]\n  rack r2 [5x1]",
            "g:\n  a: 3 x 1gpu required=rack\n  b: 5 x 1gpu required=rack",
        ),
        ("cluster rack\n  rack r1 [7x1]\n  rack r2 [6x1]", "g: 3 x 1gpu required=rack"),
        (GRAINED, "g: required=rack\n  a: 1 x 4gpu\n  b: 3 x 4gpu required=rack"),
        (GRAINED, "g:\n  a: 3 x 4gpu required=rack\n  b: 1 x 4gpu preferred=rack"),
        (GRAINED, "g: 8 x 4gpu required=zone"),
        (
            "cluster zone > rack\n  zone a: rack r1 [7x1]\n  zone b: rack r1 [6x1]  rack r2 [6x1]",
            "g: required=zone\n" + "\n".join(f"  {name}: 3 x 1gpu required=rack" for name in "abcd"),
        ),
    ],
    ids=["together", "another rack", "inside a rack", "beside others", "whole racks", "in a zone that is large enough"],
)
def test_groups_that_fill_a_domain_in_some_way_leave_nothing(cluster_text: str, gang: str) -> None:
    assert "DoesNotTile" not in codes(cluster_text, gang)


def test_equal_groups_are_told_once() -> None:
    text = "g:\n  a: 8 x 4gpu required=rack\n  b: 8 x 4gpu required=rack"

    assert codes(RACK_OF_18, text) == ["DoesNotTile"]


def test_notices_come_with_every_plan_in_the_same_order() -> None:
    drawing = drawn(PARTLY_LABELLED)
    asked = workload(drawing, "g: 2 x 8gpu required=rack", where=pool(drawing, scheduler="kai"))

    first, second = (Planner(cluster(drawing)).plan(asked).notices for _ in range(2))

    assert first == second
    assert [notice.code for notice in first] == ["LabelMissing", "HiddenFromScheduler"]


def with_mistyped_clique(text: str, label: str) -> tuple[Plan, Refusal]:
    """Plan a gang that asks for a rack only, in a pool of KAI whose finest level has another label than the nodes."""
    drawing = drawn(text)
    levels = Topology.of(("rack", drawing.topology.label("rack")), ("clique", label))
    asked = workload(
        drawing, "g: 2 x 8gpu required=rack", where=replace(pool(drawing, scheduler="kai"), topology=levels)
    )
    (plan,) = planned(drawing, asked)
    refusal = plan.gangs[0].decision.refusal
    assert refusal
    return plan, refusal


def test_a_mistyped_label_of_a_level_that_nobody_asks_for_is_named_where_it_hides_the_nodes() -> None:
    plan, refusal = with_mistyped_clique("cluster rack > clique\n  rack r1: clique a [8 8]", "nvidia.com/gpu-clique")

    said = message(refusal, plan.gangs[0].gang, plan.domains.topology, plan.domains.cluster)
    assert (refusal.reason, refusal.level) == (Reason.NODES_UNLABELLED, "clique")
    assert "has the label nvidia.com/gpu-clique of level clique, and the scheduler does not see" in said
    assert 'Did you mean "nvidia.com/gpu.clique"?' in said
    assert "2 nodes are hidden from the scheduler for lack of the label nvidia.com/gpu-clique" in said
    assert "LabelOnNoNode" in [notice.code for notice in plan.notices]


def test_no_single_label_is_blamed_where_nodes_lack_different_ones() -> None:
    plan, refusal = with_mistyped_clique(
        "cluster rack > clique\n  rack -: clique a [8]\n  rack r1: clique - [8]", "nvidia.com/gpu.clique"
    )

    said = message(refusal, plan.gangs[0].gang, plan.domains.topology, plan.domains.cluster)
    assert refusal.reason is Reason.NODES_UNLABELLED
    assert "no node that could run these tasks has the labels of all levels" in said
    assert "for lack of the label topology.kubernetes.io/rack" in said
    assert "for lack of the label nvidia.com/gpu.clique" in said
