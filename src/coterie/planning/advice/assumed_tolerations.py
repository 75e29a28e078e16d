"""The tolerations that Kubernetes is assumed to add to pods which request an extended resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from coterie.errors import Notice
from coterie.gang.tolerations import without_assumed
from coterie.gang.tree import Shape
from coterie.placement.eligibility import eligible
from coterie.rendering.text import count
from coterie.topology.cluster import Cluster


def assumed_tolerations(shapes: Iterable[Shape], cluster: Cluster) -> Iterator[Notice]:
    """Yield one notice where tasks may use nodes only because of an assumed toleration."""
    opened = np.zeros(len(cluster), dtype=bool)
    keys: set[str] = set()
    tainted = {taint.key for taints in cluster.taint_sets for taint in taints}
    for shape in dict.fromkeys(shapes):
        assumed = {each.key for each in shape.tolerations if each.assumed} & tainted
        if not assumed:
            continue
        strict = eligible(without_assumed(shape), cluster, lift_transient=True)
        more = eligible(shape, cluster, lift_transient=True) & ~strict
        opened |= more
        keys |= assumed if more.any() else set()
    if keys:
        names = ", ".join(sorted(keys))
        yield Notice(
            "TolerationAssumed",
            f"tasks that ask for {names} are assumed to tolerate the taint of that name on "
            f"{count(int(opened.sum()), 'node')}, as Kubernetes' ExtendedResourceToleration provides; "
            "resource_tolerations: false in a pool turns this off",
        )
