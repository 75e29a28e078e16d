"""Clusters drawn in text.

    cluster zone > rack of 8
      zone a: rack r1 [8 8 4 .]  rack r2 [8 8 8! 8*]
              rack -  [8]
      zone b: rack r1 [18x8 .:wf-12 2:wf-13=4,wf-14=2]
      node a-r1-1 taint=dedicated:NoSchedule pods=2 cpu=4
      pod ds/driver on a-r1-2 gpu=1 daemon

A cell is a node, and its number the GPUs that are free on it; a dot is none. `18x8` is eighteen nodes. After `of 8`
nodes have eight GPUs, and what is not free is held by `others`, or by those named after a colon. Without it nodes are
as large as they are drawn. `!` is cordoned, `*` not ready, a level's value `-` no label. Nodes are named after their
domain and counted in it: a-r1-1. Each has 64 CPUs unless it says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from coterie.topology.channels import CHANNEL
from coterie.topology.cluster import CPU, GPU, PODS, Cluster, Node, Pod, Taint
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology

LABELS = {
    "zone": "topology.kubernetes.io/zone",
    "spine": "topology.kubernetes.io/spine",
    "rack": "topology.kubernetes.io/rack",
    "clique": "nvidia.com/gpu.clique",
}
_CELL = re.compile(r"(?:(\d+)x)?(\d+|\.)(?::([^!*]+))?([!*]*)")
_TOKEN = re.compile(r"\[[^\]]*\]|[^\s\[\]]+")
UNITS = {"gpu": (GPU, 1), "cpu": (CPU, 1000), "pods": (PODS, 1), "channel": (CHANNEL, 1)}
_CPUS = 64_000
_LONG_RUN = 5


@dataclass
class Drawing:
    """A cluster while a scenario plays: nodes and pods come and go, the racks stay where they were drawn."""

    topology: Topology
    size: int | None
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: list[Pod] = field(default_factory=list)
    racks: list[tuple[str, list[str]]] = field(default_factory=list)

    def domains(self, *, reverse: bool = False) -> Domains:
        """Return the cluster through its topology; listed backwards it is the same cluster."""
        step = -1 if reverse else 1
        return Domains.of(Cluster.of(list(self.nodes.values())[::step], self.pods[::step]), self.topology)

    def change(self, line: str) -> None:
        """Carry out a line that changes nodes or pods."""
        verb, *words = line.split()
        match verb:
            case "node":
                self.nodes[words[0]] = _described(self.nodes[words[0]], words[1:])
            case "pod":
                self.pods.append(_pod(words))
            case "cordon" | "uncordon":
                self.nodes[words[0]] = replace(self.nodes[words[0]], cordoned=verb == "cordon")
            case "lose":
                self.nodes[words[0]] = replace(self.nodes[words[0]], ready=False)
                self.pods = [pod for pod in self.pods if pod.node != words[0]]
            case "end":
                self.pods = [pod for pod in self.pods if pod.owner != words[0]]
            case "relabel":
                level, _, value = words[1].partition("=")
                labels = {**self.nodes[words[0]].labels, self.topology.label(level): value}
                self.nodes[words[0]] = replace(self.nodes[words[0]], labels=labels)
            case _:
                raise ValueError(f"no such line: {line}")

    def picture(self, used: Sequence[str]) -> str:
        """Draw how many tasks are on each node, rack by rack, leaving out racks without any."""
        return "  ".join(
            f"{title} [{_cells([used.count(name) for name in names])}]"
            for title, names in self.racks
            if any(name in used for name in names)
        )


def draw(lines: Sequence[str]) -> Drawing:
    """Read a drawing, its head included."""
    head = re.fullmatch(r"cluster(?: (.+?))??(?: of (\d+))?", lines[0])
    if not head:
        raise ValueError(f"not a cluster: {lines[0]}")
    names = head[1].split(" > ") if head[1] else []
    drawing = Drawing(Topology.of(*((name, LABELS[name]) for name in names)), int(head[2]) if head[2] else None)
    home: dict[str, str | None] = {}
    for line in map(str.strip, lines[1:]):
        if line.split()[0] in {"node", "pod"}:
            drawing.change(line)
            continue
        tokens = iter(_TOKEN.findall(line))
        for token in tokens:
            if token.startswith("["):
                _rack(drawing, home, token[1:-1].split())
                continue
            value = next(tokens).removesuffix(":")
            finer = names[names.index(token) :]
            home = {level: known for level, known in home.items() if level not in finer}
            home[token] = None if value == "-" else value
    return drawing


def _rack(drawing: Drawing, home: dict[str, str | None], cells: Sequence[str]) -> None:
    values = [home.get(level) for level in drawing.topology.names]
    labels = {LABELS[level]: value for level, value in home.items() if value is not None}
    stem = "-".join(value for value in values if value is not None) or "x"
    title = "/".join(value or "-" for value in values) or "all"
    before = sum(len(names) for known, names in drawing.racks if known == title)
    names: list[str] = []
    for free, holders, marks in _nodes(cells):
        name = f"{stem}-{before + len(names) + 1}"
        names.append(name)
        size = drawing.size if drawing.size is not None else free
        drawing.nodes[name] = Node(name, labels, {GPU: size, CPU: _CPUS}, cordoned="!" in marks, ready="*" not in marks)
        drawing.pods.extend(_holders(name, size - free, holders))
    drawing.racks.append((title, names))


def _nodes(cells: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    for cell in cells:
        found = _CELL.fullmatch(cell)
        if not found:
            raise ValueError(f"not a node: {cell}")
        times, free, holders, marks = found.groups(default="")
        for _ in range(int(times or 1)):
            yield 0 if free == "." else int(free), holders, marks


def _holders(node: str, used: int, holders: str) -> Iterator[Pod]:
    parts = dict(part.partition("=")[::2] for part in (holders or "others").split(","))
    amounts = {owner: int(amount) if amount else used for owner, amount in parts.items()}
    if sum(amounts.values()) != used:
        raise ValueError(f"{holders} hold {sum(amounts.values())} of the {used} in use on {node}")
    for owner, amount in amounts.items():
        if amount:
            yield Pod(f"{owner}@{node}", node, {GPU: amount}, owner)


def _described(node: Node, words: Sequence[str]) -> Node:
    allocatable, taints = dict(node.allocatable), list(node.taints)
    for word in words:
        key, _, value = word.partition("=")
        if key == "taint":
            name, _, effect = value.partition(":")
            taints.append(Taint(name, "", effect or "NoSchedule"))
        else:
            resource, unit = UNITS[key]
            allocatable[resource] = int(value) * unit
    return replace(node, allocatable=allocatable, taints=tuple(taints))


def _pod(words: Sequence[str]) -> Pod:
    owner, _, node, *rest = words
    requests = {}
    for word in rest:
        if "=" in word:
            resource, unit = UNITS[word.partition("=")[0]]
            requests[resource] = int(word.partition("=")[2]) * unit
    return Pod(f"{owner}@{node}", node, requests, owner, daemon="daemon" in rest, terminating="terminating" in rest)


def _cells(counts: Sequence[int]) -> str:
    cells: list[str] = []
    start = 0
    for index in range(1, len(counts) + 1):
        if index == len(counts) or counts[index] != counts[start]:
            cell, run = str(counts[start] or "."), index - start
            cells.extend([f"{run}x{cell}"] if run >= _LONG_RUN else [cell] * run)
            start = index
    return " ".join(cells)
