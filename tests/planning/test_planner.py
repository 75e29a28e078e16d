"""The capacity that each gang of a call sees: after earlier workloads, beside concurrent and after finished groups."""

from __future__ import annotations

import pytest

from coterie.errors import Reason
from coterie.placement.refusal import Verdict
from coterie.placement.whatif import Keep, Prefer, Release, Uncordon
from coterie.planning.advice.quota import QuotaQuestion, with_quota
from coterie.planning.plan import Plan, Planner
from coterie.planning.report import plan_json
from coterie.topology.cluster import GPU, Member, Pod
from tests.placement.twin import verify
from tests.planning.builders import cluster, drawn, nodes, planned, pool, running, workload

ONE_RACK = """
    cluster rack
      rack r1 [8 8 8 8]
"""


def reason(plan: Plan, gang: str) -> Reason | None:
    one = next(one for one in plan.gangs if one.gang.name == gang)
    return one.decision.refusal.reason if one.decision.refusal else None


def test_a_workload_sees_what_earlier_ones_took() -> None:
    drawing = drawn(ONE_RACK)
    first, second, third = (workload(drawing, "g: 2 x 8gpu required=rack", name=name) for name in ("a", "b", "c"))

    plans = planned(drawing, first, second, third)

    assert [nodes(plan, "g") for plan in plans] == [["r1-1", "r1-2"], ["r1-3", "r1-4"], None]
    assert [plan.verdict for plan in plans] == [Verdict.PLACED, Verdict.PLACED, Verdict.WAITING]


def test_a_workload_that_is_not_remembered_takes_nothing_from_the_next() -> None:
    drawing = drawn(ONE_RACK)
    planner = Planner(cluster(drawing))
    asked = workload(drawing, "g: 4 x 8gpu required=rack")

    assert [nodes(planner.plan(asked, remember=False), "g") for _ in range(2)] == [[f"r1-{n}" for n in range(1, 5)]] * 2


def test_a_workload_that_is_refused_takes_nothing() -> None:
    drawing = drawn(ONE_RACK)

    large, small = planned(
        drawing, workload(drawing, "g: 5 x 8gpu", name="large"), workload(drawing, "g: 4 x 8gpu", name="small")
    )

    assert (large.verdict, small.verdict) == (Verdict.IMPOSSIBLE, Verdict.PLACED)


def test_a_workload_that_never_fits_is_impossible_whatever_was_taken() -> None:
    drawing = drawn(ONE_RACK)

    _, wait, never = planned(
        drawing,
        workload(drawing, "g: 4 x 8gpu", name="first"),
        workload(drawing, "g: 4 x 8gpu", name="wait"),
        workload(drawing, "g: 5 x 8gpu", name="never"),
    )

    assert (wait.verdict, never.verdict) == (Verdict.WAITING, Verdict.IMPOSSIBLE)


def test_groups_that_run_at_the_same_time_share_the_capacity() -> None:
    drawing = drawn(ONE_RACK)

    (plan,) = planned(drawing, workload(drawing, "a: 3 x 8gpu\nb: 2 x 8gpu"))

    assert (nodes(plan, "a"), nodes(plan, "b")) == (["r1-1", "r1-2", "r1-3"], None)
    assert plan.verdict is Verdict.WAITING


def test_a_group_that_waits_for_inputs_is_planned_as_if_those_before_it_had_finished() -> None:
    drawing = drawn(ONE_RACK)

    (plan,) = planned(
        drawing,
        workload(drawing, "a: 4 x 8gpu\nb: 4 x 8gpu\nc: 4 x 8gpu", needs={"b": "a", "c": "b"}),
    )

    assert [nodes(plan, name) for name in "abc"] == [[f"r1-{n}" for n in range(1, 5)]] * 3


