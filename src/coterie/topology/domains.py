"""The domains that node labels form; every domain of every level is a contiguous slice of the sorted nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from coterie.topology.abbreviations import Abbreviations
from coterie.topology.cluster import Bools, Cluster, Ints, by_name
from coterie.topology.levels import Topology

Indices = npt.NDArray[np.int32]

# Fabric ids that NVIDIA's tools report where there is no fabric: a null cluster UUID, with or without a clique.
_NULL_FABRIC = re.compile(r"(0{8}-0{4}-0{4}-0{4}-0{12})(\.\d+)?")


def is_null(label: str, value: str) -> bool:
    """Return whether a label value names no domain: it is empty, or a null NVLink fabric."""
    if not value:
        return True
    if _NULL_FABRIC.fullmatch(value):
        return True
    return value == "0" and label.endswith(("gpu.clique", "gpu-clique"))


@dataclass(frozen=True, eq=False)
class Tier:
    """All domains of one level. `parent` indexes the tier above and is 0 for the coarsest level.

    A domain's identity is `values`, the tuple of label values from the coarsest level down.
    """

    start: Indices
    end: Indices
    parent: Indices
    values: tuple[tuple[str, ...], ...]
    of: Indices  # domain of each position, -1 for none

    def __len__(self) -> int:
        return len(self.values)

    def membership(self, positions: Ints) -> tuple[Bools, Ints]:
        """Return which of these positions are in a domain, and the domain of each of those."""
        inside = self.of[positions].astype(np.int64)
        labelled = inside >= 0
        return labelled, inside[labelled]

    def sums(self, values: Ints | Bools) -> Ints:
        """Return the values of all positions summed up by domain, in a new array."""
        if len(self) == len(values):
            return values.astype(np.int64)  # every domain is one node
        running: Ints = np.zeros(len(values) + 1, dtype=np.int64)
        np.cumsum(values, out=running[1:])
        sums: Ints = running[self.end] - running[self.start]
        return sums


class LevelSums(dict[int, Ints]):
    """Values of all positions summed up by domain, for each level that was asked for."""

    def __init__(self, tiers: Sequence[Tier], values: Callable[[], Ints | Bools]) -> None:
        super().__init__()
        self._tiers = tiers
        self._values = values

    def __missing__(self, level: int) -> Ints:
        sums = self[level] = self._tiers[level].sums(self._values())
        return sums


@dataclass(frozen=True, eq=False)
class Domains:
    """A cluster divided by a topology; positions are the nodes sorted by their domains, unlabelled ones last.

    A node that lacks a level's label is in no domain at that level or any finer one; among its parent's positions it
    comes after the nodes that have the label.
    """

    cluster: Cluster
    topology: Topology
    order: Indices  # node at each position
    tiers: tuple[Tier, ...]

    def __len__(self) -> int:
        return len(self.order)

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The position of each node by its name."""
        return {name: position for position, name in enumerate(self.names)}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Node names by position."""
        names = self.cluster.names
        return tuple(names[node] for node in self.order.tolist())

    @cached_property
    def neighbourhood(self) -> int:
        """The finest level whose domains hold more than one node, -1 if there is none; a hostname groups nothing."""
        for level in range(len(self.tiers) - 1, -1, -1):
            tier = self.tiers[level]
            if len(tier) and (tier.end - tier.start > 1).any():
                return level
        return -1

    @cached_property
    def groupings(self) -> tuple[int, ...]:
        """The levels that separate groups of nodes, coarsest first: several domains, but not one per node."""
        return tuple(level for level in range(self.neighbourhood + 1) if len(self.tiers[level]) > 1)

    @cached_property
    def node_gpus(self) -> int:
        """The GPUs of the most common node that has any, the most of several; 0 for a cluster without GPUs."""
        offered = self.cluster.gpus(self.cluster.allocatable)
        known, counts = np.unique(offered[offered > 0], return_counts=True)
        return int(known[::-1][counts[::-1].argmax()]) if len(known) else 0

    @cached_property
    def offered_gpus(self) -> LevelSums:
        """The allocatable GPUs of each domain, by level."""
        cluster, order = self.cluster, self.order
        return LevelSums(self.tiers, lambda: cluster.gpus(cluster.allocatable)[order])

    def inside(self, level: int, domains: Sequence[int], finer: int) -> Ints:
        """Return the domains of a finer level inside domains of a level; level -1 is the whole cluster."""
        if level < 0:
            return np.arange(len(self.tiers[finer]))
        above, starts = self.tiers[level], self.tiers[finer].start
        spans = (np.searchsorted(starts, (above.start[one], above.end[one])).tolist() for one in domains)
        return np.concatenate([np.arange(low, high) for low, high in spans])

    def unlabelled(self, label: str) -> Bools:
        """Return, for every position, whether the node lacks a label, or has a value that names no domain."""
        column = self.cluster.column(label)
        # The last cell is for nodes without the label, whose code is -1.
        without: Bools = np.array([*(is_null(label, value) for value in column.values), True], dtype=bool)[column.codes]
        return without[self.order]

    def name(self, position: int) -> str:
        """Return the name of the node at a position."""
        return self.names[position]

    def values(self, position: int) -> dict[str, str]:
        """Return the label value of each level for the node at a position, down to the first missing one."""
        found: dict[str, str] = {}
        for level, tier in zip(self.topology.levels, self.tiers, strict=True):
            domain = tier.of[position]
            if domain < 0:
                break
            found[level.name] = tier.values[domain][-1]
        return found

    @staticmethod
    def of(cluster: Cluster, topology: Topology) -> Domains:
        """Sort the nodes of a cluster into the domains of a topology."""
        count = len(cluster)
        keys = [_ranked(cluster, level.label) for level in topology.levels]
        outside = np.zeros(count, dtype=bool)
        masked = []
        for codes, values in keys:
            outside = outside | (codes < 0)
            masked.append(np.where(outside, len(values), codes))
        order = np.lexsort(masked[::-1]).astype(np.int32) if masked else np.arange(count, dtype=np.int32)
        tiers: list[Tier] = []
        above = np.zeros(count, dtype=np.int32)
        for (_, values), codes in zip(keys, masked, strict=True):
            tiers.append(_tier(codes[order], values, above, tiers[-1] if tiers else None))
            above = tiers[-1].of
        return Domains(cluster, topology, order, tuple(tiers))


def abbreviations(found: Iterable[Domains]) -> Abbreviations:
    """Return the short forms of domain names, by level, and of node names."""
    kinds: dict[str, set[str]] = {}
    nodes: set[str] = set()
    for domains in found:
        nodes.update(domains.names)
        for level, tier in zip(domains.topology.names, domains.tiers, strict=True):
            kinds.setdefault(level, set()).update(values[-1] for values in tier.values)
    return Abbreviations(*kinds.values(), nodes)


def _ranked(cluster: Cluster, label: str) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return each node's value as its rank among the sorted values, -1 for missing and null ones."""
    column = cluster.column(label)
    good = sorted((value for value in column.values if not is_null(label, value)), key=by_name)
    rank = {value: index for index, value in enumerate(good)}
    table = np.array([*(rank.get(value, -1) for value in column.values), -1], dtype=np.int32)
    return table[column.codes], tuple(good)


def _tier(codes: Indices, values: tuple[str, ...], above: Indices, parent: Tier | None) -> Tier:
    inside = (codes < len(values)) & (above >= 0)
    fresh = np.ones(len(codes), dtype=bool)
    fresh[1:] = (codes[1:] != codes[:-1]) | (above[1:] != above[:-1])
    start = np.flatnonzero(fresh & inside).astype(np.int32)
    number = np.cumsum(fresh & inside) - 1
    of = np.where(inside, number, -1).astype(np.int32)
    size = np.bincount(of[inside], minlength=len(start)).astype(np.int32)
    parents = above[start].astype(np.int32) if len(start) else np.zeros(0, dtype=np.int32)
    own = [values[code] for code in codes[start]]
    if parent is None:
        full = tuple((value,) for value in own)
    else:
        full = tuple((*parent.values[up], value) for up, value in zip(parents, own, strict=True))
    return Tier(start, start + size, parents, full, of)
