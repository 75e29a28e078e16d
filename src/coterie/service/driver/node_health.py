"""Node health: nodes that are gone, and those that have been unhealthy for longer than a grace period.

A node is unhealthy while it is not ready, and for a task also while it has a NoExecute taint that the task does not
tolerate. A cordon is neither: no new tasks are placed on the node, and running ones continue.
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
class HealthCondition:
    """A condition of a node: a NoExecute taint or, without one, not being ready."""

    node: str
    taint: Taint | None = None

    def hits(self, tolerations: tuple[Toleration, ...]) -> bool:
        """Return whether the condition affects tasks with these tolerations."""
        if self.taint is None:
            return True
        tainted = Cluster.of([Node(self.node, taints=(self.taint,))])
        return not eligible(Shape(tolerations=tolerations), tainted, lift_transient=False)[0]

    @property
    def words(self) -> str:
        """The condition as the end of a sentence about the node."""
        return f"has had taint {self.taint.key}:{self.taint.effect}" if self.taint else "has not been ready"


HealthConditions = Mapping[HealthCondition, float]  # since when


def health_conditions(cluster: Cluster) -> Iterator[HealthCondition]:
    """Yield the conditions of a cluster's nodes."""
    for position in np.flatnonzero(~cluster.ready).tolist():
        yield HealthCondition(cluster.names[position])
    for number, taints in enumerate(cluster.taint_sets):
        for taint in (each for each in taints if each.effect == "NoExecute"):
            for position in np.flatnonzero(cluster.taint_set == number).tolist():
                yield HealthCondition(cluster.names[position], taint)


def with_start_times(known: HealthConditions, cluster: Cluster, now: float) -> dict[HealthCondition, float]:
    """Return the current conditions, each with the time since when it has lasted without a break."""
    return {each: known.get(each, now) for each in health_conditions(cluster)}


def outlasting(
    known: HealthConditions, grace_s: float, told: Collection[HealthCondition], now: float
) -> list[HealthCondition]:
    """Return the conditions that have outlasted the grace period and were not reported before."""
    return [each for each, since in known.items() if since + grace_s <= now and each not in told]


def next_end(known: HealthConditions, grace_s: float, told: Collection[HealthCondition]) -> float | None:
    """Return when the next grace period of an unreported condition ends."""
    return min((since + grace_s for each, since in known.items() if each not in told), default=None)


def is_healthy(
    node: str, cluster: Cluster, known: Iterable[HealthCondition], tolerations: tuple[Toleration, ...]
) -> bool:
    """Return whether a node exists and no condition of it affects tasks with these tolerations."""
    return node in cluster.position and not any(each.node == node and each.hits(tolerations) for each in known)


def unchanged(old: Snapshot, new: Snapshot) -> bool:
    """Return whether two readings of a source are equal: a heartbeat or a touched file is no change."""
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
