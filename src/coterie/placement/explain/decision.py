"""The decision about a gang and, for a refusal, its reason and remedies.

Every statement here was verified by the engine: the reason by searching for parts of the gang, the remedies by
searching for the changed gang or on the changed cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coterie.errors import Reason
from coterie.gang import edits
from coterie.gang.tree import Gang, Group, Path, Task
from coterie.placement.budget import DEFAULT_BUDGET
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, NoPlacement, place
from coterie.placement.explain.evidence import holders, nearest, tally
from coterie.placement.explain.remedies import Remedies
from coterie.placement.refusal import Decision, Nearest, Refusal, Tally, Verdict
from coterie.topology.channels import CHANNEL

# Searches for an explanation have a smaller budget than the main one: an undecided remedy is merely not offered.
SIDE_BUDGET = DEFAULT_BUDGET // 10


def decide(
    gang: Gang,
    now: Capacity,
    empty: Capacity,
    *,
    anchors: Mapping[str, str] | None = None,
    budget: int = DEFAULT_BUDGET,
    known: NoPlacement | None = None,
) -> Decision:
    """Place a gang on the free capacity, or return why it does not fit; neither capacity is changed.

    A caller that already knows that there is no placement passes `known`, and gets only the reason.
    """
    anchors = anchors or {}
    found = known or place(gang, now, anchors=anchors, budget=budget)
    if isinstance(found, Found):
        return Decision(Verdict.PLACED, found=found)
    if not found.proved:
        return Decision(Verdict.UNDECIDED, refusal=Refusal(Reason.UNDECIDED, wanted=len(gang.all_tasks())))
    bare = _with_survivors(gang, empty, anchors)
    ever = place(gang, bare, anchors=anchors, budget=budget)
    never = isinstance(ever, NoPlacement) and ever.proved
    refusal = _Case(gang, now, bare if never else now, anchors).refusal(never=never)
    # Tasks that run in the wrong domain do so only until they end or their nodes are relabelled.
    final = never and refusal.reason is not Reason.LEVEL_LOST
    return Decision(Verdict.IMPOSSIBLE if final else Verdict.WAITING, refusal=refusal)


def without_channel(task: Task) -> Task:
    """Return a task without its request for the NVLink channel of a node."""
    requests = tuple(asked for asked in task.shape.requests if asked[0] != CHANNEL)
    return replace(task, shape=replace(task.shape, requests=requests))


def _with_survivors(gang: Gang, empty: Capacity, anchors: Mapping[str, str]) -> Capacity:
    """Return the empty cluster with the gang's own running tasks in place, since they stay."""
    if not anchors:
        return empty
    capacity = empty.copy()
    for task in gang.all_tasks():
        if task.name in anchors:
            capacity.take(task.shape, [capacity.domains.position[anchors[task.name]]], [1])
    return capacity


@dataclass(frozen=True, slots=True)
class _Blocker:
    """The binding constraint: one group that does not fit alone, or several that do not fit together.

    `beside` means that tasks outside those groups are among those that do not fit together: those directly in the
    parent, or the tasks without a group.
    """

    groups: tuple[Group, ...] = ()
    parent: Group | None = None
    beside: bool = False

    @property
    def rivals(self) -> bool:
        return len(self.groups) > 1 or self.beside

    @property
    def path(self) -> Path:
        if len(self.groups) == 1 and not (self.parent and self.beside):
            return self.groups[0].path
        return self.parent.path if self.parent else ()

    @property
    def largest(self) -> Group | None:
        """The largest of competing groups."""
        return max(self.groups, key=lambda group: len(tuple(group.all_tasks())), default=None)


def _taking(binding: _Blocker, best: Sequence[Nearest]) -> tuple[str, ...]:
    """Return the domain in which one group comes nearest; None where no task fits, or several groups compete."""
    if not binding.groups or binding.rivals or not best or not best[0].fits:
        return ()
    return best[0].domain


