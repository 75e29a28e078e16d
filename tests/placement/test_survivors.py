"""With tasks already running, a plan and its explanation cover the rest of the gang, not all of it."""

from __future__ import annotations

from coterie.errors import Reason
from coterie.placement.refusal import Refusal, Verdict
from coterie.placement.whatif import Release
from coterie.planning.plan import GangPlan, Planner
from tests.planning.applied_manifests import Case, failings
from tests.planning.builders import cluster, drawn, gangs, running, workload
from tests.planning.test_refusals import contradictions

TWO_RACKS = "cluster rack of 8\n  rack r1 [8 8 .:other]\n  rack r2 [8 8 8]"


def planned(rows: str, text: str, where: dict[str, str], *, drop: str = "") -> tuple[GangPlan, Case]:
    """Plan a gang some of whose tasks run; `drop` is a node that dies after that."""
    drawing = drawn(rows)
    (gang,) = gangs(text, drawing)
    running(drawing, gang, where)
    if drop:
        drawing.change(f"lose {drop}")
    plan = Planner(cluster(drawing)).plan(workload(drawing, text))
    case = Case(gang, drawing.topology, list(drawing.nodes.values()), drawing.pods, plan.gangs[0].survivors)
    return plan.gangs[0], case


def refused(one: GangPlan) -> Refusal:
    assert one.decision.refusal
    return one.decision.refusal


def test_a_replacement_goes_into_the_domain_of_the_survivors() -> None:
    """The tightest rack for one task is r1; the survivor is in r2."""
    one, _ = planned(TWO_RACKS, "g: 2 x 8gpu required=rack", {"g-0": "r2-1"})

    assert one.decision.found
    assert one.decision.found.nodes == {"g-0": "r2-1", "g-1": "r2-2"}


def test_where_the_survivors_rack_is_full_the_rest_waits_instead_of_going_elsewhere() -> None:
    one, _ = planned(TWO_RACKS, "g: 2 x 8gpu required=rack", {"g-0": "r1-1", "g-1": "r1-2"}, drop="r1-2")

    assert one.decision.verdict is Verdict.WAITING
    assert refused(one).reason is Reason.NO_DOMAIN_FITS


def test_the_whole_group_may_move_where_nothing_of_it_is_left() -> None:
    one, _ = planned(TWO_RACKS, "g: 2 x 8gpu required=rack", {"g-0": "r1-1"}, drop="r1-1")

    assert one.decision.found
    assert set(one.decision.found.nodes.values()) == {"r2-1", "r2-2"}


def test_a_replacement_never_goes_to_the_node_that_failed() -> None:
    one, _ = planned(TWO_RACKS, "g: 2 x 8gpu required=rack", {"g-0": "r2-1", "g-1": "r2-2"}, drop="r2-2")

    assert one.decision.found
    assert one.decision.found.nodes == {"g-0": "r2-1", "g-1": "r2-3"}


def test_the_nearest_domain_of_a_refusal_is_not_one_that_would_do() -> None:
    """All of the gang would fit r2, but what runs is in r1: r2 is no answer, and not the best."""
    one, _ = planned(TWO_RACKS, "g: 2 x 8gpu required=rack", {"g-0": "r1-1", "g-1": "r1-2"}, drop="r1-2")

    assert contradictions(refused(one)) == []


def test_what_the_gang_itself_holds_is_not_in_its_way() -> None:
    one, _ = planned(TWO_RACKS, "g: 2 x 8gpu required=rack", {"g-0": "r1-1", "g-1": "r1-2"}, drop="r1-2")

    assert [holder.owner for holder in refused(one).holders] == ["other"]
    assert Release("wf") not in [way.change for way in refused(one).ways_out]


def test_ways_out_count_what_runs_on_the_empty_cluster_too() -> None:
    """Four tasks never fit three nodes, preferred or not."""
    one, case = planned("cluster rack\n  rack r1 [8 8]\n  rack r2 [8]", "g: 4 x 8gpu required=rack", {"g-0": "r1-1"})

    assert one.decision.verdict is Verdict.IMPOSSIBLE
    assert [failings(way, case) for way in refused(one).ways_out if failings(way, case)] == []


def test_a_relabelled_node_under_a_survivor_is_a_lost_level() -> None:
    drawing = drawn("cluster rack\n  rack r1 [8 8]\n  rack r2 [8 8]")
    text = "g: 3 x 4gpu required=rack"
    running(drawing, gangs(text, drawing)[0], {"g-0": "r1-1", "g-1": "r1-2"})
    drawing.change("relabel r1-2 rack=r2")

    plan = Planner(cluster(drawing)).plan(workload(drawing, text))

    assert refused(plan.gangs[0]).reason is Reason.LEVEL_LOST


def test_a_wish_that_survivors_break_loses_nothing() -> None:
    drawing = drawn("cluster rack\n  rack r1 [8 8]\n  rack r2 [8 8]")
    text = "g: 3 x 4gpu preferred=rack"
    running(drawing, gangs(text, drawing)[0], {"g-0": "r1-1", "g-1": "r1-2"})
    drawing.change("relabel r1-2 rack=r2")

    plan = Planner(cluster(drawing)).plan(workload(drawing, text))

    assert plan.gangs[0].decision.found
    assert plan.gangs[0].decision.found.extra == {"rack": 1}
