"""The domains that KAI tries for a part, in order.

Most of KAI's unexpected behaviour comes from this choice:

- The search starts at the lowest domain that all nodes allowed so far have in common. The descent stops at the
  preferred level but not at the required one, and only domains at or below the start are counted. So a requirement
  for a level above the start is never met, unless a preferred level below it stopped the descent in time.
- A domain is kept if it has room by count (`FreeAmounts.pods_per_node`) or by sums (`FreeAmounts.shares`), even if no
  node of it is eligible.
- The preferred level scores nodes in ten steps from the fullest domain to the emptiest: of more than ten domains,
  several get the same score, and a group that does not fit into one can be spread over more than it needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from coterie.backends.kai.forecast.outcomes import ForecastReason
from coterie.backends.kai.forecast.room import Floats, FreeAmounts
from coterie.backends.kai.forecast.tree import ROOT, Nodes, Tree
from coterie.backends.kai.pod_group import LevelConstraint
from coterie.gang.tree import Task
from coterie.topology.cluster import Ints
from coterie.topology.levels import Topology

_STEPS = 10
_STEP_SCORE = 10_000.0


@dataclass(frozen=True, slots=True)
class TrialDomain:
    """A domain to try: its id and its allowed nodes."""

    id: str
    nodes: Nodes


@dataclass(frozen=True, slots=True)
class TrialDomains:
    """The domains to try in order, with the bonus of each node for a preferred level; or why there is none.

    `most` is how many pods the best domain has room for, where KAI counts pods.
    """

    domains: tuple[TrialDomain, ...]
    bonus: Floats | None = None
    why: ForecastReason | None = None
    most: int | None = None


@dataclass(frozen=True, eq=False)
class _TierDomains:
    """The domains of one tier at or below the start, in the order in which KAI tries them."""

    tier: int
    domains: Ints
    holds: Ints  # pods by count; where only sums are compared, as many as requested, or none


@dataclass(frozen=True, eq=False)
class Finder:
    """The search for the domains of one part after the other."""

    room: FreeAmounts
    tree: Tree
    topology: Topology

    def candidates(
        self, constraint: LevelConstraint, tasks: Sequence[Task], nodes: Nodes, occupied: Collection[int]
    ) -> TrialDomains:
        """Return the domains for tasks that are to be placed at once on some of `nodes`.

        `occupied` are nodes on which tasks of the same part already run: with a required level they determine the
        domain.
        """
        tree, wanted = self.tree, len(tasks)
        visible = nodes[tree.inside[nodes]]
        if not len(visible):
            return TrialDomains((), why=ForecastReason.NOT_ENOUGH_IN_COMMON, most=0)
        required = self._tier(constraint.required, ROOT)
        finest = self._tier(constraint.preferred, required)
        start = tree.common(visible, self._tier(constraint.preferred, len(tree.tiers)))
        counted = self.room.counts_pods(tasks)
        rungs = list(self._rungs(tasks, start, finest, counted=counted))
        if rungs[0].holds[0] < wanted:
            return TrialDomains(
                (), why=ForecastReason.NOT_ENOUGH_IN_COMMON, most=int(rungs[0].holds[0]) if counted else None
            )
        # Nothing above the start is counted, so nothing is considered free there.
        if start[0] > finest and not self.room.asks_nothing(tasks):
            return TrialDomains((), why=ForecastReason.COMMON_DOMAIN_TOO_FINE)
        tried = [rung for rung in rungs if rung.tier >= required]
        found = [
            TrialDomain(tree.tiers[rung.tier].ids[domain], inside)
            for rung in reversed(tried)
            for domain, inside in self._with_room(rung, wanted, visible)
            if self._agrees(inside, required, occupied)
        ]
        if not found:
            most = int(tried[0].holds.max()) if counted else None
            return TrialDomains((), why=ForecastReason.NO_DOMAIN_COUNTS_ENOUGH, most=most)
        return TrialDomains(tuple(found), None if constraint.preferred is None else self._bonus(rungs[-1]))

    def _tier(self, level: str | None, otherwise: int) -> int:
        return otherwise if level is None else self.topology.index(level) + 1

    def _rungs(
        self, tasks: Sequence[Task], start: tuple[int, int], finest: int, *, counted: bool
    ) -> Iterator[_TierDomains]:
        """Yield the start and the tiers below it, down to the finest that is tried.

        The fullest domain comes first, the one of which the tasks would take the largest share. Domains come after
        those of their parents' earlier siblings, and the id decides between equals. All nodes of a domain count, even
        those that no pod may use.
        """
        room, tree = self.room, self.tree
        nodes = np.flatnonzero(tree.tiers[start[0]].of == start[1])
        pods = room.pods_per_node(tasks)[nodes] if counted else None
        behind = np.zeros(len(tree.tiers[max(start[0] - 1, ROOT)].ids), dtype=np.int64)
        for number in range(start[0], max(start[0], finest) + 1):
            tier = tree.tiers[number]
            domains, index = np.unique(tier.of[nodes], return_inverse=True)
            shares = room.shares(tasks, nodes, index, len(domains))
            if pods is None:
                holds = np.where(shares <= 1, len(tasks), 0)
            else:
                holds = np.bincount(index, weights=pods).astype(np.int64)
            order = np.lexsort((tier.turn[domains], -shares, behind[tier.parent[domains]]))
            yield _TierDomains(number, domains[order], holds[order])
            behind = np.zeros(len(tier.ids), dtype=np.int64)
            behind[domains[order]] = np.arange(len(domains))

    def _with_room(self, rung: _TierDomains, wanted: int, nodes: Nodes) -> Iterator[tuple[int, Nodes]]:
        domains = rung.domains[rung.holds >= wanted]
        return zip(domains.tolist(), self.tree.split(rung.tier, nodes, domains), strict=True)

    def _agrees(self, inside: Nodes, required: int, occupied: Collection[int]) -> bool:
        """Return whether tasks in a domain would be together with the running ones."""
        of = self.tree.tiers[required].of
        return required == ROOT or not occupied or of[inside[0]] in {of[node] for node in occupied}

    def _bonus(self, rung: _TierDomains) -> Floats:
        """Return the score that a preferred level adds to each node: the emptiest domain has the highest."""
        tier = self.tree.tiers[rung.tier]
        places = np.arange(1, len(rung.domains) + 1)
        # The last cell is for nodes outside the tree.
        steps = np.zeros(len(tier.ids) + 1)
        steps[rung.domains] = np.floor(places / len(places) * _STEPS) * _STEP_SCORE
        bonus: Floats = steps[tier.of]
        return bonus
