"""Planning workloads on a cluster, one after the other, each seeing what the earlier ones took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from coterie.backends.kai.running import Sight
from coterie.errors import Notice
from coterie.gang.tree import Gang, Path
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found
from coterie.placement.family import Quota, decide_family
from coterie.placement.refusal import Decision, Verdict
from coterie.placement.whatif import Change, changed_capacity, changed_gang
from coterie.planning.advice import notices_for, running_notices
from coterie.planning.concurrency import ancestors, peak
from coterie.planning.foresight import Foresight
from coterie.planning.nvlink import with_claims
from coterie.planning.workload import Workload
from coterie.topology.channels import with_channels
from coterie.topology.cluster import GPU, PODS, Cluster, Ints
from coterie.topology.domains import Domains

_ORDER = list(Verdict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one constraint: the domains its tasks use, with None where a task is outside every domain."""

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
    outcomes: tuple[Outcome, ...]
    survivors: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """Where a workload would go now, or why not."""

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
    """Plans workloads on one cluster. `changes` are what-ifs that hold for every question."""

    cluster: Cluster
    changes: Sequence[Change] = ()
    fresh: bool = False
    _taken: Ints | None = field(default=None, init=False)
    _pools: Counter[str] = field(default_factory=Counter, init=False)  # GPUs taken so far, by pool

    def __post_init__(self) -> None:
        self.cluster = with_channels(self.cluster)

    def plan(self, workload: Workload, *, remember: bool = True) -> Plan:
        """Plan one workload; unless told otherwise, what it takes is gone for those planned after it."""
        workload = with_claims(workload, self.cluster)
        foresight = Foresight() if workload.pool.scheduler == "kai" else None
        domains = Domains.of(self.cluster, workload.pool.topology)
        names = filter(None, (workload.name, workload.set_name))
        sight = Sight.of(self.cluster, () if self.fresh else names, workload.namespace)
        before = ancestors(workload.needs)
        held: dict[str, Ints] = {}
        plans: dict[str, GangPlan] = {}
        for originals in families(workload.gangs):
            family = [self._changed(original, domains) for original in originals]
            done = before.get(family[0].name, frozenset())
            beside = {name: amounts for name, amounts in held.items() if name not in done}
            survivors = {gang.name: sight.running(gang) for gang in family}
            for plan in self._plan_family(family, survivors, workload, domains, peak(beside, before), foresight):
                plans[plan.gang.name] = plan
                if plan.decision.found:
                    held[plan.gang.name] = self._amounts(plan.gang, plan.decision.found, plan.survivors)
        ordered = tuple(plans[gang.name] for gang in workload.gangs)
        most = peak(held, before)
        if remember and most is not None:
            self._taken = most if self._taken is None else self._taken + most
            self._pools[workload.pool.name] += _gpus(most, self.cluster)
        placed = [plan.gang for plan in ordered if plan.decision.found]
        foretold = foresight.notices() if foresight else ()
        seen = running_notices(workload, sum(len(plan.survivors) for plan in ordered), sight)
        notices = (*workload.notices, *seen, *notices_for(workload, domains, placed), *foretold)
        return Plan(workload, domains, ordered, notices)

    def _plan_family(
        self,
        family: Sequence[Gang],
        survivors: Mapping[str, Mapping[str, str]],
        workload: Workload,
        domains: Domains,
        beside: Ints | None,
        foresight: Foresight | None,
    ) -> Iterator[GangPlan]:
        now, empty = Capacity.now(domains), Capacity.empty(domains)
        for amounts in (beside, self._taken):
            if amounts is not None:
                now.give(-amounts[:, domains.order])
        if any(gang.groups for gang in family) and workload.pool.scheduler == "kai":
            _hide_unlabelled(now)
            _hide_unlabelled(empty)
        for change in self.changes:
            now = changed_capacity(change, now)
        used = self._pools[workload.pool.name] + (0 if beside is None else _gpus(beside, self.cluster))
        limit = workload.pool.gpus.limit
        running = {task: node for found in survivors.values() for task, node in found.items()}
        decisions = decide_family(
            family, now, empty, anchors=running, quota=None if limit is None else Quota(used, limit)
        )
        positions = {
            task: position
            for decision in decisions
            if decision.found
            for task, position in decision.found.positions.items()
        }
        leader = family[0]
        for gang, decision in zip(family, decisions, strict=True):
            if foresight and decision.found:
                foresight.look(gang, now, survivors[gang.name])
                now.give(-self._amounts(gang, decision.found, survivors[gang.name])[:, domains.order])
            outcomes = _outcomes(gang, positions if decision.found else {}, domains, leader)
            yield GangPlan(gang, decision, outcomes, survivors[gang.name])

    def _changed(self, gang: Gang, domains: Domains) -> Gang:
        for change in self.changes:
            gang = changed_gang(change, gang, domains.topology) or gang
        return gang

    def _amounts(self, gang: Gang, found: Found, survivors: Mapping[str, str]) -> Ints:
        """Return what a placement newly takes, as [resource, node]."""
        amounts = np.zeros_like(self.cluster.allocatable)
        for task in gang.all_tasks():
            if task.name in survivors or task.name in found.left_out:
                continue
            node = self.cluster.position[found.nodes[task.name]]
            for name, amount in ((PODS, 1), *task.shape.requests):
                amounts[self.cluster.resource(name), node] += amount
        return amounts


def _hide_unlabelled(capacity: Capacity) -> None:
    """Hide nodes that lack any level's label: KAI does not see them for a gang with constraints."""
    for tier in capacity.domains.tiers:
        capacity.hide(tier.of < 0)


def _gpus(amounts: Ints, cluster: Cluster) -> int:
    return int(amounts[cluster.resource(GPU)].sum())


def families(gangs: Sequence[Gang]) -> list[list[Gang]]:
    """Return gangs with those that follow them: they are decided about together."""
    names = {gang.name for gang in gangs}
    found: dict[str, list[Gang]] = {}
    for gang in gangs:
        leader = gang.follows if gang.follows in names else gang.name
        found.setdefault(leader, []).append(gang)
    return list(found.values())


def _outcomes(gang: Gang, positions: Mapping[str, int], domains: Domains, leader: Gang) -> tuple[Outcome, ...]:
    """Return where each group ended up; one that a follower shares with its leader has the tasks of both."""
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
        outcomes.append(Outcome(group.path, group.level, group.required, (*used, *outside)))
    return tuple(outcomes)
