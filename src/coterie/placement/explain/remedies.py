"""Remedies of a refusal: changes with which the engine places the gang."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from coterie.gang.task_counts import sizes
from coterie.gang.tree import Gang, Path, Toleration
from coterie.placement.capacity import Capacity
from coterie.placement.eligibility import eligible, untolerated
from coterie.placement.engine import Found, place
from coterie.placement.refusal import Holder, WayOut
from coterie.placement.whatif import (
    AllowExcluded,
    Change,
    Keep,
    Release,
    Tolerate,
    Uncordon,
    changed_capacity,
    changed_gang,
    relaxations,
)

TRIED_PER_KIND = 6
OFFERED_PER_KIND = 2


@dataclass(frozen=True, slots=True)
class Remedies:
    """The search for changes under which a gang is placed now or, failing that, on the capacity it was refused on."""

    gang: Gang
    now: Capacity
    refused: Capacity
    anchors: Mapping[str, str]
    budget: int

    def find(
        self,
        path: Path,
        level: str | None,
        near: Sequence[tuple[str, ...]],
        held: Sequence[Holder],
        rivals: Sequence[Path] = (),
    ) -> tuple[WayOut, ...]:
        """Return remedies, the least intrusive kind first: a few of each, but of the levels all that work.

        `path` is the binding group, and `rivals` are the groups that do not fit with each other.
        """
        kinds: list[Iterator[Change]] = [
            iter([AllowExcluded()] if any(task.shape.excluded for task in self.gang.all_tasks()) else []),
            self._uncordon(level, near),
            (Release(owner) for owner in dict.fromkeys(holder.owner for holder in held)),
        ]
        found: list[WayOut] = []
        for changes in kinds:
            found.extend(self._working(changes))
        found.extend(self._tolerating())
        if level is not None:  # otherwise there is no capacity even without any constraint
            # The level without a feasible domain need not be the cause: a rack with capacity may be in the wrong spine.
            # So all are tried.
            relaxed = map(self._try, relaxations(self.gang, self.now.domains.topology))
            found.extend(sorted((way for way in relaxed if way), key=lambda way: not way.now))
        fewer = self._fewer(path) or self._fewer_of_one(
            rivals or [group.path for group in self.gang.walk() if not path]
        )
        return (*found, fewer) if fewer else tuple(found)

    def _working(self, changes: Iterable[Change]) -> Iterator[WayOut]:
        offered = 0
        for tried, change in enumerate(changes):
            if tried == TRIED_PER_KIND or offered == OFFERED_PER_KIND:
                return
            if way := self._try(change):
                offered += 1
                yield way

    def _try(self, change: Change) -> WayOut | None:
        gang = changed_gang(change, self.gang, self.now.domains.topology)
        if gang is None:
            return None
        if self._places(gang, changed_capacity(change, self.now)):
            return WayOut(change, now=True)
        if self.refused is not self.now and self._places(gang, self.refused):
            return WayOut(change, now=False)
        return None

    def _places(self, gang: Gang, capacity: Capacity) -> bool:
        names = {task.name for task in gang.all_tasks()}
        anchors = {task: node for task, node in self.anchors.items() if task in names}
        return isinstance(place(gang, capacity, anchors=anchors, budget=self.budget), Found)

    def _uncordon(self, level: str | None, near: Sequence[tuple[str, ...]]) -> Iterator[Change]:
        """Yield cordoned nodes one by one, then all of a domain, those of the nearest domains first."""
        domains = self.now.domains
        cordoned = np.flatnonzero(domains.cluster.cordoned[domains.order] & domains.cluster.ready[domains.order])
        by_domain: dict[tuple[str, ...], list[str]] = {}
        for position in cordoned.tolist():
            if domains.name(position) in domains.cluster.deleting:
                continue
            by_domain.setdefault(self._domain(level, position), []).append(domains.name(position))
        rank = {domain: number for number, domain in enumerate(near)}
        ordered = sorted(by_domain.items(), key=lambda pair: rank.get(pair[0], len(rank)))
        for _, nodes in ordered:
            yield from (Uncordon((node,)) for node in nodes[:OFFERED_PER_KIND])
        for _, nodes in ordered:
            if len(nodes) > 1:
                yield Uncordon(tuple(nodes))

    def _tolerating(self) -> Iterator[WayOut]:
        """Yield taints that are sufficient to tolerate; where some are, no supersets of these."""
        offered: list[Tolerate] = []
        for change in islice(self._barring(), TRIED_PER_KIND):
            if len(offered) == OFFERED_PER_KIND:
                return
            if any(set(less.keys) <= set(change.keys) for less in offered):
                continue
            if way := self._try(change):
                offered.append(change)
                yield way

    def _barring(self) -> Iterator[Tolerate]:
        """Yield the taints that keep tasks off nodes: those of few keys first, then those of many nodes, then all."""
        cluster = self.now.domains.cluster
        nodes: Counter[tuple[str, ...]] = Counter()
        for shape in {task.shape for task in self.gang.all_tasks()}:
            everywhere = replace(shape, tolerations=(Toleration(operator="Exists"),))
            selected = np.bincount(
                cluster.taint_set[eligible(everywhere, cluster, lift_transient=True)], minlength=len(cluster.taint_sets)
            )
            for taints, number in zip(cluster.taint_sets, selected.tolist(), strict=True):
                lasting = [taint for taint in untolerated(shape.tolerations, taints) if not taint.transient]
                if lasting and number:
                    nodes[tuple(sorted({taint.key for taint in lasting}))] += number
        ordered = sorted(nodes, key=lambda keys: (len(keys), -nodes[keys], keys))
        yield from map(Tolerate, ordered)
        everything = tuple(sorted({key for keys in ordered for key in keys}))
        if everything and everything not in nodes:
            yield Tolerate(everything)

    def _domain(self, level: str | None, position: int) -> tuple[str, ...]:
        if level is None:
            return ()
        tier = self.now.domains.tiers[self.now.domains.topology.index(level)]
        number = int(tier.of[position])
        return tier.values[number] if number >= 0 else ()

    def _fewer_of_one(self, rivals: Sequence[Path]) -> WayOut | None:
        """Return the least reduction of one of several competing groups with which the gang is placed."""
        found: list[tuple[bool, int, WayOut]] = []
        largest = sorted((self._size(path), path) for path in rivals)[::-1]
        for size, path in largest[:TRIED_PER_KIND]:
            way = self._fewer(path) if sizes(self.gang, path, self.anchors)[0] == path else None
            if way and isinstance(way.change, Keep):
                found.append((not way.now, size - way.change.count, way))
        return min(found, key=lambda one: one[:2], default=(False, 0, None))[2]

    def _size(self, path: Path) -> int:
        return sum(task.needed for group in self.gang.walk() if group.path == path for task in group.all_tasks())

    def _fewer(self, path: Path) -> WayOut | None:
        """Return the largest number of tasks, of one group or of the gang, with which it is placed."""
        path, counts = sizes(self.gang, path, self.anchors)
        low, high = 0, len(counts)
        best: WayOut | None = None
        # A placement stays valid with one task less, so the boundary can be bisected.
        while low < high:
            middle = (low + high) // 2
            way = self._try(Keep(self.gang.name, path, counts[middle]))
            if way:
                low, best = middle + 1, way
            else:
                high = middle
        return best
