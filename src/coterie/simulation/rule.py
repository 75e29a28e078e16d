"""The rule that assigns topology constraints to jobs, because traces record none.

A job becomes as few pods as nodes allow, equal within one GPU. A job of at most one domain's GPUs is required to be in
one domain of the rule's level. A larger one is split into as few groups as domains allow, equal within one pod, each
required to be in one domain, and all of them preferred to be in one domain of the next coarser level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coterie.errors import UsageError
from coterie.gang.rules import RequestedTask, TaskRequirement, build
from coterie.gang.tree import Gang, Shape, Toleration
from coterie.topology.cluster import GPU
from coterie.topology.domains import Domains


@dataclass(frozen=True, eq=False)
class Layout:
    """The layout of a job of some size: the GPUs of its pods, and the number of pods in each group.

    Pods and groups come largest first, the pods of the first group first. A job without a level is one unconstrained
    group. `gang` is the same layout as a constraint tree.
    """

    pods: tuple[Shape, ...]
    groups: tuple[int, ...]
    level: int | None
    preferred: int | None
    gang: Gang

    @cached_property
    def gpus(self) -> tuple[int, ...]:
        """GPUs of each pod."""
        return tuple(shape.amount(GPU) for shape in self.pods)

    @cached_property
    def members(self) -> tuple[range, ...]:
        """The pods of each group."""
        ends = np.cumsum(self.groups).tolist()
        return tuple(range(end - size, end) for end, size in zip(ends, self.groups, strict=True))


@dataclass(frozen=True)
class Rule:
    """The rule on one cluster: its level, if any, and the GPUs of the most common node and domain there."""

    domains: Domains
    level: str | None
    node_gpus: int
    domain_gpus: int
    selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()

    @staticmethod
    def of(
        domains: Domains,
        level: str | None,
        selector: tuple[tuple[str, str], ...] = (),
        tolerations: tuple[Toleration, ...] = (),
    ) -> Rule:
        """Return the rule for a level of a cluster's topology, or for none; raise when there are no GPUs."""
        cluster = domains.cluster
        gpus = cluster.allocatable[cluster.resource(GPU)][domains.order]
        if not gpus.any():
            raise UsageError("the cluster has no GPUs", "Jobs of a trace hold GPUs; name a cluster that has some.")
        whole = int(gpus.sum())
        if level is None:
            return Rule(domains, None, _usual(gpus.tolist()), whole, selector, tolerations)
        tier = domains.tiers[domains.topology.index(level)]
        inside = tier.sums(gpus)
        if not inside.any():
            raise UsageError(
                f"no node in a domain of level {level} has GPUs", "Name another level with --rule, or --rule none."
            )
        return Rule(domains, level, _usual(gpus.tolist()), _usual(inside.tolist()), selector, tolerations)

    @property
    def coarser(self) -> str | None:
        """The level at which the groups of a larger job are preferred to be together."""
        names = self.domains.topology.names
        index = names.index(self.level) if self.level else 0
        return names[index - 1] if index else None

    @property
    def pods_per_domain(self) -> int:
        """The number of node-sized pods that one domain has GPUs for."""
        return max(1, self.domain_gpus // self.node_gpus)

    def words(self) -> str:
        """Return the rule as a sentence without its full stop."""
        pods = f"jobs become pods of at most {self.node_gpus} GPUs"
        if self.level is None:
            return f"{pods} that may go anywhere"
        more = f"more: groups of one {self.level} each"
        preference = f", one {self.coarser} preferred" if self.coarser else ""
        return f"{pods}; up to {self.domain_gpus} GPUs: one {self.level} required; {more}{preference}"

    def layout(self, gpus: int) -> Layout:
        """Return the layout of a job with this many GPUs."""
        sizes = _parts(gpus, -(-gpus // self.node_gpus))
        shapes = {size: self.shape(size) for size in sorted(set(sizes))}
        groups: tuple[int, ...] = (len(sizes),)
        coarser = None
        if self.level is not None and gpus > self.domain_gpus:
            groups = _parts(len(sizes), -(-len(sizes) // self.pods_per_domain))
            coarser = self.coarser if len(groups) > 1 else None
        asked: list[RequestedTask] = []
        for group, size in enumerate(groups):
            requirements = [] if coarser is None else [TaskRequirement(coarser, "job", required=False)]
            requirements += [] if self.level is None else [TaskRequirement(self.level, f"g{group}")]
            start = len(asked)
            asked += [
                RequestedTask(str(pod), shapes[sizes[pod]], tuple(requirements)) for pod in range(start, start + size)
            ]
        index = self.domains.topology.index
        return Layout(
            tuple(task.shape for task in asked),
            groups,
            None if self.level is None else index(self.level),
            None if coarser is None else index(coarser),
            build(f"{gpus} GPUs", asked, self.domains.topology),
        )

    def shape(self, gpus: int) -> Shape:
        """Return the shape of a pod with this many GPUs."""
        return Shape(((GPU, gpus),), self.selector, self.tolerations)


def _parts(whole: int, count: int) -> tuple[int, ...]:
    """Return a number as `count` parts that differ by at most one, largest first."""
    least, more = divmod(whole, count)
    return tuple(least + (part < more) for part in range(count))


def _usual(sizes: Iterable[int]) -> int:
    """Return the most common size that is not zero; of equally common ones the largest."""
    counted = Counter(size for size in sizes if size > 0)
    return max(counted, key=lambda size: (counted[size], size))
