"""The nodes of a pool with their tasks as a flat list, and the nodes that differ between two moments.

The web page draws it. A difference is small where the whole is large, so the page stays current without a new copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from coterie.topology.channels import CHANNEL
from coterie.topology.cluster import Cluster
from coterie.topology.domains import Domains, abbreviations

VERSION = 1

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class HeldGpus:
    """The GPUs that one task holds on a node; group and task are empty for pods that are not Coterie's."""

    owner: str
    group: str
    task: str
    gpus: int


@dataclass(frozen=True, slots=True)
class NodeState:
    """The part of a node that changes while it runs; `channel` says that its NVLink channel is taken.

    `gpus` are those that it has; an overfull node's pods hold more.
    """

    gpus: int
    status: str
    channel: bool
    held: tuple[HeldGpus, ...]


class _ListedNode(msgspec.Struct, frozen=True, gc=False):
    """A node as it is written in a map; a structure is encoded many times faster than a dictionary is made."""

    name: str
    short: str
    domain: int
    gpus: int
    status: str
    channel: bool
    held: tuple[HeldGpus, ...]


@dataclass(frozen=True, slots=True)
class NodeMap:
    """The nodes of a pool in the order of their domains, and their states."""

    frame: Json
    places: tuple[tuple[str, str, int], ...]  # name, short name, and the finest domain, -1 for none
    states: tuple[NodeState, ...]

    def json(self) -> Json:
        """Return the whole map as data."""
        return dict(msgspec.json.decode(self.encoded()))

    def encoded(self) -> bytes:
        """Return the whole map as JSON."""
        nodes = [
            _ListedNode(*place, state.gpus, state.status, state.channel, state.held)
            for place, state in zip(self.places, self.states, strict=True)
        ]
        return msgspec.json.encode({**self.frame, "nodes": nodes})

    def changes_since(self, before: NodeMap) -> Json | None:
        """Return the nodes whose states differ from an earlier map; None where other nodes or domains are there."""
        if self.frame != before.frame or self.places != before.places:
            return None
        pairs = enumerate(zip(before.states, self.states, strict=True))
        return {"nodes": [{"index": index, **_state_json(new)} for index, (old, new) in pairs if old != new]}


def node_map(domains: Domains, depth: int, *, pool: str) -> NodeMap:
    """Return the nodes of a pool, divided by the levels down to `depth`."""
    short = abbreviations([domains])
    listed: list[Json] = []
    first: list[int] = []  # the index of the first domain of each tier
    finest = [-1] * len(domains)
    for level, tier in enumerate(domains.tiers[:depth]):
        first.append(len(listed))
        for values, parent in zip(tier.values, tier.parent.tolist(), strict=True):
            above = first[level - 1] + parent if level else -1
            listed.append({"level": level, "parent": above, "value": values[-1], "short": short.name(values[-1])})
        for position, domain in enumerate(tier.of.tolist()):
            if domain >= 0:
                finest[position] = first[level] + domain
    levels = [{"name": level.name, "label": level.label} for level in domains.topology.levels[:depth]]
    frame = {"version": VERSION, "pool": pool, "levels": levels, "domains": listed}
    places = tuple((name, short.name(name), at) for name, at in zip(domains.names, finest, strict=True))
    return NodeMap(frame, places, _states(domains))


def _states(domains: Domains) -> tuple[NodeState, ...]:
    cluster = domains.cluster
    offered = cluster.gpus(cluster.allocatable).tolist()
    held: dict[int, list[HeldGpus]] = {}
    gpus = cluster.gpus(cluster.pod_requests).tolist()
    for pod, node, amount in zip(cluster.pods, cluster.pod_node.tolist(), gpus, strict=True):
        if amount > 0:
            member = pod.member
            name = (pod.owner, "", pod.name) if member is None else (pod.owner, member.group, member.task)
            held.setdefault(node, []).append(HeldGpus(*name, amount))
    channels = _taken_channels(cluster)
    ready, cordoned = cluster.ready.tolist(), cluster.cordoned.tolist()
    # Most nodes of a large pool are in one of a few states: nobody holds anything of them.
    idle: dict[tuple[int, str, bool], NodeState] = {}
    found = []
    for node in domains.order.tolist():
        status = "not_ready" if not ready[node] else "cordoned" if cordoned[node] else "ready"
        channel = node in channels
        if node in held:
            mine = tuple(sorted(held[node], key=lambda each: (each.owner, each.group, each.task)))
            found.append(NodeState(offered[node], status, channel, mine))
            continue
        key = (offered[node], status, channel)
        if (state := idle.get(key)) is None:
            state = idle[key] = NodeState(*key, ())
        found.append(state)
    return tuple(found)


def _taken_channels(cluster: Cluster) -> frozenset[int]:
    row = cluster.resource(CHANNEL)
    if row < 0:
        return frozenset()
    pairs = zip(cluster.pod_node.tolist(), cluster.pod_requests[row].tolist(), strict=True)
    return frozenset(node for node, asked in pairs if asked > 0)


def _state_json(state: NodeState) -> Json:
    held = [{"owner": each.owner, "group": each.group, "task": each.task, "gpus": each.gpus} for each in state.held]
    return {"gpus": state.gpus, "status": state.status, "channel": state.channel, "held": held}
