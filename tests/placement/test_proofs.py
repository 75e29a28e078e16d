"""A reason is reported only where it is proved entirely."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from coterie.errors import Reason
from coterie.gang.tree import Gang, Group, Shape, Task
from coterie.placement.capacity import Capacity
from coterie.placement.explain.decision import decide
from coterie.placement.refusal import Refusal, Verdict
from coterie.rendering import refusals
from coterie.topology.cluster import CPU, Cluster, Node, Pod
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology
from tests.placement.twin import best
from tests.planning.builders import drawn, gangs, running

RACK = Topology.of(("rack", "rack"))
# Tasks that fill six nodes of 60 to the last, in one way that is hard to find.
SIZES = (25, 16, 19, 20, 17, 23, 23, 19, 18, 23, 21, 16, 22, 22, 16, 19, 17, 24)


def two_hard_groups(*, later: bool) -> tuple[Gang, Domains]:
    """Return groups of which only one fits the only free rack of six nodes; without constraints both have room.

    There is such a rack for the other group `later`, or never.
    """
    nodes = [Node(f"n{n}", {"rack": "r"}, {CPU: 60}) for n in range(6)]
    nodes += [Node(f"m{n}", {"rack": f"s{n}"}, {CPU: 60}) for n in range(12)]
    nodes += [Node(f"o{n}", {"rack": "t"}, {CPU: 60}) for n in range(6 if later else 0)]
    pods = [Pod(f"p{n}", f"o{n}", {CPU: 60}, "others") for n in range(6 if later else 0)]
    groups = tuple(
        Group(
            (("rack", name),),
            required=True,
            tasks=tuple(Task(f"{name}{n}", Shape(requests=((CPU, size),)), n) for n, size in enumerate(SIZES)),
        )
        for name in ("a", "b")
    )
    return Gang("g", groups), Domains.of(Cluster.of(nodes, pods), RACK)


def refused(gang: Gang, domains: Domains, anchors: Mapping[str, str] | None = None) -> tuple[Verdict, Refusal, str]:
    """Return the verdict, the refusal and its words, without what is counted behind them."""
    decision = decide(gang, Capacity.now(domains), Capacity.empty(domains), anchors=anchors)
    assert decision.refusal
    said = refusals.message(decision.refusal, gang, domains.topology, domains.cluster)
    return decision.verdict, decision.refusal, said.partition(" (")[0]


def test_groups_conflict_where_each_was_placed_alone_and_all_together_are_proved_to_fail() -> None:
    drawing = drawn("cluster rack of 8\n  rack r1 [8 8]\n  rack r2 [8]\n  rack r3 [8 .]\n  rack r4 [. .]")
    (gang,) = gangs("g:\n  a: 2 x 8gpu required=rack\n  b: 2 x 8gpu required=rack", drawing)
    verdict, refusal, said = refused(gang, drawing.domains())

    assert (verdict, refusal.reason, refusal.alone) == (Verdict.WAITING, Reason.GROUPS_CONFLICT, True)
    assert said == 'rack groups "a" and "b" fit alone, but not together'


@pytest.mark.parametrize("later", [True, False])
def test_that_each_fits_alone_is_not_said_where_it_is_not_proved(
    monkeypatch: pytest.MonkeyPatch, *, later: bool
) -> None:
    monkeypatch.setattr("coterie.placement.explain.decision.SIDE_BUDGET", 40)
    verdict, refusal, said = refused(*two_hard_groups(later=later))

    assert refusal.together == ((("rack", "a"),), (("rack", "b"),))
    assert not refusal.alone
    assert "fit alone, but" not in said
    if later:
        assert (verdict, refusal.reason) == (Verdict.WAITING, Reason.UNDECIDED)
        assert said.startswith(
            'rack groups "a" and "b" do not fit together now; the search budget ran out before it was known '
            "whether each fits alone"
        )
    else:
        assert (verdict, refusal.reason) == (Verdict.IMPOSSIBLE, Reason.NEVER_FITS)
        assert said.startswith('rack groups "a" and "b" do not fit together, not even on the empty cluster; the search')


def test_a_group_that_fits_alone_is_not_said_to_fit_nowhere_beside_tasks_of_the_group_around_it() -> None:
    """Zone a has a rack with two free nodes, where the group fits; but then the third task of the zone has no node."""
    drawing = drawn(
        "cluster zone > rack of 8\n  zone a: rack r1 [8 8]  rack r2 [.]\n  zone b: rack r1 [8]  rack r2 [8] rack r3 [8]"
    )
    (gang,) = gangs("g: 1 x 8gpu required=zone\n  m: 2 x 8gpu required=rack", drawing)
    verdict, refusal, said = refused(gang, drawing.domains())

    assert best(gang, drawing.domains(), {}) is None
    assert (verdict, refusal.reason) == (Verdict.WAITING, Reason.GROUPS_CONFLICT)
    assert said == 'rack group "m" and the other tasks of the zone fit alone, but not together'


def test_groups_that_conflict_inside_a_preferred_group_are_named_and_not_the_preferred_group() -> None:
    drawing = drawn(
        "cluster zone > rack of 8\n  zone a: rack r1 [8 8]  rack r2 [8]  rack r3 [8 .]\n  zone b: rack r4 [. .]"
    )
    (gang,) = gangs("g:\n  p: preferred=zone\n    a: 2 x 8gpu required=rack\n    b: 2 x 8gpu required=rack", drawing)
    verdict, refusal, said = refused(gang, drawing.domains())

    assert (verdict, refusal.reason, refusal.alone) == (Verdict.WAITING, Reason.GROUPS_CONFLICT, True)
    assert said == 'rack groups "a" and "b" fit alone, but not together'


# Where the task of zone group z runs, no rack has two free nodes; elsewhere one has.
TWO_ZONES = "cluster zone > rack of 8\n  zone a: rack r1 [8 8 .]  rack r2 [8]\n  zone b: rack r1 [8 8]"


def test_a_group_is_looked_for_only_where_the_group_around_it_already_runs() -> None:
    drawing = drawn(TWO_ZONES)
    (gang,) = gangs("g:\n  z: 1 x 8gpu required=zone\n    m: 2 x 8gpu required=rack", drawing)
    anchors = {"z-0": "a-r1-1"}
    running(drawing, gang, anchors)
    verdict, refusal, said = refused(gang, drawing.domains(), anchors)

    assert (verdict, refusal.reason) == (Verdict.WAITING, Reason.NO_DOMAIN_FITS)
    assert (refusal.path[-1], refusal.around) == (("rack", "m"), ("a",))
    assert {near.domain[0] for near in refusal.best} == {"a"}
    assert said == (
        'no rack of a, where the group around it already runs, can hold all 2 tasks of rack group "m" now: '
        "the best, a/r1, fits 1"
    )


@pytest.mark.parametrize("later", [True, False])
def test_groups_of_different_levels_that_conflict_may_already_run(*, later: bool) -> None:
    """The larger group, of zones, runs in zone a; the first by name is of racks."""
    rows = f"zone a: rack r1 [8 8 8]\n  zone b: {'rack r1 [.]  ' if later else ''}rack - [8]"
    drawing = drawn(f"cluster zone > rack of 8\n  {rows}")
    (gang,) = gangs("g:\n  a: 1 x 8gpu required=rack\n  z: 3 x 8gpu required=zone", drawing)
    anchors = {"z-0": "a-r1-1"}
    running(drawing, gang, anchors)
    verdict, refusal, said = refused(gang, drawing.domains(), anchors)

    if later:
        assert (verdict, refusal.reason) == (Verdict.WAITING, Reason.GROUPS_CONFLICT)
        assert said == 'rack group "a" and zone group "z" fit alone, but not together'
    else:
        assert (verdict, refusal.reason) == (Verdict.IMPOSSIBLE, Reason.NEVER_FITS)
        assert said == 'rack group "a" and zone group "z" fit alone, but not together, not even on the empty cluster'
