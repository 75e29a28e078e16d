"""The gangs of one workload in sequence, each beside concurrent ones; if that fails, jointly with them.

Gangs that wait for the same others start at the same moment, and may be placed jointly. A gang that starts later finds
them running: nothing moves for it, in a plan as on the cluster.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from coterie.backends.shared.ownership import RunningTasks
from coterie.errors import Notice, Reason
from coterie.gang import edits
from coterie.gang.equivalence import kind_of
from coterie.gang.tree import Gang
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, NoPlacement
from coterie.placement.explain.decision import SIDE_BUDGET
from coterie.placement.explain.evidence import with_planned
from coterie.placement.family import decide_family
from coterie.placement.joint import DecidedFamily, JointCapacity, JointPlacement, place_together
from coterie.placement.quota import Quota
from coterie.placement.refusal import Decision, Verdict
from coterie.placement.whatif import Change, changed_capacity, changed_gang
from coterie.planning.concurrency import ancestors, peak
from coterie.planning.workload import Workload
from coterie.topology.cluster import PODS, Bools, Ints
from coterie.topology.display_names import sibling
from coterie.topology.domains import Domains

# Further reasons that a different placement cannot change: a limit counts anywhere, and a follower waits for its
# leader.
_ELSEWHERE = frozenset({Reason.OVER_QUOTA, Reason.GANG_INCOMPLETE})


@dataclass(eq=False)
class PlanSequence:
    """The decisions about the gangs of one workload; `taken` and `used` are the capacity and the GPUs of others."""

    workload: Workload
    domains: Domains
    sight: RunningTasks
    changes: Sequence[Change]
    taken: Ints | None
    used: int
    survivors: dict[str, Mapping[str, str]] = field(default_factory=dict, init=False)
    _settled: dict[str, DecidedFamily] = field(default_factory=dict, init=False)  # by the leader's name
    _held: dict[str, Ints] = field(default_factory=dict, init=False)  # by gang
    _jointly: list[tuple[str, ...]] = field(default_factory=list, init=False)  # gangs that moved for the last of them
    _steps: int = field(default=2 * SIDE_BUDGET, init=False)  # steps left for joint placement, in the whole plan
    _hopeless: dict[object, bool] = field(default_factory=dict, init=False)  # by kind: whether the failure is proved

    def run(self) -> list[DecidedFamily]:
        """Decide about every gang."""
        for family in families([self._changed(gang) for gang in self.workload.gangs]):
            one = self._alone(family)
            if any(map(_misplaced, one.decisions)):
                one = self._with_siblings(self._together(one))
            self._settle(one)
        return list(self._settled.values())

    def most(self) -> Ints | None:
        """Return the most that the workload newly takes at any time, as [resource, node]."""
        return peak(self._held, self._before)

    def forecast_notices(self) -> tuple[Notice, ...]:
        """Return notices of what the pool's scheduler will not do as planned."""
        if (open_forecast := self.workload.pool.traits.forecast) is None:
            return ()
        forecast, before = open_forecast(), dict[str, Ints]()
        for one in self._settled.values():
            now, _ = self._free(self._beside(one.family[0], before), hidden=self._hides(one.family))
            for gang in one.family:
                if gang.name in self._held:
                    forecast.add(gang, now, self.survivors[gang.name])
                    before[gang.name] = self._held[gang.name]
                    now.give(-before[gang.name][:, self.domains.order])
        return forecast.notices(self._jointly)

    # One family beside the others

    def _alone(self, family: Sequence[Gang]) -> DecidedFamily:
        self.survivors.update((gang.name, self.sight.running(gang)) for gang in family)
        beside = self._beside(family[0], self._held)
        now, empty = self._free(beside, hidden=self._hides(family))
        decisions = decide_family(family, now, empty, anchors=self._running(family), quota=self._quota(beside))
        return DecidedFamily(tuple(family), tuple(decisions))

    def _beside(self, leader: Gang, held: Mapping[str, Ints], without: Container[str] = ()) -> Ints | None:
        """Return the most that gangs hold while this one runs, some of them left out."""
        done = self._done(leader.name)
        others = {name: amounts for name, amounts in held.items() if name not in done and name not in without}
        return peak(others, self._before)

    def _with_siblings(self, one: DecidedFamily) -> DecidedFamily:
        """Return a family whose refusals name the groups placed before that hold capacity while it would run."""
        leader = one.family[0].name
        held = {
            sibling(name): amounts
            for name, amounts in self._held.items()
            if name not in self._done(leader) and leader not in self._done(name)
        }
        decisions = (
            replace(decision, refusal=with_planned(refusal, gang.all_tasks(), held, self.domains))
            if (refusal := decision.refusal) and _misplaced(decision) and held
            else decision
            for gang, decision in zip(one.family, one.decisions, strict=True)
        )
        return replace(one, decisions=tuple(decisions))

    def _settle(self, one: DecidedFamily) -> None:
        self._settled[one.family[0].name] = one
        for gang, decision in zip(one.family, one.decisions, strict=True):
            if decision.found:
                self._held[gang.name] = self._amounts(gang, decision.found)

    # Several families jointly

    def _together(self, one: DecidedFamily) -> DecidedFamily:
        """Place a family jointly with those that start at the same moment, if that places more of its gangs."""
        done = self._done(one.family[0].name)
        peers = [other for name, other in self._settled.items() if other.placed and self._done(name) == done]
        if not peers:
            return one
        running = tuple(self._running(one.family).items())
        kind = (done, running, *map(kind_of, (edits.joined(one.family), *one.family)))
        found = self._ask(one, peers) if kind not in self._hopeless else None
        if isinstance(found, JointPlacement):
            *moved, last = found.families
            if last.placed > one.placed:
                self._move(moved, last)
                kept = zip(last.decisions, one.decisions, strict=True)
                decisions = (now if now.found or now.verdict is Verdict.UNDECIDED else before for now, before in kept)
                return DecidedFamily(last.family, tuple(decisions))
            undecided = any(decision.verdict is Verdict.UNDECIDED for decision in last.decisions)
            self._hopeless[kind] = not undecided
        elif found is not None:
            self._hopeless[kind] = found.proved
        return one if self._hopeless[kind] else _undecided(one)

    def _ask(self, one: DecidedFamily, peers: Sequence[DecidedFamily]) -> JointPlacement | NoPlacement:
        gangs = [gang for other in (*peers, one) for gang in other.family]
        leader = one.family[0]
        now, empty = self._free(self._beside(leader, self._held, {gang.name for gang in gangs}))
        quota = self._quota(self._beside(leader, self._held))
        names = self.domains.names
        hidden = frozenset(names[at] for at in np.flatnonzero(self._unlabelled)) if self._hiding else frozenset[str]()
        room = JointCapacity(now, empty, self._running(gangs), quota, hidden)
        answer = place_together(peers, one.family, room, min(self._steps, SIDE_BUDGET))
        # Building the joint problem takes time as well, in proportion to its tasks.
        self._steps = max(0, self._steps - answer.steps - sum(len(gang.all_tasks()) for gang in gangs))
        return answer

    def _move(self, moved: Sequence[DecidedFamily], last: DecidedFamily) -> None:
        names = [
            gang.name
            for one in moved
            for gang, was, now in zip(
                one.family, self._settled[one.family[0].name].decisions, one.decisions, strict=True
            )
            if was.found and now.found and was.found.nodes != now.found.nodes
        ]
        if names:
            self._jointly.append((*names, *(gang.name for gang in last.family if gang.name in last.placed)))
        for one in moved:
            self._settle(one)
        self._hopeless.clear()  # with others elsewhere, families that start later may fit

    # The capacity that they find

    @cached_property
    def _before(self) -> Mapping[str, frozenset[str]]:
        return ancestors(self.workload.needs)

    def _done(self, leader: str) -> frozenset[str]:
        """Return the gangs that have finished before this one starts."""
        return self._before.get(leader, frozenset())

    @cached_property
    def _hiding(self) -> bool:
        return self.workload.pool.traits.hides_unlabelled

    def _hides(self, family: Sequence[Gang]) -> bool:
        """Return whether the scheduler hides nodes that lack any level's label, as it does only under constraints."""
        return self._hiding and any(gang.groups for gang in family)

    @cached_property
    def _unlabelled(self) -> Bools:
        lacking = np.zeros(len(self.domains), dtype=bool)
        for tier in self.domains.tiers:
            lacking |= tier.of < 0
        return lacking

    @cached_property
    def _bare(self) -> tuple[Capacity, Capacity]:
        """The free capacity before any gang of the workload is placed, now and on the empty cluster."""
        now, empty = Capacity.now(self.domains), Capacity.empty(self.domains)
        if self.taken is not None:
            now.give(-self.taken[:, self.domains.order])
        for change in self.changes:
            now = changed_capacity(change, now)
        return now, empty

    def _free(self, beside: Ints | None, *, hidden: bool = False) -> tuple[Capacity, Capacity]:
        now, empty = (capacity.copy() for capacity in self._bare)
        if beside is not None:
            now.give(-beside[:, self.domains.order])
        if hidden:
            now.hide(self._unlabelled)
            empty.hide(self._unlabelled)
        return now, empty

    def _quota(self, beside: Ints | None) -> Quota | None:
        limit = self.workload.pool.gpus.limit
        gpus = 0 if beside is None else int(self.domains.cluster.gpus(beside).sum())
        return None if limit is None else Quota(self.used + gpus, limit)

    def _running(self, gangs: Sequence[Gang]) -> dict[str, str]:
        return {task: node for gang in gangs for task, node in self.survivors[gang.name].items()}

    def _changed(self, gang: Gang) -> Gang:
        for change in self.changes:
            gang = changed_gang(change, gang, self.domains.topology) or gang
        return gang

    def _amounts(self, gang: Gang, found: Found) -> Ints:
        """Return the amounts that a placement newly takes, as [resource, node]."""
        cluster = self.domains.cluster
        amounts = np.zeros_like(cluster.allocatable)
        for task in gang.all_tasks():
            if task.name in self.survivors[gang.name] or task.name in found.left_out:
                continue
            node = cluster.position[found.nodes[task.name]]
            for name, amount in ((PODS, 1), *task.shape.requests):
                amounts[cluster.resource(name), node] += amount
        return amounts


def families(gangs: Sequence[Gang]) -> list[list[Gang]]:
    """Return gangs with their followers: they are decided together."""
    names = {gang.name for gang in gangs}
    found: dict[str, list[Gang]] = {}
    for gang in gangs:
        leader = gang.follows if gang.follows in names else gang.name
        found.setdefault(leader, []).append(gang)
    return list(found.values())


def _misplaced(decision: Decision) -> bool:
    """Return whether a gang has no placement now, but might have one if others were elsewhere."""
    refusal = decision.refusal
    return decision.verdict is not Verdict.IMPOSSIBLE and refusal is not None and refusal.reason not in _ELSEWHERE


def _undecided(one: DecidedFamily) -> DecidedFamily:
    """Return a family with unproved refusals marked as undecided; remedies stay valid."""
    decisions = (
        Decision(Verdict.UNDECIDED, refusal=replace(refusal, reason=Reason.UNDECIDED, wanted=len(gang.all_tasks())))
        if (refusal := decision.refusal) and _misplaced(decision)
        else decision
        for gang, decision in zip(one.family, one.decisions, strict=True)
    )
    return replace(one, decisions=tuple(decisions))
