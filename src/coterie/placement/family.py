"""The decision about a gang together with its optional tasks and its followers.

Needed tasks come first and are never displaced: if the needed tasks of the leading gang fit, it is placed. Then
everything else is added in order, an optional task or a follower at a time, and kept if all that was kept so far can
still be placed with it. The placement of the kept ones is one search, so the leader goes where its followers have
capacity too. Only then do preferences count: an optional task that runs apart is better than one that does not run.

Leaving tasks out never makes the rest harder to place, so how far the list can be kept is found by bisection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from coterie.errors import Reason
from coterie.gang import edits
from coterie.gang.equivalence import kind_of
from coterie.gang.tree import Gang, Task
from coterie.placement.budget import DEFAULT_BUDGET
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, place
from coterie.placement.explain.decision import SIDE_BUDGET, decide
from coterie.placement.quota import Quota
from coterie.placement.refusal import Decision, Refusal, Verdict
from coterie.placement.whatif import Keep


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit to add: the needed tasks of a follower, or one optional task; units of one `kind` fit or fail alike.

    They are equal in all that matters besides what was kept before: the tree, the shapes, the nodes of running tasks,
    and the groups shared with other gangs. The kept set only grows, so where one failed the next will too.
    """

    gang: int
    tasks: frozenset[str]
    kind: object
    follower: bool


def decide_family(
    gangs: Sequence[Gang],
    now: Capacity,
    empty: Capacity,
    *,
    anchors: Mapping[str, str] | None = None,
    quota: Quota | None = None,
    budget: int = DEFAULT_BUDGET,
) -> list[Decision]:
    """Decide about a gang and its followers, in that order; neither capacity is changed."""
    return _Family(gangs, now, empty, anchors or {}, quota, budget).decisions()


def share(gang: Gang, found: Found) -> Found:
    """Return the part of a placement of several gangs that is one gang's; the cost is still that of all."""
    names = [task.name for task in gang.all_tasks()]
    positions = {name: found.positions[name] for name in names if name in found.positions}
    return replace(
        found,
        nodes={name: found.nodes[name] for name in positions},
        positions=positions,
        left_out=tuple(name for name in names if name not in positions),
    )


