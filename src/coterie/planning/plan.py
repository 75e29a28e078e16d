"""Plans of workloads on a cluster in sequence, each on the capacity that the earlier ones left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from coterie.backends.shared.ownership import RunningTasks
from coterie.errors import Fault, Notice, SpecErrors
from coterie.gang.tree import Gang, Path
from coterie.placement.capacity import Capacity
from coterie.placement.joint import DecidedFamily
from coterie.placement.refusal import Decision, Verdict
from coterie.placement.whatif import Change
from coterie.planning.advice.notices import notices_for, running_notices
from coterie.planning.affinity.pod_affinity import AntiAffinityGroup, Separated, with_pod_affinity
from coterie.planning.affinity.pods import PlacedTask
from coterie.planning.affinity.separation_rows import padded
from coterie.planning.nvlink_channels import with_claims
from coterie.planning.sequence import PlanSequence
from coterie.planning.workload import Workload
from coterie.topology.channels import with_channels
from coterie.topology.cluster import Cluster, Ints
from coterie.topology.domains import Domains

_ORDER = list(Verdict)


@dataclass(frozen=True, slots=True)
class ConstraintOutcome:
    """The outcome of one constraint: the domains its tasks use, with None for a task outside every domain."""

    path: Path
    level: str
    required: bool
    domains: tuple[tuple[str | None, ...], ...] = ()

    @property
    def satisfied(self) -> bool:
        """Whether all tasks share one domain."""
        return len(self.domains) == 1 and None not in self.domains[0]


@dataclass(frozen=True, slots=True)
class GangPlan:
    """The decision about one gang, with the outcome of every constraint."""

    gang: Gang
    decision: Decision
    outcomes: tuple[ConstraintOutcome, ...]
    survivors: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """The placement that a workload would get now, or why it would get none."""

    workload: Workload
    domains: Domains
    gangs: tuple[GangPlan, ...]
    notices: tuple[Notice, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all gangs."""
        return max((plan.decision.verdict for plan in self.gangs), key=_ORDER.index, default=Verdict.PLACED)


