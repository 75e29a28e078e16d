"""Warnings of unexpected behaviour of KAI that folding a gang cannot avoid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coterie.backends.kai.mixed_sizes import counted_by_largest
from coterie.backends.kai.pod_group import PodGroupPart, is_bound, size
from coterie.document.located import Path
from coterie.errors import Fault, Notice
from coterie.gang.tree import Gang
from coterie.topology.cluster import GPU, Cluster
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology

# How many groups a warning names.
_NAMED = 5


def gang_notices(gang: Gang, root: PodGroupPart) -> Iterator[Notice]:
    """Yield reasons that may keep a gang pending although it fits."""
    mixed = next((part for part, _ in root.walk() if part.constraint and counted_by_largest(part)), None)
    if mixed is not None:
        amounts = sorted({task.shape.amount(GPU) for task in mixed.all_tasks()}, reverse=True)
        sizes = f" ({', '.join(map(str, amounts))} GPUs)" if len(amounts) > 1 else ""
        yield Notice(
            "MixedSizes",
            f"{_where(gang, mixed)} has tasks of different sizes{sizes}: KAI counts each as the largest when it looks "
            "for a domain, and can leave them pending although they fit",
        )
    for part, _ in root.walk():
        bound = [below for below in part.parts if is_bound(below)]
        # Of two, the larger takes the tightest domain that holds it; where both fit, another is left for the smaller.
        if len(bound) > 2 and len({size(below) for below in bound}) > 1:
            yield Notice(
                "GreedySiblings",
                f"{_where(gang, part)} has {len(bound)} parts of different sizes: KAI places them one after the other, "
                "the largest first, and can leave them pending although they fit together",
            )


def jointly_notice(gangs: Sequence[str]) -> Notice:
    """Return a warning of gangs that were planned jointly, because in sequence the last of them does not fit."""
    *others, last = (f'"{name}"' for name in gangs)
    shown = f"{', '.join(others[:_NAMED])}{f' and {len(others) - _NAMED} more' if len(others) > _NAMED else ''}"
    return Notice(
        "GreedyGroups",
        f"group {last} has its place only because {shown} {'was' if len(others) == 1 else 'were'} planned together "
        f"with it: KAI places one group after the other, and can leave {last} pending until more is free",
    )


def cluster_notices(cluster: Cluster, topology: Topology) -> Iterator[Notice]:
    """Yield domains of a cluster that KAI merges, because it joins label values with dots."""
    for merged in _merged(cluster, topology):
        yield Notice("DomainsMerged", f"{merged}; choose values without them")


def merge_faults(gang: str, root: PodGroupPart, cluster: Cluster, topology: Topology, path: Path) -> Iterator[Fault]:
    """Yield the faults of a gang for KAI: a requirement would not hold where KAI merges two domains."""
    looked_at = set()
    for part, _ in root.walk():
        if part.constraint.required is not None:
            first = topology.index(part.constraint.required)
            last = topology.index(part.constraint.preferred or part.constraint.required)
            looked_at |= set(topology.names[first : last + 1])
    for merged in _merged(cluster, topology):
        if merged.level in looked_at:
            message = f'what group "{gang}" requires might not hold: {merged}'
            yield Fault(message, path=path, hint="Label the nodes with values without dots, or prefer the level.")


@dataclass(frozen=True, slots=True)
class _Merged:
    """Two domains that KAI merges."""

    level: str
    one: tuple[str, ...]
    other: tuple[str, ...]

    def __str__(self) -> str:
        names = f"the {self.level} {'/'.join(self.one)} and the {self.level} {'/'.join(self.other)}"
        return f"KAI treats {names} as one: it joins label values with dots"


def _merged(cluster: Cluster, topology: Topology) -> Iterator[_Merged]:
    """Yield the first two such domains of each level."""
    for level, tier in zip(topology.levels, Domains.of(cluster, topology).tiers, strict=True):
        seen: dict[str, tuple[str, ...]] = {}
        for values in tier.values:
            other = seen.setdefault(".".join(values), values)
            if other != values:
                yield _Merged(level.name, other, values)
                break


def _where(gang: Gang, part: PodGroupPart) -> str:
    whole = f'group "{gang.name}"'
    return f"{part.called} of {whole}" if part.called else whole