@pytest.mark.parametrize(("beside", "placed"), [(1, True), (2, False)])
def test_a_chain_holds_no_more_than_its_largest_link_beside_an_independent_group(beside: int, *, placed: bool) -> None:
    """While `beside` runs, any one of a, b and c may be running: the largest of them counts, not their sum."""
    drawing = drawn(ONE_RACK)

    (plan,) = planned(
        drawing,
        workload(
            drawing,
            f"a: 2 x 8gpu\nb: 3 x 8gpu\nc: 1 x 8gpu\nbeside: {beside} x 8gpu",
            needs={"b": "a", "c": "b"},
        ),
    )

    assert [nodes(plan, name) is not None for name in ("a", "b", "c", "beside")] == [True, True, True, placed]


def test_what_a_chain_leaves_to_the_next_workload_is_what_its_peak_leaves() -> None:
    drawing = drawn(ONE_RACK)
    chain = workload(drawing, "a: 3 x 8gpu\nb: 3 x 8gpu", name="chain", needs={"b": "a"})

    _, one, two = planned(
        drawing, chain, workload(drawing, "g: 1 x 8gpu", name="one"), workload(drawing, "g: 1 x 8gpu", name="two")
    )

    assert (one.verdict, two.verdict) == (Verdict.PLACED, Verdict.WAITING)


def test_two_gangs_planned_in_one_call_never_overlap() -> None:
    drawing = drawn("""
        cluster rack of 8
          rack r1 [8 4:x 2:x 8]
          rack r2 [8 8 . 8]
    """)
    (plan,) = planned(drawing, workload(drawing, "a: 5 x 4gpu\nb: 3 x 2gpu + 1 x 8gpu\nc: 1 x 8gpu"))

    for one in plan.gangs:
        assert one.decision.found
        assert verify(one.gang, plan.domains, one.decision.found) == []
    together = [task for one in plan.gangs for task in one.gang.all_tasks()]
    used = dict.fromkeys(plan.domains.cluster.names, 0)
    for one in plan.gangs:
        for task in one.gang.all_tasks():
            assert one.decision.found
            used[one.decision.found.nodes[task.name]] += task.shape.amount("nvidia.com/gpu")
    assert sum(used.values()) == sum(task.shape.amount("nvidia.com/gpu") for task in together)
    assert used["r1-2"] <= 4
    assert used["r1-3"] <= 2
    assert max(used.values()) <= 8


@pytest.mark.parametrize(
    ("limit", "text", "verdict"),
    [
        (None, "a: 4 x 8gpu", Verdict.PLACED),
        (32, "a: 4 x 8gpu", Verdict.PLACED),
        (31, "a: 4 x 8gpu", Verdict.IMPOSSIBLE),
        (16, "a: 1 x 8gpu\nb: 1 x 8gpu", Verdict.PLACED),
        (15, "a: 1 x 8gpu\nb: 1 x 8gpu", Verdict.WAITING),
        (0, "a: 1 x 8gpu", Verdict.IMPOSSIBLE),
        (0, "a: 1 x 4cpu", Verdict.PLACED),
    ],
)
def test_a_pool_never_uses_more_gpus_than_its_limit(limit: int | None, text: str, verdict: Verdict) -> None:
    drawing = drawn(ONE_RACK)

    (plan,) = planned(drawing, workload(drawing, text, where=pool(drawing, limit=limit)))

    assert plan.verdict is verdict
    assert reason(plan, plan.gangs[-1].gang.name) is (None if verdict is Verdict.PLACED else Reason.OVER_QUOTA)


def test_groups_that_follow_each_other_use_the_limit_one_after_the_other() -> None:
    drawing = drawn(ONE_RACK)

    (plan,) = planned(
        drawing,
        workload(drawing, "a: 2 x 8gpu\nb: 2 x 8gpu", needs={"b": "a"}, where=pool(drawing, limit=16)),
    )

    assert plan.verdict is Verdict.PLACED


def test_a_limit_counts_the_workloads_of_its_pool_that_were_planned_before() -> None:
    drawing = drawn(ONE_RACK)
    small = pool(drawing, limit=16, name="small")

    first, other, second = planned(
        drawing,
        workload(drawing, "g: 1 x 8gpu", name="first", where=small),
        workload(drawing, "g: 1 x 8gpu", name="other"),
        workload(drawing, "g: 2 x 8gpu", name="second", where=small),
    )

    assert (first.verdict, other.verdict, second.verdict) == (Verdict.PLACED, Verdict.PLACED, Verdict.WAITING)
    assert reason(second, "g") is Reason.OVER_QUOTA


