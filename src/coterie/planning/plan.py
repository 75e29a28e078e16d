"""Planning workloads on a cluster, one after the other, each seeing what the earlier ones took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from coterie.errors import Notice, Reason
from coterie.gang.tree import Gang, Path
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found
from coterie.placement.explain import decide
from coterie.placement.refusal import Decision, Refusal, Verdict
from coterie.placement.whatif import Change, changed_capacity, changed_gang
from coterie.planning.advice import notices_for
from coterie.planning.concurrency import ancestors, peak
from coterie.planning.workload import Workload
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

    def plan(self, workload: Workload, *, remember: bool = True) -> Plan:
        """Plan one workload; unless told otherwise, what it takes is gone for those planned after it."""
        domains = Domains.of(self.cluster, workload.pool.topology)
        before = ancestors(workload.needs)
        held: dict[str, Ints] = {}
        plans: list[GangPlan] = []
        for original in workload.gangs:
            gang = self._changed(original, domains)
            beside = {name: amounts for name, amounts in held.items() if name not in before.get(gang.name, frozenset())}
            plan = self._plan_gang(gang, workload, domains, peak(beside, before))
            plans.append(plan)
            if plan.decision.found:
                held[gang.name] = self._amounts(gang, plan.decision.found, plan.survivors)
        most = peak(held, before)
        if remember and most is not None:
            self._taken = most if self._taken is None else self._taken + most
            self._pools[workload.pool.name] += _gpus(most, self.cluster)
        placed = [plan.gang for plan in plans if plan.decision.found]
        survivors = sum(len(plan.survivors) for plan in plans)
        notices = (*workload.notices, *notices_for(workload, domains, placed, survivors))
        return Plan(workload, domains, tuple(plans), notices)

    def _plan_gang(self, gang: Gang, workload: Workload, domains: Domains, beside: Ints | None) -> GangPlan:
        survivors = self._survivors(workload.name, gang)
        now, empty = Capacity.now(domains), Capacity.empty(domains)
        for amounts in (beside, self._taken):
            if amounts is not None:
                now.give(-amounts[:, domains.order])
        if gang.groups and workload.pool.scheduler == "kai":
            _hide_unlabelled(now)
            _hide_unlabelled(empty)
        for change in self.changes:
            now = changed_capacity(change, now)
        used = self._pools[workload.pool.name] + (0 if beside is None else _gpus(beside, self.cluster))
        quota = _over_quota(gang, workload, used)
        decision = quota or decide(gang, now, empty, anchors=survivors)
        return GangPlan(gang, decision, _outcomes(gang, decision.found, domains), survivors)

    def _changed(self, gang: Gang, domains: Domains) -> Gang:
        for change in self.changes:
            gang = changed_gang(change, gang, domains.topology) or gang
        return gang

    def _survivors(self, workload: str, gang: Gang) -> dict[str, str]:
        """Return the gang's tasks that already run, by Coterie's own labels, with their nodes."""
        if self.fresh:
            return {}
        names = {task.name for task in gang.all_tasks()}
        return {
            pod.member.task: pod.node
            for pod in self.cluster.pods
            if pod.member
            and not pod.terminating
            and (pod.member.workload, pod.member.group) == (workload, gang.name)
            and pod.member.task in names
        }

    def _amounts(self, gang: Gang, found: Found, survivors: Mapping[str, str]) -> Ints:
        """Return what a placement newly takes, as [resource, node]."""
        amounts = np.zeros_like(self.cluster.allocatable)
        for task in gang.all_tasks():
            if task.name in survivors:
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


def _over_quota(gang: Gang, workload: Workload, used: int) -> Decision | None:
    """Refuse a gang that the pool's limit has no room for beside what this call has placed in the pool."""
    limit = workload.pool.gpus.limit
    if limit is None:
        return None
    wanted = sum(task.shape.amount(GPU) for task in gang.all_tasks())
    if wanted + used <= limit:
        return None
    verdict = Verdict.IMPOSSIBLE if wanted > limit else Verdict.WAITING
    return Decision(verdict, refusal=Refusal(Reason.OVER_QUOTA, wanted=wanted, quota=(used, limit)))


def _outcomes(gang: Gang, found: Found | None, domains: Domains) -> tuple[Outcome, ...]:
    outcomes = []
    for group in gang.walk():
        used: dict[tuple[str | None, ...], None] = {}
        outside: list[tuple[str | None, ...]] = []
        if found:
            level = domains.topology.index(group.level)
            tier = domains.tiers[level]
            for task in sorted(group.all_tasks(), key=lambda task: task.rank):
                position = found.positions[task.name]
                domain = int(tier.of[position])
                if domain >= 0:
                    used[tier.values[domain]] = None
                else:
                    outside.append((*domains.values(position).values(), None))
        outcomes.append(Outcome(group.path, group.level, group.required, (*used, *outside)))
    return tuple(outcomes)