class _Family:
    def __init__(
        self,
        gangs: Sequence[Gang],
        now: Capacity,
        empty: Capacity,
        anchors: Mapping[str, str],
        quota: Quota | None,
        budget: int,
    ) -> None:
        self._gangs = gangs
        self._now = now
        self._empty = empty
        self._anchors = anchors
        self._quota = quota
        self._budget = budget
        self._sure = True
        self._answers: dict[frozenset[str], Found | None] = {}

    def decisions(self) -> list[Decision]:
        leader = edits.chosen(self._gangs[0], self._anchors)
        units = list(self._units())
        if (refused := self._over_quota(leader)) or not units:
            first = refused or self._decide(leader)
            return [first, *(self._waiting() for _ in self._gangs[1:])]
        if not self._fits(units):
            first = self._decide(leader)
            if first.found is None:
                return [first, *(self._waiting() for _ in self._gangs[1:])]
            self._answers[frozenset()] = first.found
        kept = self._fill(units)
        found = self._answers[_names(kept)]
        if found is None:
            raise AssertionError("the kept units were tested to fit")
        inside = {unit.gang for unit in kept if unit.follower}
        proved = replace(found, optimal=found.optimal and self._sure)
        return [
            Decision(Verdict.PLACED, found=share(gang, proved))
            if number == 0 or number in inside
            else self._left_out(number, kept)
            for number, gang in enumerate(self._gangs)
        ]

    def _units(self) -> Iterator[_Unit]:
        paths_of = [{group.path for group in gang.walk()} for gang in self._gangs]
        users = Counter(path for paths in paths_of for path in paths)
        shared = {path for path, gangs in users.items() if gangs > 1}
        for number, gang in enumerate(self._gangs):
            if number:
                needed = edits.chosen(gang, self._anchors)
                names = frozenset(task.name for task in needed.all_tasks())
                yield _Unit(number, names, kind_of(needed, shared, self._anchors), follower=True)
            paths = {task.name: group.path for group in gang.walk() for task in group.tasks}
            for task in gang.all_tasks():
                if not task.needed and task.name not in self._anchors:
                    kind = (number, paths.get(task.name), task.shape)
                    yield _Unit(number, frozenset([task.name]), kind, follower=False)

    def _fill(self, units: Sequence[_Unit]) -> list[_Unit]:
        """Return the kept units: each one with which, beside those before it, everything can be placed."""
        kept: list[_Unit] = []
        rest = list(units)
        while rest:
            low, high = 0, len(rest)
            middle = high
            while low < high:
                if self._fits([*kept, *rest[:middle]]):
                    low = middle
                else:
                    high = middle - 1
                middle = (low + high + 1) // 2
            kept += rest[:low]
            if low == len(rest):
                break
            failed = rest[low]
            gone = {failed.gang} if failed.follower else set()
            rest = [unit for unit in rest[low + 1 :] if unit.kind != failed.kind and unit.gang not in gone]
        return kept

    def _fits(self, units: Sequence[_Unit]) -> bool:
        key = _names(units)
        if key not in self._answers:
            gang = self._with(units)
            budget = SIDE_BUDGET if self._answers else self._budget
            self._answers[key] = None
            if not self._over_quota(gang):
                answer = place(gang, self._now, anchors=self._present(gang), budget=budget)
                if isinstance(answer, Found):
                    self._answers[key] = answer
                else:
                    self._sure = self._sure and answer.proved
        return self._answers[key] is not None

    def _with(self, units: Sequence[_Unit], *, also: int = 0) -> Gang:
        """Return the leader and the followers among some units as one gang, with the optional tasks among them."""
        names = _names(units) | self._anchors.keys()
        inside = sorted({0, also, *(unit.gang for unit in units if unit.follower)})
        return edits.joined([edits.chosen(self._gangs[number], names) for number in inside])

    def _left_out(self, number: int, kept: Sequence[_Unit]) -> Decision:
        """Return why a follower does not fit beside what was kept."""
        gang = self._with([unit for unit in kept if unit.gang < number], also=number)
        if refused := self._over_quota(gang, alone=self._gangs[number]):
            return refused
        decision = self._decide(gang)
        if decision.found or not decision.refusal:
            # The budget ended the search the first time.
            refusal = Refusal(Reason.UNDECIDED, wanted=len(self._gangs[number].all_tasks()))
            return Decision(Verdict.UNDECIDED, refusal=refusal)
        # A number of tasks of the joined gang has no meaning for the follower by itself.
        ways = tuple(way for way in decision.refusal.ways_out if not isinstance(way.change, Keep))
        return replace(decision, refusal=replace(decision.refusal, ways_out=ways, leader=self._gangs[0].name))

    def _waiting(self) -> Decision:
        return Decision(Verdict.WAITING, refusal=Refusal(Reason.GANG_INCOMPLETE, leader=self._gangs[0].name))

    def _decide(self, gang: Gang) -> Decision:
        return decide(gang, self._now, self._empty, anchors=self._present(gang), budget=self._budget)

    def _present(self, gang: Gang) -> dict[str, str]:
        return {task.name: self._anchors[task.name] for task in gang.all_tasks() if task.name in self._anchors}

    def _over_quota(self, gang: Gang, alone: Gang | None = None) -> Decision | None:
        if self._quota is None:
            return None
        asked = gang.all_tasks() if alone is None else tuple(task for task in alone.all_tasks() if task.needed)
        wanted = _gpus(asked)
        running = _gpus(task for task in asked if task.name in self._anchors)
        return self._quota.refused(wanted, running=running, beside=_gpus(gang.all_tasks()) - wanted)


def _gpus(tasks: Iterable[Task]) -> int:
    return sum(task.shape.gpus for task in tasks)


def _names(units: Sequence[_Unit]) -> frozenset[str]:
    return frozenset().union(*(unit.tasks for unit in units))
