"""The largest gang that each domain holds, and the candidate domains of a plan's gangs."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.config.configuration import Pool
from coterie.errors import Notice, UsageError
from coterie.gang.tree import Group, Path, Shape, Task
from coterie.inspection.map import level_depth
from coterie.placement.capacity import Capacity
from coterie.placement.domain_fit import DomainRoom, LevelFit, level_fit
from coterie.placement.eligibility import eligible, untolerated
from coterie.placement.explain.evidence import Candidate, Counts, Survey, survey, tally
from coterie.placement.refusal import Tally
from coterie.placement.whatif import changed_capacity
from coterie.planning.advice.assumed_tolerations import assumed_tolerations
from coterie.planning.affinity.separation_rows import padded
from coterie.planning.concurrency import ancestors
from coterie.planning.plan import GangPlan, Plan, Planner
from coterie.planning.workload import Workload
from coterie.rendering.causes import causes_json
from coterie.rendering.refusals import count, obstacle
from coterie.topology.cluster import CPU, GPU, MEMORY
from coterie.topology.domains import Domains
from coterie.topology.quantity import amount
from coterie.topology.ranges import fold

VERSION = 1

# Less memory than this is a forgotten unit, not a task.
_SMALLEST = 1 << 20

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FitQuery:
    """The request of one task, as it was written, and the number of tasks of a gang if it is known."""

    gpus: int = 0
    cpu: str | None = None
    memory: str | None = None
    tasks: int | None = None

    def requests(self) -> tuple[tuple[str, int], ...]:
        """Return the amounts; raise `UsageError` for an invalid one, and for a task without requests."""
        asked = {GPU: self.gpus}
        for option, resource, text in (("--cpu", CPU, self.cpu), ("--memory", MEMORY, self.memory)):
            try:
                asked[resource] = amount(resource, text) if text is not None else 0
            except ValueError as error:
                raise UsageError(f"{option}: {error}", "Examples: --cpu 16, --cpu 500m, --memory 256Gi") from None
        if 0 < asked[MEMORY] < _SMALLEST:
            raise UsageError(f"--memory {self.memory} is less than a mebibyte", "Write a unit: --memory 256Gi")
        found = tuple(sorted((name, value) for name, value in asked.items() if value > 0))
        if not found:
            raise UsageError("a task that asks for nothing fits any number of times", "Add --gpus, --cpu or --memory.")
        return found

    def words(self) -> str:
        """Return the request of one task as text."""
        parts = [f"{self.gpus} GPU"] if self.gpus else []
        parts += [f"{self.cpu} CPU"] if self.cpu else []
        parts += [f"{self.memory} memory"] if self.memory else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class FitReport:
    """The largest gang that fits, per domain of a level."""

    query: FitQuery
    level: str
    pool: str
    fit: LevelFit
    notices: tuple[Notice, ...]
    tally: Tally | None = None  # where no such task fits: the obstacles on the nodes, now or else when they are empty


def answer(query: FitQuery, level: str, pool: Pool, domains: Domains) -> FitReport:
    """Return what fits on a pool's nodes; raise for an invalid level or amount."""
    requests = query.requests()
    level_depth(domains, level)
    shape = pool.admitted(Shape(requests))
    found = level_fit(shape, domains, level, labelled_only=pool.traits.hides_unlabelled)
    notices = tuple(_notices(query, level, pool, shape, domains, found))
    if found.total.now:
        return FitReport(query, level, pool.name, found, notices)
    capacity = Capacity.now(domains) if found.total.empty else Capacity.empty(domains)
    return FitReport(query, level, pool.name, found, notices, tally([Task("", shape)], level, (), capacity))


def fit_json(found: FitReport) -> Json:
    """Return an answer as data; the fields about gangs are present when their size was given."""
    tasks = found.query.tasks
    total = found.fit.total
    return {
        "version": VERSION,
        "pool": found.pool,
        "nodes": total.nodes + found.fit.outside.nodes,
        "level": found.level,
        "task": dict(found.query.requests()),
        "tasks": tasks,
        "domains": [{"domain": list(room.domain), **_room(room, tasks)} for room in found.fit.rooms],
        "total": _room(total, None) | (dict(zip(_GANGS, found.fit.gangs(tasks), strict=True)) if tasks else {}),
        "outside": _room(found.fit.outside, None),
        "causes": causes_json(found.tally),
        "warnings": [{"code": notice.code, "message": notice.message} for notice in found.notices],
    }


_GANGS = ("gangs_now", "gangs_empty")


def _room(room: DomainRoom, tasks: int | None) -> Json:
    fits = {"now": room.now, "empty": room.empty, "nodes": room.nodes, "free_gpus": room.free_gpus}
    return fits | ({"gangs_now": room.gangs(tasks), "gangs_empty": room.empty_gangs(tasks)} if tasks else {})