@dataclass(frozen=True, slots=True)
class _Case:
    """A gang that does not fit on `capacity`: the free capacity or, where it can never be placed, the empty cluster."""

    gang: Gang
    now: Capacity
    capacity: Capacity
    anchors: Mapping[str, str]

    def refusal(self, *, never: bool) -> Refusal:
        """Return the refusal with its reason, evidence and remedies."""
        if lost := self._lost():
            return self._told(Reason.LEVEL_LOST, _Blocker((lost,)))
        named = {name for task in self.gang.all_tasks() for name in task.shape.excluded}
        excluded = tuple(sorted(named & self.capacity.domains.position.keys()))
        if excluded and self._fits(edits.without_exclusions(self.gang)):
            return self._told(Reason.NODES_EXCLUDED, self._binding(), excluded=excluded)
        if self._only_channels_lack():
            reason = Reason.NEVER_FITS if never else Reason.COMPUTE_DOMAIN_BLOCKED
            return replace(self._told(reason, self._binding()), channels=True)
        if self._fails(edits.unconstrained(self.gang)):
            refusal = self._told(Reason.NEVER_FITS if never else Reason.NO_CAPACITY, _Blocker())
            return self._hidden(refusal) or refusal if never else refusal
        binding = self._binding()
        if not binding.rivals:
            unlabelled, labelled = self._labels(binding.groups[0])
            if not labelled:
                return self._told(Reason.NODES_UNLABELLED, binding, unlabelled=unlabelled)
            return self._told(Reason.NEVER_FITS if never else Reason.NO_DOMAIN_FITS, binding, unlabelled=unlabelled)
        if self._fit_alone(binding):
            return self._told(Reason.NEVER_FITS if never else Reason.GROUPS_CONFLICT, binding)
        # It is proved that they do not fit together, but not that each fits alone, so the cause is not stated.
        return replace(self._told(Reason.NEVER_FITS if never else Reason.UNDECIDED, binding), alone=False)

    def _told(
        self, reason: Reason, binding: _Blocker, *, excluded: tuple[str, ...] = (), unlabelled: int = 0
    ) -> Refusal:
        domains, group = self.capacity.domains, binding.largest
        level, tasks = (group.level, group.all_tasks()) if group else (None, self.gang.all_tasks())
        missing = tuple(task for task in sorted(tasks, key=lambda task: task.rank) if task.name not in self.anchors)
        home = self._home(group) if group else ()
        around = home or (self._around(group) if group else ())
        best: tuple[Nearest, ...] = ()
        if missing and reason is not Reason.LEVEL_LOST:
            best = nearest(missing, level, self.capacity, short=binding.rivals, within=around)
        blocked = reason is Reason.COMPUTE_DOMAIN_BLOCKED
        lacking = CHANNEL if blocked else None
        waits = self.capacity is self.now
        held = holders(missing, level, best, self.now, self.anchors, lacking=lacking) if waits else ()
        rivals = tuple(one.path for one in binding.groups) if binding.rivals else ()
        search = Remedies(self.gang, self.now, self.capacity, self.anchors, SIDE_BUDGET)
        return Refusal(
            reason=reason,
            path=binding.path,
            level=level,
            wanted=len(missing),
            domains=len(domains.tiers[domains.topology.index(level)]) if level else 0,
            best=best,
            holders=held,
            ways_out=search.find(binding.path, level, [near.domain for near in best], held, rivals),
            together=rivals,
            beside=binding.beside,
            tally=self._tally(reason, missing, level, home or _taking(binding, best) or around),
            home=() if binding.rivals else home,
            around=() if binding.rivals or home else around,
            excluded=excluded,
            unlabelled=unlabelled,
        )

    def _tally(
        self, reason: Reason, missing: Sequence[Task], level: str | None, where: tuple[str, ...]
    ) -> Tally | None:
        """Count the obstacles of the tasks on the nodes of a domain, or of the cluster for none."""
        if not missing or reason is Reason.LEVEL_LOST:
            return None
        if reason is Reason.COMPUTE_DOMAIN_BLOCKED:
            missing = [task for task in missing if task.shape.amount(CHANNEL)]
        return tally(missing, level, where, self.capacity)

    def _hidden(self, refusal: Refusal) -> Refusal | None:
        """Return a refusal for labels that hide every node with room for some task from the scheduler, if they do."""
        domains = self.capacity.domains
        seeing = self.capacity.all_visible()
        for shape in dict.fromkeys(task.shape for task in self.gang.all_tasks()):
            room = seeing.fit(shape).fits > 0
            if not room.any() or (room & self.capacity.visible).any():
                continue
            lacking = [int((room & domains.unlabelled(level.label)).sum()) for level in domains.topology.levels]
            most = lacking.index(max(lacking))
            return replace(
                refusal,
                reason=Reason.NODES_UNLABELLED,
                level=domains.topology.names[most],
                best=(),
                unlabelled=lacking[most],
                hidden=int(room.sum()),
            )
        return None

    def _only_channels_lack(self) -> bool:
        """Return whether the gang would fit if nodes had channels for all its tasks."""
        if not any(task.shape.amount(CHANNEL) for task in self.gang.all_tasks()):
            return False
        return self._fits(edits.mapped(self.gang, without_channel))

    def _home(self, group: Group) -> tuple[str, ...]:
        """Return the domain in which a required group already runs, if it runs in one."""
        tier = self.now.domains.tiers[self.now.domains.topology.index(group.level)]
        where = self._domains_of(group)
        if not group.required or len(where) != 1 or -1 in where:
            return ()
        return tier.values[where.pop()]

    def _around(self, group: Group) -> tuple[str, ...]:
        """Return the domain that a group cannot leave because an enclosing group already runs there, if any."""
        return next((home for one in reversed(self._above(group)) if (home := self._home(one))), ())

    def _above(self, group: Group) -> list[Group]:
        """Return the groups around one, outermost first."""
        return [
            one
            for one in self.gang.walk()
            if len(one.path) < len(group.path) and group.path[: len(one.path)] == one.path
        ]

    def _domains_of(self, group: Group) -> set[int]:
        """Return the domains of its level in which tasks of a group run, -1 for none."""
        domains = self.now.domains
        tier = domains.tiers[domains.topology.index(group.level)]
        return {int(tier.of[domains.position[self.anchors[task.name]]]) for task in self._running(group.all_tasks())}

    def _lost(self) -> Group | None:
        """Return a required group whose running tasks are no longer in one domain, if there is one."""
        for group in self.gang.walk():
            where = self._domains_of(group)
            if group.required and (len(where) > 1 or -1 in where):
                return group
        return None

    def _binding(self) -> _Blocker:
        """Return the finest required group that does not fit even alone, or the fewest that do not fit together."""
        if self._fails(edits.unconstrained(self.gang)):
            return _Blocker()
        for group in sorted(self.gang.walk(), key=lambda group: -len(group.path)):
            # A preferred group obstructs nothing, but groups inside it may obstruct each other.
            if not (group.required or group.groups) or not self._fails(self._alone(group)):
                continue
            if group.required and (not group.groups or self._fails(self._alone(edits.flat(group)))):
                return _Blocker((group,))
            return self._rivals(group)
        return self._rivals(None)

    def _rivals(self, parent: Group | None) -> _Blocker:
        """Return the fewest groups below a parent that do not fit together, perhaps with the parent's own tasks.

        Parts are left out one by one as long as the rest is proved not to fit, so that the result is proved as well.
        """
        kept, tasks = (parent.groups, parent.tasks) if parent else (self.gang.groups, self.gang.tasks)
        for group in kept:
            fewer = tuple(one for one in kept if one is not group)
            if fewer and self._fails(self._part(parent, fewer, tasks)):
                kept = fewer
        waiting = any(task.name not in self.anchors for task in tasks)
        beside = waiting and not self._fails(self._part(parent, kept, self._running(tasks)))
        return _Blocker(kept, parent, beside)

    def _fit_alone(self, binding: _Blocker) -> bool:
        """Return whether each of those that do not fit together is proved to fit alone, by a placement."""
        parent = binding.parent
        tasks = parent.tasks if parent else self.gang.tasks
        running = self._running(tasks)
        return all(self._fits(self._part(parent, (group,), running)) for group in binding.groups) and (
            not binding.beside or self._fits(self._part(parent, (), tasks))
        )

    def _part(self, parent: Group | None, groups: tuple[Group, ...], tasks: tuple[Task, ...]) -> Gang:
        """Return a gang of some groups below a parent and some of its own tasks."""
        if parent is None:
            return edits.only(self.gang, groups, tasks)
        left = (task for group in parent.groups if group not in groups for task in group.all_tasks())
        return self._alone(replace(parent, groups=groups, tasks=(*tasks, *self._running(left))))

    def _alone(self, group: Group) -> Gang:
        """Return a gang of one group inside its enclosing groups, which keep only their running tasks."""
        inside = {task.name for task in group.all_tasks()}
        for around in reversed(self._above(group)):
            own = (task for task in self._running(around.all_tasks()) if task.name not in inside)
            inside.update(task.name for task in around.all_tasks())
            group = replace(around, groups=(group,), tasks=tuple(own))
        return edits.only(self.gang, [group])

    def _running(self, tasks: Iterable[Task]) -> tuple[Task, ...]:
        """Return the running tasks, which cannot be left out."""
        return tuple(task for task in tasks if task.name in self.anchors)

    def _labels(self, group: Group) -> tuple[int, int]:
        """Count the nodes without and with the group's label among the eligible ones."""
        tier = self.capacity.domains.tiers[self.capacity.domains.topology.index(group.level)]
        mask = np.zeros(len(self.capacity.domains), dtype=bool)
        for shape in {task.shape for task in group.all_tasks()}:
            mask |= self.capacity.fit(shape).mask
        return int((mask & (tier.of < 0)).sum()), int((mask & (tier.of >= 0)).sum())

    def _ask(self, gang: Gang) -> Found | NoPlacement:
        names = {task.name for task in gang.all_tasks()}
        anchors = {task: node for task, node in self.anchors.items() if task in names}
        return place(gang, self.capacity, anchors=anchors, budget=SIDE_BUDGET)

    def _fits(self, gang: Gang) -> bool:
        return isinstance(self._ask(gang), Found)

    def _fails(self, gang: Gang) -> bool:
        answer = self._ask(gang)
        return isinstance(answer, NoPlacement) and answer.proved
