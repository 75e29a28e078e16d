"""The levels of a snapshot's KAI Topologies, with names for levels that have only a node label."""

from __future__ import annotations

from collections.abc import Iterator

from coterie.frontends.grove.kai_topology import KaiTopology, read_kai_topologies
from coterie.inspection.labels import well_known_name
from coterie.sources import Snapshot
from coterie.topology.levels import MAX_LEVELS, Topology, is_label_value, level_faults


def kai_levels(snapshot: Snapshot | None, *, pooled: bool = True) -> dict[str, Topology]:
    """Return the levels of a snapshot's KAI Topologies by name, without those that break a rule.

    Those that Coterie rendered for a pool repeat levels that are declared elsewhere; without `pooled`, they are left
    out.
    """
    kai, _ = read_kai_topologies(snapshot.objects) if snapshot else ({}, ())
    found = {name: _levels(one) for name, one in kai.items() if pooled or not one.pooled}
    return {name: topology for name, topology in found.items() if topology.levels}


def _levels(found: KaiTopology) -> Topology:
    """Return the levels under their aliases, or else under names made from their labels."""
    taken = {alias for alias in found.aliases if is_label_value(alias)}
    pairs: list[tuple[str, str]] = []
    for number, (alias, label) in enumerate(found.named_levels, 1):
        own = alias if alias in taken else next(name for name in _names(label, number) if name not in taken)
        taken.add(own)
        pairs.append((own, label))
    return Topology() if level_faults(pairs) else Topology.of(*pairs)


def _names(label: str, number: int) -> Iterator[str]:
    """Yield names for a level without an alias, the best first; the last is never taken by another level."""
    short = label.rpartition("/")[2]
    yield from (name for name in (well_known_name(label), short, label.replace("/", ".")) if is_label_value(name))
    yield from (f"level-{number}{f'-{again}' if again else ''}" for again in range(MAX_LEVELS + 1))