def test_a_limit_that_is_overdrawn_keeps_nobody_back_who_takes_no_gpu() -> None:
    drawing = drawn(ONE_RACK)

    _, without, with_gpus = planned(
        drawing,
        workload(drawing, "g: 2 x 8gpu", name="first", where=pool(drawing, name="small")),
        workload(drawing, "g: 1 x 4cpu", name="second", where=pool(drawing, limit=8, name="small")),
        workload(drawing, "g: 1 x 1gpu", name="third", where=pool(drawing, limit=8, name="small")),
    )

    assert (without.verdict, reason(with_gpus, "g")) == (Verdict.PLACED, Reason.OVER_QUOTA)


@pytest.mark.parametrize(
    ("gpus", "limit", "expected"),
    [(40, 64, Reason.NEVER_FITS), (8, 4, Reason.OVER_QUOTA), (40, 4, Reason.OVER_QUOTA)],
    ids=["quota free, cluster too small", "cluster free, quota full", "both"],
)
def test_quota_and_capacity_are_told_apart(gpus: int, limit: int, expected: Reason) -> None:
    drawing = drawn(ONE_RACK)

    (plan,) = planned(drawing, workload(drawing, f"a: {gpus} x 1gpu", where=pool(drawing, limit=limit)))

    assert reason(plan, "a") is expected


def test_tasks_that_run_stay_and_the_rest_joins_them() -> None:
    drawing = drawn("""
        cluster rack
          rack r1 [8 8]
          rack r2 [8 8 8 8]
    """)
    asked = workload(drawing, "g: 2 x 8gpu required=rack")
    running(drawing, asked.gangs[0], {"g-1": "r2-2"})

    (plan,) = planned(drawing, asked)

    assert nodes(plan, "g") == ["r2-1", "r2-2"]
    assert plan.gangs[0].survivors == {"g-1": "r2-2"}
    assert [notice.code for notice in plan.notices] == ["AlreadyRunning"]


def test_a_fresh_plan_is_a_new_submission_beside_what_runs() -> None:
    drawing = drawn("""
        cluster rack
          rack r1 [8 8]
          rack r2 [8 8 8 8]
    """)
    asked = workload(drawing, "g: 2 x 8gpu required=rack")
    running(drawing, asked.gangs[0], {"g-1": "r2-2"})

    plan = Planner(cluster(drawing), fresh=True).plan(asked)

    assert nodes(plan, "g") == ["r1-1", "r1-2"]
    assert plan.gangs[0].survivors == {}
    assert plan.notices == ()


@pytest.mark.parametrize("who", ["another workload", "another group", "a task it does not have", "on its way out"])
def test_pods_that_are_not_surviving_tasks_only_hold_capacity(who: str) -> None:
    drawing = drawn(ONE_RACK)
    asked = workload(drawing, "g: 2 x 8gpu required=rack")
    (other,) = workload(drawing, "h: 3 x 8gpu").gangs
    match who:
        case "another workload":
            running(drawing, asked.gangs[0], {"g-0": "r1-1"}, name="other")
        case "another group":
            running(drawing, other, {"h-0": "r1-1"})
        case "a task it does not have":
            (more,) = workload(drawing, "g: 3 x 8gpu").gangs
            running(drawing, more, {"g-2": "r1-1"})
        case _:
            drawing.change("pod wf on r1-1 gpu=8 terminating")

    (plan,) = planned(drawing, asked)

    assert nodes(plan, "g") == ["r1-2", "r1-3"]


def test_tasks_that_run_in_several_namespaces_are_told_of_and_only_hold_capacity() -> None:
    drawing = drawn(ONE_RACK)
    asked = workload(drawing, "g: 1 x 8gpu")
    member = Member("wf", "g", "g-0")
    places = {"a": "r1-1", "b": "r1-2"}
    drawing.pods += [Pod(f"{space}/p", node, {GPU: 8}, member=member) for space, node in places.items()]

    (plan,) = planned(drawing, asked)

    assert nodes(plan, "g") == ["r1-3"]
    assert [notice.code for notice in plan.notices] == ["NamespaceUnknown"]
    assert "(a, b)" in plan.notices[0].message


