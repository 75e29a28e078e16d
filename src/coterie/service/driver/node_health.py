"""Which nodes have failed: those that are gone, and those that have not been well for longer than a grace period.

A node is not well while it is not ready, and for a task also while it has a NoExecute taint that the task does not
tolerate. A cordon is neither: nothing new comes to the node, and what runs there goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from coterie.gang.tree import Shape, Toleration
from coterie.placement.eligibility import eligible
from coterie.sources import Snapshot
from coterie.topology.cluster import Cluster, Node, Taint


@dataclass(frozen=True, slots=True)
class Ailment:
    """What is wrong with a node: a taint that drives tasks off, or, without one, that it is not ready."""

    node: str
    taint: Taint | None = None

    def hits(self, tolerations: tuple[Toleration, ...]) -> bool:
        """Tell whether tasks with these tolerations suffer from it."""
        if self.taint is None:
            return True
        tainted = Cluster.of([Node(self.node, taints=(self.taint,))])
        return not eligible(Shape(tolerations=tolerations), tainted, lift_transient=False)[0]

    @property
    def words(self) -> str:
        """What is wrong, as the end of a sentence about the node."""
        return f"has had taint {self.taint.key}:{self.taint.effect}" if self.taint else "has not been ready"


Ailments = Mapping[Ailment, float]  # since when


def ailments(cluster: Cluster) -> Iterator[Ailment]:
    """Yield what is wrong with the nodes of a cluster."""
    for position in np.flatnonzero(~cluster.ready).tolist():
        yield Ailment(cluster.names[position])
    for number, taints in enumerate(cluster.taint_sets):
        for taint in (each for each in taints if each.effect == "NoExecute"):
            for position in np.flatnonzero(cluster.taint_set == number).tolist():
                yield Ailment(cluster.names[position], taint)


def still(known: Ailments, cluster: Cluster, now: float) -> dict[Ailment, float]:
    """Return what is wrong now, each with since when it has been so without a break."""
    return {each: known.get(each, now) for each in ailments(cluster)}


def outlasting(known: Ailments, grace_s: float, told: Collection[Ailment], now: float) -> list[Ailment]:
    """Return what has outlasted the grace period and was not told before."""
    return [each for each, since in known.items() if since + grace_s <= now and each not in told]


def next_end(known: Ailments, grace_s: float, told: Collection[Ailment]) -> float | None:
    """Return when the next grace period ends of those that were not told."""
    return min((since + grace_s for each, since in known.items() if each not in told), default=None)


def well(node: str, cluster: Cluster, known: Iterable[Ailment], tolerations: tuple[Toleration, ...]) -> bool:
    """Tell whether a node is there, and nothing of what is wrong hits tasks with these tolerations."""
    return node in cluster.position and not any(each.node == node and each.hits(tolerations) for each in known)


def unchanged(old: Snapshot, new: Snapshot) -> bool:
    """Tell whether two readings of a source say the same: a heartbeat or a touched file is no change."""
    return replace(old, cluster=new.cluster) == new and _alike(old.cluster, new.cluster)


def _alike(old: Cluster, new: Cluster) -> bool:
    plain = ("names", "resources", "taint_sets", "pods")
    arrays = ("allocatable", "taint_set", "cordoned", "ready", "pod_node", "pod_requests")
    return (
        all(getattr(old, name) == getattr(new, name) for name in plain)
        and all(np.array_equal(getattr(old, name), getattr(new, name)) for name in arrays)
        and old.columns.keys() == new.columns.keys()
        and all(
            column.values == new.columns[key].values and np.array_equal(column.codes, new.columns[key].codes)
            for key, column in old.columns.items()
        )
    )