def _notices(
    query: FitQuery, level: str, pool: Pool, shape: Shape, domains: Domains, found: LevelFit
) -> Iterator[Notice]:
    cluster = domains.cluster
    gpus = cluster.allocatable[cluster.resource(GPU)] > 0
    meant = gpus if query.gpus else np.ones_like(gpus)
    barred = ~eligible(shape, cluster, lift_transient=True) & meant
    if barred.any():
        nodes = [cluster.names[node] for node in np.flatnonzero(barred)]
        taints = {taint for node in np.flatnonzero(barred) for taint in cluster.taint_sets[cluster.taint_set[node]]}
        keys = {taint.key for taint in untolerated(shape.tolerations, taints) if not taint.transient}
        yield Notice(
            "TaintNotTolerated",
            f"{count(len(nodes), 'node')} left out because of taints ({', '.join(sorted(keys))}): {fold(nodes)}. "
            "Tolerations are set in a pool: --config, --pool",
        )
    out = (
        (~cluster.ready & meant & ~barred, "not ready"),
        (cluster.cordoned & cluster.ready & meant & ~barred, "cordoned"),
    )
    if told := [
        f"{fold([cluster.names[node] for node in np.flatnonzero(which)])} {why}" for which, why in out if which.any()
    ]:
        number = count(sum(int(which.sum()) for which, _ in out), "node")
        yield Notice("NodesLeftOut", f"{number} out of service, so nothing fits there now: {', '.join(told)}")
    yield from assumed_tolerations([shape], cluster)
    if found.outside.empty:
        yield Notice(
            "OutsideLevel",
            f"{count(found.outside.now, 'more task')} would fit on {count(found.outside.nodes, 'node')} in no {level}, "
            "which cannot serve a gang that must share one",
        )
    limit = pool.gpus.limit
    if query.gpus and limit is not None and limit // query.gpus < max((room.now for room in found.rooms), default=0):
        most = count(limit // query.gpus, "such task")
        yield Notice("OverQuota", f'the limit of pool "{pool.name}", {limit} GPUs, allows {most} at once')


@dataclass(frozen=True, slots=True)
class DomainChoice:
    """The candidates of groups of one kind; a gang without constraints is a group without a path."""

    groups: tuple[Path, ...]
    required: bool
    survey: Survey


class CandidatePlanner(Planner):
    """A planner that also returns the candidates of each gang, on the capacity that was free for it."""

    def choose(self, workload: Workload, *, remember: bool = True) -> tuple[Plan, dict[str, tuple[DomainChoice, ...]]]:
        """Return the plan of a workload, and by the names of its gangs their candidates."""
        before_it = self._taken
        plan = self.plan(workload, remember=remember)
        taken = padded(before_it, plan.domains.cluster)
        done = ancestors(plan.workload.needs)
        before: dict[str, GangPlan] = {}
        found = {}
        for one in plan.gangs:
            now, empty = Capacity.now(plan.domains), Capacity.empty(plan.domains)
            if taken is not None:
                now.give(-taken[:, plan.domains.order])
            for change in self.changes:
                now = changed_capacity(change, now)
            # Followers are placed with their leader, and are not displaced by its mere preferences.
            followers = [other for other in plan.gangs if other.gang.follows == one.gang.name]
            for other in (*before.values(), *followers):
                if other.gang.name not in done.get(one.gang.name, ()):
                    _take(other, other.gang.all_tasks(), now)
            if one.gang.groups and plan.workload.pool.traits.hides_unlabelled:
                for capacity in (now, empty):
                    capacity.hide(plan.domains.tiers[-1].of < 0)
            found[one.gang.name] = choices(one, now, empty, before.get(one.gang.follows))
            before[one.gang.name] = one
        return plan, found


def choices(one: GangPlan, now: Capacity, empty: Capacity, leader: GangPlan | None = None) -> tuple[DomainChoice, ...]:
    """Return the candidates of the groups of a gang's finest level, equal groups together.

    For a refused gang, it is the binding group, if there is one. The other tasks of a placed gang are on their nodes,
    and those of its `leader`, which it follows, keep it in their domain.
    """
    kinds: dict[tuple[object, ...], list[Group]] = {}
    for group in _deciding(one):
        shapes = sorted((task.shape.requests for task in group.all_tasks()), key=repr)
        kinds.setdefault((group.required, group.level, *shapes), []).append(group)
    if not kinds:
        tasks = _open(one.gang.all_tasks(), one)
        return (DomainChoice(((),), required=False, survey=survey(tasks, None, now, empty)),) if tasks else ()
    found = []
    for groups in kinds.values():
        first = max(groups, key=lambda group: len(_open(tuple(group.all_tasks()), one)))
        tasks = _open(tuple(first.all_tasks()), one)
        if tasks:
            mine = {task.name for group in groups for task in group.all_tasks()}
            rest = now.copy()
            _take(one, [task for task in one.gang.all_tasks() if task.name not in mine], rest)
            within = _within(first, one, mine, leader, now)
            looked = survey(tasks, first.level, rest, empty, chosen=_chosen(groups, one, now), within=within)
            found.append(DomainChoice(tuple(group.path for group in groups), first.required, looked))
    return tuple(found)


def choices_json(found: Sequence[DomainChoice]) -> list[Json]:
    """Return the candidates of a gang as data."""
    return [
        {
            "groups": [[list(step) for step in path] for path in choice.groups],
            "type": "required" if choice.required else "preferred",
            "level": choice.survey.level,
            "wanted": choice.survey.wanted,
            "domains": [_candidate(each, required=choice.required) for each in choice.survey.candidates],
            "more": choice.survey.more,
            "counted": {
                "nodes": _counted(choice.survey.nodes, of_domains=False),
                "domains": _counted(choice.survey.domains, of_domains=True),
            },
        }
        for choice in found
    ]


def _candidate(each: Candidate, *, required: bool) -> Json:
    return {
        "domain": list(each.domain),
        "fits": each.fits,
        "wanted": each.wanted,
        "free_gpus": each.free_gpus,
        "left_gpus": each.left_gpus,
        "nodes": each.nodes,
        "extra_domains": None if required else each.extra,
        "chosen": each.chosen,
        "lacks": obstacle(each.lacks, of_domain=True) if each.lacks else None,
    }


def _counted(found: Counts, *, of_domains: bool) -> Json:
    excluded = [{"why": obstacle(what, of_domain=of_domains), "count": number} for what, number in found.excluded]
    return {"total": found.total, "good": found.good, "excluded": excluded}


def _deciding(one: GangPlan) -> list[Group]:
    """Return the binding group of a gang, or all those of its finest level."""
    groups = list(one.gang.walk())
    refusal = one.decision.refusal
    if refusal and refusal.level:
        binding = [group for group in groups if group.path == refusal.path and group.level == refusal.level]
        rivals = [group for group in groups if group.path in refusal.together]
        if binding or rivals:
            return binding or rivals
    finest = max((len(group.path) for group in groups), default=0)
    return [group for group in groups if len(group.path) == finest]


def _open(tasks: Sequence[Task], one: GangPlan) -> tuple[Task, ...]:
    """Return the tasks that a plan had to place: neither the running nor the optional ones."""
    found = one.decision.found
    left_out = found.left_out if found else ()
    ordered = sorted(tasks, key=lambda task: task.rank)
    return tuple(
        task
        for task in ordered
        if task.name not in one.survivors and task.name not in left_out and (found or task.needed)
    )


def _chosen(groups: Sequence[Group], one: GangPlan, now: Capacity) -> dict[tuple[str, ...], int]:
    """Return the domains that groups were placed in, with the number of nodes they use there."""
    found = one.decision.found
    if not found:
        return {}
    tier = now.domains.tiers[now.domains.topology.index(groups[0].level)]
    used: dict[tuple[str, ...], set[int]] = {}
    for group in groups:
        for task in group.all_tasks():
            position = found.positions.get(task.name)
            if position is not None and (number := int(tier.of[position])) >= 0:
                used.setdefault(tier.values[number], set()).add(position)
    return {domain: len(positions) for domain, positions in used.items()}


def _within(
    group: Group, one: GangPlan, mine: Container[str], leader: GangPlan | None, now: Capacity
) -> tuple[str, ...]:
    """Return the domain that a group cannot leave: other tasks are there, and it or an ancestor must share theirs."""
    above = [each for each in one.gang.walk() if each.required and group.path[: len(each.path)] == each.path]
    for each in sorted(above, key=lambda each: -len(each.path)):
        tier = now.domains.tiers[now.domains.topology.index(each.level)]
        where = {int(tier.of[position]) for position in _there(each, one, mine, leader, now)}
        if len(where) == 1 and -1 not in where:
            return tier.values[where.pop()]
    return ()


def _there(group: Group, one: GangPlan, mine: Container[str], leader: GangPlan | None, now: Capacity) -> Iterator[int]:
    """Yield the domains of a group's tasks that are not in question: running, placed, or the leader's."""
    placed = one.decision.found.positions if one.decision.found else {}
    for task in group.all_tasks():
        if task.name in one.survivors:
            yield now.domains.position[one.survivors[task.name]]
        elif task.name in placed and task.name not in mine:
            yield placed[task.name]
    if leader and leader.decision.found:
        theirs = leader.decision.found.positions
        shared = [task.name for each in leader.gang.walk() if each.path == group.path for task in each.all_tasks()]
        yield from (theirs[name] for name in shared if name in theirs)


def _take(one: GangPlan, tasks: Sequence[Task], capacity: Capacity) -> None:
    """Charge the newly placed tasks of a gang to a capacity."""
    found = one.decision.found
    positions = found.positions if found else {}
    for task in tasks:
        if task.name in positions and task.name not in one.survivors:
            capacity.take(task.shape, [positions[task.name]], [1])