def test_survivors_take_nothing_twice() -> None:
    """A task that runs is in the snapshot already: what it holds is not charged again to the next workload."""
    drawing = drawn(ONE_RACK)
    asked = workload(drawing, "g: 2 x 8gpu required=rack")
    running(drawing, asked.gangs[0], {"g-0": "r1-1", "g-1": "r1-2"})

    _, rest = planned(drawing, asked, workload(drawing, "g: 2 x 8gpu", name="rest"))

    assert nodes(rest, "g") == ["r1-3", "r1-4"]


def test_changes_hold_for_every_workload_of_a_call() -> None:
    drawing = drawn("""
        cluster rack of 8
          rack r1 [8 .:wf-12]
          rack r2 [8!]
    """)
    asked = workload(drawing, "g: 3 x 8gpu required=rack")
    changes = (Prefer("rack"), Release("wf-12"), Uncordon(("r2-1",)))

    assert Planner(cluster(drawing)).plan(asked).verdict is Verdict.IMPOSSIBLE
    assert nodes(Planner(cluster(drawing), changes).plan(asked), "g") == ["r1-1", "r1-2", "r2-1"]


def test_fewer_tasks_are_the_first_ones_of_the_named_gang_only() -> None:
    drawing = drawn(ONE_RACK)
    asked = workload(drawing, "a: 4 x 8gpu\nb: 2 x 8gpu")

    plan = Planner(cluster(drawing), (Keep("a", (), 2),)).plan(asked)

    assert (nodes(plan, "a"), nodes(plan, "b")) == (["r1-1", "r1-2"], ["r1-3", "r1-4"])


def test_the_verdict_of_a_workload_is_the_worst_of_its_groups() -> None:
    drawing = drawn(ONE_RACK)

    (plan,) = planned(drawing, workload(drawing, "a: 1 x 8gpu\nb: 4 x 8gpu\nc: 9 x 8gpu"))

    assert [one.decision.verdict for one in plan.gangs] == [Verdict.PLACED, Verdict.WAITING, Verdict.IMPOSSIBLE]
    assert plan.verdict is Verdict.IMPOSSIBLE


ONE_NODE = "cluster rack of 8\n  rack r1 [8]"
PAIR = "a: 8gpu required=rack\nb: 8gpu required=rack"


def test_a_group_of_the_same_workflow_that_takes_the_room_is_a_holder() -> None:
    drawing = drawn(ONE_NODE)

    (plan,) = planned(drawing, workload(drawing, PAIR))

    refusal = plan.gangs[1].decision.refusal
    assert refusal
    assert [(one.owner, one.gpus) for one in refusal.holders] == [("group a of this workflow", 8)]


def test_a_group_that_has_finished_before_holds_nothing() -> None:
    drawing = drawn("cluster rack of 8\n  rack r1 [8 8]")
    text = f"{PAIR}\nc: 8gpu required=rack\nd: 8gpu required=rack"

    (plan,) = planned(drawing, workload(drawing, text, needs={"b": "a", "c": "a", "d": "a"}))

    refusal = plan.gangs[3].decision.refusal
    assert refusal
    assert sorted(one.owner for one in refusal.holders) == ["group b of this workflow", "group c of this workflow"]


def test_groups_of_the_same_workflow_are_holders_of_the_pools_limit() -> None:
    drawing = drawn("cluster rack of 8\n  rack r1 [8 8]")
    asked = workload(drawing, PAIR, where=pool(drawing, limit=8))
    (plan,) = planned(drawing, asked)
    question = QuotaQuestion(asked, ("coterie",), {}, lambda _pool, changes, _gone: Planner(cluster(drawing), changes))

    shown = with_quota(plan_json(plan, command=("coterie",), elapsed_ms=0), plan, question)

    assert shown["groups"][1]["refusal"]["holders"] == [{"owner": "group a of this workflow", "gpus": 8, "domain": []}]
