"""What KAI makes of a gang that its user would not expect, as warnings; what can be avoided, folding avoids."""

from __future__ import annotations

from collections.abc import Iterator

from coterie.backends.kai.folding import Part, is_bound, size
from coterie.errors import Notice
from coterie.gang.tree import Gang
from coterie.topology.cluster import CPU, GPU, MEMORY, Cluster
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology


def gang_notices(gang: Gang, root: Part) -> Iterator[Notice]:
    """Yield what may keep a gang pending although it fits."""
    mixed = next((part for part, _ in root.walk() if part.constraint and _mixed(part)), None)
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


def cluster_notices(cluster: Cluster, topology: Topology) -> Iterator[Notice]:
    """Yield domains of a cluster that KAI takes for one, because it joins label values with dots."""
    for level, tier in zip(topology.levels, Domains.of(cluster, topology).tiers, strict=True):
        seen: dict[str, tuple[str, ...]] = {}
        for values in tier.values:
            other = seen.setdefault(".".join(values), values)
            if other != values:
                yield Notice(
                    "DomainsMerged",
                    f"KAI takes the {level.name} {'/'.join(other)} and the {level.name} {'/'.join(values)} for one: it "
                    "joins label values with dots; choose values without them",
                )
                break


def _mixed(part: Part) -> bool:
    """Tell whether tasks differ that KAI counts by the largest: those that all use GPUs and the like, or none does."""
    requests = {task.shape.requests for task in part.all_tasks()}
    kinds = {frozenset(name for name, _ in found) - {CPU, MEMORY} for found in requests}
    return len(requests) > 1 and len(kinds) == 1


def _where(gang: Gang, part: Part) -> str:
    if not part.path:
        return f'group "{gang.name}"'
    level, group = part.path[-1]
    return f'{level} group "{group}" of group "{gang.name}"'
