"""Cluster files of large fleets: zones of four spines, spines of sixteen racks, racks of sixteen nodes."""

from __future__ import annotations

from collections.abc import Iterator

LEVELS = ("zone", "spine", "rack")
SPINES, RACKS, NODES, GPUS = 4, 16, 16, 8
# A cluster file has a limited number of values, so that only the first zones have pods.
BUSY_ZONES = 20


def fleet(nodes: int) -> str:
    """Return the cluster file of a fleet, in which gangs hold two thirds of the racks of the first zones."""
    zones = max(1, nodes // (SPINES * RACKS * NODES))
    return "\n".join((*_levels(), "fleet:", *_groups(zones), "pods:", *_pods(min(zones, BUSY_ZONES)), ""))


def _levels() -> Iterator[str]:
    yield "topology_keys:"
    for level in LEVELS:
        yield f"- {{key: {level}, label: example.com/{level}}}"


def _groups(zones: int) -> Iterator[str]:
    for zone in range(zones):
        for spine in range(SPINES):
            racks = ", ".join(f"z{zone}s{spine}r{rack}" for rack in range(RACKS))
            domains = f"{{zone: [z{zone}], spine: [z{zone}s{spine}], rack: [{racks}]}}"
            yield f"- {{domains: {domains}, nodes: {NODES}, name: '{{rack}}-n{{n}}', gpu: {GPUS}, cpu: 64}}"


def _pods(zones: int) -> Iterator[str]:
    for number in range(zones * SPINES * RACKS):
        zone, rest = divmod(number, SPINES * RACKS)
        spine, rack = divmod(rest, RACKS)
        if number % 3:
            for node in range(rack * NODES + 1, rack * NODES + 13):
                yield f"- {{owner: job-{number // 5}, node: z{zone}s{spine}r{rack}-n{node}, gpu: {GPUS}}}"
