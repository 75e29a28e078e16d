"""The notices of a plan about gangs that fit but that KAI's own rule leaves pending."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from coterie.backends.kai.forecast.forecast import kai_notices
from coterie.backends.kai.mixed_sizes import mix
from coterie.backends.kai.placement_warnings import cluster_notices, jointly_notice
from coterie.errors import Notice
from coterie.gang.equivalence import kind_of
from coterie.gang.tree import Gang
from coterie.placement.capacity import Capacity
from coterie.topology.cluster import Cluster
from coterie.topology.levels import Topology

# How many pairs of a task and a node are evaluated for one plan, which takes about half a second.
_MOST_PAIRS = 2_000_000


@dataclass(eq=False)
class KaiForecast:
    """The forecast of KAI's rule for the gangs of one plan, up to a budget."""

    _pairs: int = field(default=0, init=False)
    _notices: list[Notice] = field(default_factory=list, init=False)
    _warned: set[object] = field(default_factory=set, init=False)
    _skipped: list[str] = field(default_factory=list, init=False)

    def cluster_notices(self, cluster: Cluster, topology: Topology) -> Iterator[Notice]:
        """Yield the domains that KAI merges into one."""
        return cluster_notices(cluster, topology)

    def add(self, gang: Gang, capacity: Capacity, running: Mapping[str, str]) -> None:
        """Evaluate a gang for which the engine has found a placement on this capacity."""
        waiting = len(gang.all_tasks()) - len(running)
        if not waiting:
            return
        kind = kind_of(gang)
        if kind in self._warned:
            # Replicas are all alike, and one warning is enough.
            return
        self._pairs += waiting * len(capacity.domains)
        if self._pairs > _MOST_PAIRS:
            self._skipped.append(gang.name)
            return
        cluster, topology = capacity.domains.cluster, capacity.domains.topology
        found = kai_notices(mix(gang, topology, cluster).gang, capacity, running)
        self._warned |= {kind} if found else set()
        self._notices += found

    def notices(self, together: Iterable[Sequence[str]] = ()) -> tuple[Notice, ...]:
        """Return the findings, the gangs not evaluated, and those that KAI would not place jointly as planned."""
        return (*self._notices, *self._not_checked(), *map(jointly_notice, together))

    def _not_checked(self) -> Iterator[Notice]:
        if not self._skipped:
            return
        more = f" and {len(self._skipped) - 1} more" if len(self._skipped) > 1 else ""
        message = (
            f'whether KAI would place group "{self._skipped[0]}"{more} was not checked: for this many tasks and '
            "nodes that takes too long"
        )
        yield Notice("KaiNotChecked", message)