@dataclass(eq=False)
class Planner:
    """The planner of workloads on one cluster; the hypothetical `changes` apply to all of them."""

    cluster: Cluster
    changes: Sequence[Change] = ()
    fresh: bool = False
    _taken: Ints | None = field(default=None, init=False)
    _placed: tuple[PlacedTask, ...] = field(default=(), init=False)  # pods placed so far, for inter-pod affinity
    # GPUs taken so far, by pool and workload
    _pools: dict[str, Counter[str]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.cluster = with_channels(self.cluster)

    def plan(self, workload: Workload, *, remember: bool = True) -> Plan:
        """Return the plan of one workload; by default, its capacity is charged for those planned after it."""
        asked = with_claims(workload, self.cluster)
        separated = with_pod_affinity(asked, self.cluster, self._placed)
        plan, most = self._planned(separated)
        if broken := _broken(separated, plan):
            plan, most = self._spread(asked, plan, broken)
        if remember and most is not None:
            self._placed += _placed(plan)
            most = most[: len(self.cluster.resources)]
            self._taken = most if self._taken is None else self._taken + most
            gpus = int(self.cluster.gpus(most).sum())
            self._pools.setdefault(workload.pool.name, Counter())[workload.name] += gpus
        return plan

    def held(self, pool: str) -> Mapping[str, int]:
        """Return the GPUs that the workloads planned so far take in a pool, by workload."""
        return dict(self._pools.get(pool, {}))

    def _planned(self, separated: Separated) -> tuple[Plan, Ints | None]:
        """Return a plan, and the most that it newly takes at any time."""
        workload, cluster = separated.workload, separated.cluster
        domains = Domains.of(cluster, workload.pool.topology)
        names = filter(None, (workload.name, workload.set_name))
        sight = RunningTasks.of(cluster, () if self.fresh else names, workload.namespace)
        taken = padded(self._taken, cluster)
        used = sum(self.held(workload.pool.name).values())
        course = PlanSequence(workload, domains, sight, self.changes, taken, used)
        plans = {plan.gang.name: plan for one in course.run() for plan in _plans(one, course, domains)}
        ordered = tuple(plans[gang.name] for gang in workload.gangs)
        placed = [plan.gang for plan in ordered if plan.decision.found]
        seen = running_notices(workload, sum(len(plan.survivors) for plan in ordered), sight)
        notices = (*workload.notices, *seen, *notices_for(workload, domains, placed), *course.forecast_notices())
        return Plan(workload, domains, ordered, notices), course.most()

    def _spread(self, asked: Workload, weaker: Plan, broken: Sequence[AntiAffinityGroup]) -> tuple[Plan, Ints | None]:
        """Return a plan that keeps tasks in different domains; raise `SpecErrors` where none as good is found."""
        room = _room(weaker, broken, self._taken)
        separated = with_pod_affinity(asked, self.cluster, self._placed, room=room)
        plan, most = self._planned(separated)
        needed = frozenset(task.name for one in plan.gangs for task in one.gang.all_tasks() if task.needed)
        if len(plan.gangs) == 1 and any(each.crowded(needed) for each in separated.spread):
            return plan, most  # no placement with one node of each domain, and none with any number
        if _left_out(plan) - _left_out(weaker) or _broken(separated, plan):
            raise SpecErrors(list(dict.fromkeys(map(_neither, broken))))
        # Another choice of nodes might have been better.
        return replace(plan, gangs=tuple(map(_unproved, plan.gangs))), most


def _new(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield the newly placed tasks with their nodes."""
    for one in plan.gangs:
        if one.decision.found:
            yield from ((task, node) for task, node in one.decision.found.nodes.items() if task not in one.survivors)


def _placed(plan: Plan) -> tuple[PlacedTask, ...]:
    """Return the newly placed pods whose affinity is known."""
    workload = plan.workload
    new = _new(plan) if workload.traits else ()
    return tuple(PlacedTask(workload.traits[task], node, workload.name) for task, node in new)


def _broken(separated: Separated, plan: Plan) -> list[AntiAffinityGroup]:
    """Return the spread constraints that a plan breaks."""
    if not separated.spread:
        return []
    position = separated.cluster.position
    nodes = {task: position[node] for task, node in _new(plan)}
    return [each for each in separated.spread if each.broken(nodes)]


def _neither(spread: AntiAffinityGroup) -> Fault:
    """Return the refusal of a spread that the plan neither satisfied nor proved infeasible."""
    message = (
        "whether these pods can be kept in different domains of several nodes is not known: a plan found no placement"
    )
    return replace(spread.refusal, message=message)


def _left_out(plan: Plan) -> frozenset[str]:
    """Return the tasks without a placement."""
    placed = {task for one in plan.gangs if one.decision.found for task in one.decision.found.nodes}
    return frozenset(task.name for one in plan.gangs for task in one.gang.all_tasks() if task.name not in placed)


def _room(plan: Plan, spread: Sequence[AntiAffinityGroup], taken: Ints | None) -> Ints:
    """Return how many of the tasks to be spread would fit on each node of the cluster."""
    concerned = frozenset[str]().union(*(each.holders | each.matched for each in spread))
    capacity = Capacity.now(plan.domains)
    if (before := padded(taken, plan.domains.cluster)) is not None:
        capacity.give(-before[:, plan.domains.order])
    shapes = {task.shape for one in plan.gangs for task in one.gang.all_tasks() if task.name in concerned}
    room = np.zeros(len(plan.domains), dtype=np.int64)
    for shape in shapes:
        fits = capacity.fit(shape).fits
        room[plan.domains.order] += fits + 1000 * (fits > 0)
    return room


def _unproved(one: GangPlan) -> GangPlan:
    found = one.decision.found
    return one if found is None else replace(one, decision=replace(one.decision, found=replace(found, optimal=False)))


def _plans(one: DecidedFamily, course: PlanSequence, domains: Domains) -> Iterator[GangPlan]:
    positions = {
        task: position
        for decision in one.decisions
        if decision.found
        for task, position in decision.found.positions.items()
    }
    for gang, decision in zip(one.family, one.decisions, strict=True):
        outcomes = _outcomes(gang, positions if decision.found else {}, domains, one.family[0])
        yield GangPlan(gang, decision, outcomes, course.survivors[gang.name])


def _outcomes(
    gang: Gang, positions: Mapping[str, int], domains: Domains, leader: Gang
) -> tuple[ConstraintOutcome, ...]:
    """Return the outcome of each group; one that a follower shares with its leader has the tasks of both."""
    theirs = {group.path: tuple(group.all_tasks()) for group in leader.walk()} if gang is not leader else {}
    outcomes = []
    for group in gang.walk():
        used: dict[tuple[str | None, ...], None] = {}
        outside: list[tuple[str | None, ...]] = []
        tier = domains.tiers[domains.topology.index(group.level)]
        tasks = (*theirs.get(group.path, ()), *sorted(group.all_tasks(), key=lambda task: task.rank))
        for task in tasks:
            if (position := positions.get(task.name)) is None:
                continue
            domain = int(tier.of[position])
            if domain >= 0:
                used[tier.values[domain]] = None
            else:
                outside.append((*domains.values(position).values(), None))
        outcomes.append(ConstraintOutcome(group.path, group.level, group.required, (*used, *outside)))
    return tuple(outcomes)
