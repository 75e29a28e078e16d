"""Groups that start together, against the literal rule: each is kept if all kept so far fit with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.config.configuration import Pool
from coterie.gang import edits
from coterie.gang.tree import Gang
from coterie.placement.refusal import Verdict
from coterie.planning.plan import Plan, Planner
from coterie.planning.workload import Workload
from coterie.service.queue.holdings import BackendHoldings as Nodes
from coterie.service.queue.queue import PlacedGang, Queue, QueueEntry
from coterie.topology.cluster import Cluster, Member, Pod
from tests.placement.twin import best, extra, verify
from tests.property.worlds.random_worlds import EngineQuestion, tiny_worlds
from tests.random_examples import examples

randoms = st.randoms(use_true_random=False)
thorough = settings(max_examples=examples(200), deadline=None)


@given(tiny_worlds(), randoms)
@thorough
def test_groups_are_placed_if_and_only_if_they_have_places_together(world: EngineQuestion, rng: Random) -> None:
    groups = _dealt(rng, world.gang)
    plan = _planned(world, groups)
    placed = [one.gang.name for one in plan.gangs if one.decision.found]
    assert placed == [group.name for group in _kept(world, groups)], f"{groups}\n{world}"
    assert all(one.decision.verdict is not Verdict.UNDECIDED for one in plan.gangs)


@given(tiny_worlds(), randoms)
@thorough
def test_groups_that_are_placed_keep_every_rule_beside_each_other(world: EngineQuestion, rng: Random) -> None:
    groups = _dealt(rng, world.gang)
    plan = _planned(world, groups)
    found = [(one.gang, one.decision.found) for one in plan.gangs if one.decision.found]
    for gang, one in found:
        anchors = {task: node for task, node in world.anchors.items() if task in one.nodes}
        assert verify(gang, plan.domains, one, anchors) == [], f"{groups}\n{world}"
    if found:
        nodes = {task: node for _, one in found for task, node in one.nodes.items()}
        whole = _side_by_side([gang for gang, _ in found])
        cost = extra(whole, plan.domains, nodes)
        assert verify(whole, plan.domains, replace(found[0][1], nodes=nodes, extra=cost), world.anchors) == []


@given(tiny_worlds(), randoms)
@thorough
def test_the_queue_seats_groups_where_the_plan_said(world: EngineQuestion, rng: Random) -> None:
    pods = tuple(pod for pod in world.pods if pod.member is None)
    plain = replace(world, pods=pods, anchors={})
    groups = _dealt(rng, plain.gang)
    plan = _planned(plain, groups)
    queue = Queue(Nodes(Cluster.of(plain.nodes, pods)))
    for group in groups:
        queue.put(QueueEntry(("w", group.name, 1), _pool(world), group, "NORMAL", 0.0, 1))
    seated = {told.entry.key[1]: told.held for told in queue.cycle(0.0) if isinstance(told, PlacedGang)}
    assert {name: {one.task: one.node for one in held} for name, held in seated.items()} == {
        one.gang.name: one.decision.found.nodes for one in plan.gangs if one.decision.found
    }, f"{groups}\n{world}"


def _pool(world: EngineQuestion) -> Pool:
    return Pool("p", "b", "local", topology=world.topology)


def _planned(world: EngineQuestion, groups: Sequence[Gang]) -> Plan:
    """Plan groups of one workload; its tasks that run have pods with the name of their group."""
    group_of = {task.name: group.name for group in groups for task in group.all_tasks()}
    pods = [replace(pod, member=_member(pod, group_of)) for pod in world.pods]
    return Planner(Cluster.of(world.nodes, pods)).plan(Workload("w", "Workflow", _pool(world), tuple(groups)))


def _member(pod: Pod, group_of: Mapping[str, str]) -> Member | None:
    return replace(pod.member, group=group_of[pod.member.task]) if pod.member else None


def _dealt(rng: Random, gang: Gang) -> list[Gang]:
    """Deal the tasks of a gang out to two or three groups, as far as there are tasks."""
    tasks = [task.name for task in gang.all_tasks()]
    rng.shuffle(tasks)
    count = min(rng.choice((2, 2, 3)), len(tasks))
    cuts = sorted(rng.sample(range(1, len(tasks)), count - 1))
    shares = [tasks[start:end] for start, end in zip([0, *cuts], [*cuts, len(tasks)], strict=True)]
    return [replace(edits.only_tasks(gang, share), name=f"g{number}") for number, share in enumerate(shares)]


def _kept(world: EngineQuestion, groups: Sequence[Gang]) -> list[Gang]:
    """Add one group after the other, asking by enumeration whether all have places."""
    kept: list[Gang] = []
    for group in groups:
        names = {task.name for one in (*kept, group) for task in one.all_tasks()}
        anchors = {task: node for task, node in world.anchors.items() if task in names}
        if best(_side_by_side([*kept, group]), world.domains, anchors) is not None:
            kept.append(group)
    return kept


def _side_by_side(gangs: Sequence[Gang]) -> Gang:
    """Return gangs as one, of which each keeps its groups to itself."""
    return edits.joined([edits.set_apart(gang, str(number)) for number, gang in enumerate(gangs)])
