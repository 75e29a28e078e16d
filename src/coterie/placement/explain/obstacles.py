"""Obstacles of one task of a shape on each infeasible node, and what those nodes offer instead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from coterie.gang.tree import Shape, Toleration
from coterie.placement.capacity import Capacity
from coterie.placement.eligibility import eligible, untolerated
from coterie.topology.channels import CHANNEL
from coterie.topology.cluster import CPU, GPUS, MEMORY, PODS, STORAGE, Bools, Ints, is_gpu
from coterie.topology.pod_affinity import counts_neighbours

# The number of nodes that a cause names.
NAMED = 3

_PLAIN = (CPU, MEMORY, STORAGE, PODS)
_ANY_TAINT = (Toleration(operator="Exists"),)


class Obstacle(StrEnum):
    """The obstacle of a task on a node, the most fundamental first.

    A node is counted once, for the first obstacle that applies: those that neither waiting nor freeing would change
    come before temporary ones, and those before capacity that others merely hold at the moment. So a control-plane node
    is one without GPUs, not one with a taint or with too little CPU. Of several resources, GPUs and other devices come
    first, then CPU, memory and storage. Obstacles of otherwise feasible nodes come last.
    """

    OTHER_GPUS = "OtherGpus"  # it has GPUs, but not of the requested kind
    NO_RESOURCE = "NoResource"  # it has none of a requested device
    NOT_SELECTED = "NotSelected"  # it lacks a label of the pool's or the task's selector
    AFFINITY = "Affinity"  # it does not match the node affinity
    TAINTED = "Tainted"  # it has a taint that is not tolerated
    EXCLUDED = "Excluded"  # the user excluded it
    NOT_READY = "NotReady"
    DELETED = "BeingDeleted"
    CORDONED = "Cordoned"
    TOO_SMALL = "TooSmall"  # it has less than requested, even when empty
    DAEMON_SETS = "DaemonSets"  # it has enough, but not beside its DaemonSets
    FULL = "Full"  # none of its GPUs is free
    IN_USE = "InUse"  # too little is free now
    NEIGHBOURS = "Neighbours"  # pod affinity, anti-affinity or a host port, with the pods there
    HIDDEN = "HiddenFromScheduler"  # it lacks the label of a level, perhaps of one that the gang does not use
    UNLABELLED = "Unlabelled"  # it is in no domain of the level


@dataclass(frozen=True, slots=True)
class Cause:
    """An obstacle, and the nodes that are counted for it.

    `about` is its resource, label or taints. `offered` is the least and the most that those nodes offer of a resource
    of which `asked` is requested. `names` are the first of the nodes.
    """

    obstacle: Obstacle
    about: str
    nodes: int
    names: tuple[str, ...]
    asked: int = 0
    offered: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Causes:
    """The obstacle of one task of a shape on each node: `kinds[codes[position]]`, or none where the code is -1."""

    kinds: tuple[tuple[Obstacle, str], ...]
    codes: npt.NDArray[np.int32]
    offered: Ints
    shape: Shape

    @property
    def names(self) -> tuple[str, ...]:
        """A short name of each kind, by which domains are counted; kinds that differ only in degree share theirs."""
        return tuple(_SHORT.get(obstacle, "too little {}").format(about) for obstacle, about in self.kinds)

    def counted(self, capacity: Capacity, start: int = 0, end: int | None = None) -> tuple[Cause, ...]:
        """Count the nodes of a range of positions by obstacle, most frequent first."""
        codes = self.codes[start:end]
        found = []
        for code in np.unique(codes[codes >= 0]).tolist():
            obstacle, about = self.kinds[code]
            where = np.flatnonzero(codes == code) + start
            names = tuple(capacity.domains.name(at) for at in where[:NAMED].tolist())
            offered = self.offered[where]
            asked = _asked(self.shape, about) if obstacle in _OF_RESOURCES else 0
            bounds = (int(offered.min()), int(offered.max())) if asked else (0, 0)
            found.append((code, Cause(obstacle, about, len(where), names, asked, bounds)))
        return tuple(cause for _, cause in sorted(found, key=lambda pair: (-pair[1].nodes, pair[0])))


_SHORT = {
    Obstacle.OTHER_GPUS: "other GPUs",
    Obstacle.NO_RESOURCE: "no {}",
    Obstacle.NOT_SELECTED: "not selected",
    Obstacle.AFFINITY: "not selected",
    Obstacle.TAINTED: "taint {}",
    Obstacle.EXCLUDED: "excluded",
    Obstacle.NOT_READY: "not ready",
    Obstacle.DELETED: "being deleted",
    Obstacle.CORDONED: "cordoned",
    Obstacle.FULL: "full",
    Obstacle.HIDDEN: "not visible to the scheduler",
    Obstacle.UNLABELLED: "not labelled",
}
_OF_RESOURCES = frozenset(
    {Obstacle.NO_RESOURCE, Obstacle.TOO_SMALL, Obstacle.DAEMON_SETS, Obstacle.FULL, Obstacle.IN_USE}
)


def causes(shape: Shape, capacity: Capacity, level: str | None = None) -> Causes:
    """Return the obstacle of one task of a shape on each node; with a level, also outside its domains."""
    domains = capacity.domains
    kinds: list[tuple[Obstacle, str]] = []
    codes = np.full(len(domains), -1, dtype=np.int32)
    offered = np.zeros(len(domains), dtype=np.int64)
    off = capacity.fit(shape).fits <= 0
    for obstacle, about, bad, amounts in _found(shape, capacity):
        new = bad & off & (codes < 0)
        if (obstacle, about) not in kinds:
            kinds.append((obstacle, about))
        codes[new] = kinds.index((obstacle, about))
        if amounts is not None:
            offered[new] = np.maximum(amounts[new], 0)
    if level is not None:
        outside = domains.tiers[domains.topology.index(level)].of < 0
        codes[outside & (codes < 0)] = len(kinds)
        kinds.append((Obstacle.UNLABELLED, domains.topology.label(level)))
    return Causes(tuple(kinds), codes, offered, shape)


def _found(shape: Shape, capacity: Capacity) -> Iterator[tuple[Obstacle, str, Bools, Ints | None]]:
    """Yield obstacles in order, their nodes, and the amounts those offer for a resource."""
    cluster, order = capacity.domains.cluster, capacity.domains.order
    asked = sorted((*shape.requests, (PODS, 1)), key=lambda pair: _rank(pair[0]))
    nothing = np.zeros(len(order), dtype=np.int64)

    def of(amounts: Ints, name: str) -> Ints:
        row = cluster.resource(name)
        return amounts[row][order] if row >= 0 else nothing

    def now(name: str) -> Ints:
        row = cluster.resource(name)
        return capacity.free[row] if row >= 0 else nothing

    def refused(part: Shape) -> Bools:
        return ~eligible(replace(part, tolerations=_ANY_TAINT), cluster, lift_transient=True)[order]

    for name, _ in asked:
        for other in filter(is_gpu, cluster.resources if is_gpu(name) else ()):
            instead = (of(cluster.allocatable, name) <= 0) & (of(cluster.allocatable, other) > 0)
            yield Obstacle.OTHER_GPUS, other, instead, None
        if name not in _PLAIN and not _last(name):
            yield Obstacle.NO_RESOURCE, name, of(cluster.allocatable, name) <= 0, nothing
    for key, value in shape.selector:
        yield Obstacle.NOT_SELECTED, f"{key}={value}", refused(Shape(selector=((key, value),))), None
    yield Obstacle.AFFINITY, "", refused(Shape(affinity=shape.affinity)), None
    barred = [untolerated(shape.tolerations, taints) for taints in cluster.taint_sets]
    taints = cluster.taint_set[order]
    lasting = [sorted({taint.key for taint in found if not taint.transient}) for found in barred]
    for number, keys in enumerate(lasting):
        if keys:
            yield Obstacle.TAINTED, ", ".join(keys), taints == number, None
    yield Obstacle.EXCLUDED, "", refused(Shape(excluded=shape.excluded)), None
    yield Obstacle.NOT_READY, "", ~capacity.usable & ~cluster.ready[order], None
    if cluster.deleting:
        leaving = np.array([name in cluster.deleting for name in capacity.domains.names], dtype=bool)
        yield Obstacle.DELETED, "", ~capacity.usable & leaving, None
    yield Obstacle.CORDONED, "", ~capacity.usable, None
    for number, found in enumerate(barred):
        if found and not capacity.lift_transient:
            yield Obstacle.TAINTED, ", ".join(sorted({taint.key for taint in found})), taints == number, None
    whole, left = cluster.allocatable, cluster.allocatable - cluster.daemons
    for last in (0, 2):
        wanted = [pair for pair in asked if _last(pair[0]) == last]
        for obstacle, amounts in ((Obstacle.TOO_SMALL, whole), (Obstacle.DAEMON_SETS, left)):
            for name, need in wanted:
                there = of(amounts, name)
                yield obstacle, name, there < need, there
        for name, need in wanted:
            free = now(name)
            if name in GPUS:
                yield Obstacle.FULL, name, free <= 0, free
            yield Obstacle.IN_USE, name, free < need, free
        if not last:
            for name, need in asked:
                if _last(name) == 1:
                    yield Obstacle.NEIGHBOURS, name, now(name) < need, None
    for level, tier in zip(capacity.domains.topology.levels, capacity.domains.tiers, strict=True):
        yield Obstacle.HIDDEN, level.label, ~capacity.visible & (tier.of < 0), None


def _last(name: str) -> int:
    """Return a rank for pseudo-resources: inter-pod affinity comes later, then the NVLink channel.

    A node that lacks anything else is not counted for these.
    """
    return 2 if name == CHANNEL else 1 if counts_neighbours(name) else 0


def _rank(name: str) -> tuple[int, str]:
    if name in GPUS:
        return 0, name
    return (2 + _PLAIN.index(name), name) if name in _PLAIN else (1, name)


def _asked(shape: Shape, name: str) -> int:
    return 1 if name == PODS else shape.amount(name)
