"""The domains of a topology as KAI sees them.

Only nodes that have the label of every level are in the tree: all others are invisible to pods with any constraint,
even a preferred one. An empty label value is a value. A domain is identified by its label values joined with dots, so
values that contain dots can merge two domains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coterie.topology.cluster import Bools, Cluster, Ints
from coterie.topology.levels import Topology

# The tier above all others has one domain, the whole topology. Level n of a topology is tier n + 1.
ROOT = 0
ROOT_ID = "root"

Nodes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ForecastTier:
    """The domains of one level."""

    ids: tuple[str, ...]
    of: Ints  # the domain of each node, -1 for none
    parent: Ints  # in the tier above
    turn: Ints  # the rank of each domain's id in alphabetical order


@dataclass(frozen=True, eq=False)
class Tree:
    """All tiers, coarsest first."""

    tiers: tuple[ForecastTier, ...]
    inside: Bools  # nodes that have every label

    @staticmethod
    def of(cluster: Cluster, topology: Topology) -> Tree:
        """Return the nodes of a cluster in KAI's domains."""
        columns = [cluster.column(level.label) for level in topology.levels]
        inside = np.all([column.codes >= 0 for column in columns], axis=0) if columns else np.zeros(len(cluster), bool)
        nodes = np.flatnonzero(inside)
        zero = np.zeros(1, dtype=np.int64)
        tiers = [ForecastTier((ROOT_ID,), np.where(inside, 0, -1), zero, zero)]
        prefixes: tuple[str, ...] = ("",)
        for column in columns:
            pairs, place = np.unique(np.stack([tiers[-1].of[nodes], column.codes[nodes]]), axis=1, return_inverse=True)
            joined = [f"{prefixes[up]}{column.values[code]}" for up, code in pairs.T.tolist()]
            ids = tuple(dict.fromkeys(joined))
            number = {name: index for index, name in enumerate(ids)}
            own = np.array([number[name] for name in joined], dtype=np.int64)
            parent = np.zeros(len(ids), dtype=np.int64)
            parent[own] = pairs[0]
            of = np.full(len(cluster), -1, dtype=np.int64)
            of[nodes] = own[place.ravel()]
            tiers.append(ForecastTier(ids, of, parent, _ranks(ids)))
            prefixes = tuple(f"{name}." for name in ids)
        return Tree(tuple(tiers), inside)

    def common(self, nodes: Nodes, deepest: int) -> tuple[int, int]:
        """Return tier and number of the lowest domain that holds all nodes, looking no deeper than a tier."""
        found = (ROOT, 0)
        for number, tier in enumerate(self.tiers[: deepest + 1]):
            domains = tier.of[nodes]
            if (domains != domains[0]).any() or _blank(tier.ids[domains[0]]):
                break
            found = (number, int(domains[0]))
        return found

    def split(self, tier: int, nodes: Nodes, domains: Ints) -> list[Nodes]:
        """Return, for each of some domains of a tier, those of the nodes that are in it."""
        of = self.tiers[tier].of
        grouped: Nodes = nodes[np.argsort(of[nodes], kind="stable")]
        starts, ends = (np.searchsorted(of[grouped], domains, side) for side in ("left", "right"))
        return [grouped[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _blank(name: str) -> bool:
    """Return whether the last label value of a domain's id is empty: KAI does not look below such a domain's parent."""
    return not name or name.endswith(".")


def _ranks(names: tuple[str, ...]) -> Ints:
    ranks = np.empty(len(names), dtype=np.int64)
    ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return ranks
