"""The pods of one workload and the running ones: which have a term, which it matches, and the domains of its label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coterie.planning.affinity.separation_rows import Neighbour
from coterie.planning.workload import Workload
from coterie.topology.cluster import Cluster, Ints
from coterie.topology.pod_affinity import HOSTNAME, AffinityTerm, PodTraits


@dataclass(frozen=True, slots=True)
class PlacedTask:
    """A task that was placed earlier, with its node: for later workloads it counts as running."""

    traits: PodTraits
    node: str
    owner: str


@dataclass(frozen=True, eq=False)
class AffinityPods:
    """The pods that affinity terms of a workload, or of running pods, can concern."""

    workload: Workload
    cluster: Cluster
    placed: Sequence[PlacedTask]

    @property
    def concerned(self) -> bool:
        """Whether any affinity or host port applies."""
        own = any(traits.apart or traits.near or traits.ports for traits in self.kinds)
        theirs = (*(pod.beside for pod in self.cluster.pods if pod.beside), *(each.traits for each in self.placed))
        return own or any(traits.apart for traits in theirs)

    @cached_property
    def kinds(self) -> list[PodTraits]:
        """The distinct kinds of pods of the workload."""
        return list({id(traits): traits for traits in self.workload.traits.values()}.values())

    @cached_property
    def _tasks(self) -> Mapping[int, list[str]]:
        """The tasks of each kind of pod."""
        found: dict[int, list[str]] = {}
        for name, traits in self.workload.traits.items():
            found.setdefault(id(traits), []).append(name)
        return found

    @cached_property
    def running(self) -> list[Neighbour]:
        """The running pods whose traits are known, and the tasks that were placed earlier."""
        cluster = self.cluster
        running = [
            Neighbour(traits, int(cluster.pod_node[index]), pod.owner, index, pod.daemon)
            for index, pod in enumerate(cluster.pods)
            if (traits := pod.traits) is not None
        ]
        return running + [Neighbour(each.traits, cluster.position[each.node], each.owner) for each in self.placed]

    def of(self, kinds: Iterable[PodTraits]) -> frozenset[str]:
        """Return the tasks of some kinds of pods."""
        return frozenset(name for traits in kinds for name in self._tasks[id(traits)])

    def held_terms(self, which: str) -> dict[AffinityTerm, None]:
        """Return the distinct terms of the tasks: those that keep pods `apart`, or those that keep them `near`."""
        return dict.fromkeys(term for traits in self.kinds for term in getattr(traits, which))

    def holders(self, term: AffinityTerm, which: str = "apart") -> frozenset[str]:
        """Return the tasks that have a term."""
        return self.of(traits for traits in self.kinds if term in getattr(traits, which))

    def matched(self, term: AffinityTerm) -> frozenset[str]:
        """Return the tasks that a term matches."""
        return self.of(traits for traits in self.kinds if term.matches(traits))

    def full(self, amount: int) -> Ints:
        """Return the same amount on every node."""
        return np.full(len(self.cluster), amount, dtype=np.int64)

    def domains(self, key: str) -> Ints:
        """Return the domain of each node, -1 for none; a node without the hostname label is its own host."""
        column = self.cluster.columns.get(key)
        if column is not None:
            return column.codes.astype(np.int64)
        return np.arange(len(self.cluster)) if key == HOSTNAME else self.full(-1)

    def around(self, key: str, node: int) -> Ints:
        """Return the nodes of the domain that a node is in."""
        domains = self.domains(key)
        nodes: Ints = np.flatnonzero(domains == domains[node]) if domains[node] >= 0 else np.zeros(0, dtype=np.int64)
        return nodes

    def single(self, key: str) -> bool:
        """Return whether every domain of a label is one node."""
        domains = self.domains(key)
        return bool(len(np.unique(domains[domains >= 0])) == np.count_nonzero(domains >= 0))
