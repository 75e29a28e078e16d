"""A slow and plain second implementation of the placement rules, by which the engine is judged.

It shares no code with the engine. Labels, taints and pods are read directly from the cluster, one node at a time, and
placements are enumerated. Suitable for six nodes and six tasks; `verify` works at any size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Protocol

from coterie.gang.tree import Expression, Gang, Group, Path, Shape, Task, Toleration
from coterie.topology.cluster import PODS, Taint
from coterie.topology.domains import Domains, is_null

# Extra domains per level, the finest level first: what two placements are compared by.
Vector = tuple[int, ...]
Identity = tuple[str, ...]


class TwinCapacity(Enum):
    """The capacity of a cluster: the current one, or that of a cluster with DaemonSets alone."""

    NOW = "now"
    EMPTY = "empty"


class TwinPlacement(Protocol):
    """The claims of a placement about itself."""

    @property
    def nodes(self) -> Mapping[str, str]:
        """Task name to node name."""

    @property
    def extra(self) -> Mapping[str, int]:
        """Level name to extra domains of the preferred groups at that level."""


def spare(domains: Domains, room: TwinCapacity) -> list[dict[str, int]]:
    """Return what each node has left, by resource; an overcommitted resource has nothing left."""
    cluster = domains.cluster
    left = [
        {name: int(cluster.allocatable[row, node]) for row, name in enumerate(cluster.resources)}
        for node in range(len(cluster))
    ]
    for pod in cluster.pods:
        if room is TwinCapacity.EMPTY and not pod.daemon:
            continue
        node = left[cluster.position[pod.node]]
        for name, amount in pod.requests.items():
            node[name] -= amount
        node[PODS] -= 1
    return [{name: max(0, amount) for name, amount in node.items()} for node in left]


def accepts(domains: Domains, node: int, shape: Shape, room: TwinCapacity) -> bool:
    """Tell whether a node may take a task of this shape, its size aside."""
    cluster = domains.cluster
    if cluster.names[node] in shape.excluded:
        return False
    if room is TwinCapacity.NOW and (cluster.cordoned[node] or not cluster.ready[node]):
        return False
    for taint in cluster.taint_sets[cluster.taint_set[node]]:
        lifted = room is TwinCapacity.EMPTY and taint.key.startswith("node.kubernetes.io/")
        repels = taint.effect in {"NoSchedule", "NoExecute"}
        if repels and not lifted and not any(tolerates(one, taint) for one in shape.tolerations):
            return False
    if any(cluster.label(node, key) != value for key, value in shape.selector):
        return False
    return not shape.affinity or any(
        all(holds(one, cluster.label(node, one.key)) for one in alternative) for alternative in shape.affinity
    )


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Tell whether one toleration covers one taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.operator == "Exists":
        return toleration.key in {"", taint.key}
    return toleration.key == taint.key and toleration.value == taint.value


def holds(expression: Expression, value: str | None) -> bool:
    """Tell whether a node-affinity expression holds for a node's value of the label."""
    if expression.operator == "In":
        return value in expression.values
    if expression.operator == "NotIn":
        return value not in expression.values
    if expression.operator == "Exists":
        return value is not None
    if expression.operator == "DoesNotExist":
        return value is None
    if value is None or not value.lstrip("-").isdigit():
        return False
    bound = int(expression.values[0])
    return int(value) > bound if expression.operator == "Gt" else int(value) < bound


def home(domains: Domains, node: int, level: str) -> Identity | None:
    """Return the domain of a node at a level: all label values down to it, or None where one is missing."""
    values: list[str] = []
    for one in domains.topology.levels:
        value = domains.cluster.label(node, one.label)
        if value is None or is_null(one.label, value):
            return None
        values.append(value)
        if one.name == level:
            return tuple(values)
    raise AssertionError(level)


def extra(gang: Gang, domains: Domains, nodes: Mapping[str, str]) -> dict[str, int]:
    """Return what a placement costs: by level, the extra domains of preferred groups."""
    position = domains.cluster.position
    cost = dict.fromkeys(domains.topology.names, 0)
    for group in gang.walk():
        if not group.required:
            homes = [home(domains, position[nodes[task.name]], group.level) for task in group.all_tasks()]
            cost[group.level] += len(set(homes) - {None}) + homes.count(None) - 1
    return cost


def vector(domains: Domains, cost: Mapping[str, int]) -> Vector:
    """Order a cost by importance, the finest level first."""
    return tuple(cost.get(level, 0) for level in reversed(domains.topology.names))


def broken(gang: Gang, domains: Domains, nodes: Mapping[str, str]) -> Iterator[Group]:
    """Yield the required groups that the tasks placed so far already break."""
    position = domains.cluster.position
    for group in gang.walk():
        if group.required:
            where = [position[nodes[task.name]] for task in group.all_tasks() if task.name in nodes]
            homes = {home(domains, node, group.level) for node in where}
            if len(homes) > 1 or None in homes:
                yield group


def leaves(gang: Gang) -> Iterator[tuple[Path, Task]]:
    """Yield every task with the path of the group that holds it."""
    for task in gang.tasks:
        yield (), task
    for group in gang.walk():
        for task in group.tasks:
            yield group.path, task


def fits(shape: Shape, left: Mapping[str, int]) -> bool:
    """Tell whether one task of this shape fits what a node has left."""
    return left[PODS] >= 1 and all(left.get(name, 0) >= amount for name, amount in shape.requests)


def less(left: Mapping[str, int], shape: Shape) -> dict[str, int]:
    """Return what a node has left after taking one task of this shape, which fits."""
    rest = dict(left)
    for name, amount in ((PODS, 1), *shape.requests):
        rest[name] -= amount
    return rest


def every(
    gang: Gang, domains: Domains, anchors: Mapping[str, str], room: TwinCapacity = TwinCapacity.NOW
) -> Iterator[Vector]:
    """Enumerate every placement; yield what each costs.

    Tasks alike in shape and path stand next to each other and can trade places, so each goes where the one before it
    went or later.
    """

    def placements(
        tasks: Sequence[tuple[Path, Task]], nodes: Mapping[str, str], left: Sequence[Mapping[str, int]], first: int
    ) -> Iterator[Mapping[str, str]]:
        """Put the first task on every node from `first` on that can take it, and go on with the rest."""
        if any(broken(gang, domains, nodes)):
            return
        if not tasks:
            yield nodes
            return
        (path, task), *rest = tasks
        alike = bool(rest) and (rest[0][0], rest[0][1].shape) == (path, task.shape)
        for node in range(first, len(domains.cluster)):
            if fits(task.shape, left[node]) and accepts(domains, node, task.shape, room):
                then = [*left[:node], less(left[node], task.shape), *left[node + 1 :]]
                there = {**nodes, task.name: domains.cluster.names[node]}
                yield from placements(rest, there, then, node if alike else 0)

    waiting = [(path, task) for path, task in leaves(gang) if task.name not in anchors]
    waiting.sort(key=lambda leaf: (leaf[0], repr(leaf[1].shape)))
    for nodes in placements(waiting, anchors, spare(domains, room), 0):
        yield vector(domains, extra(gang, domains, nodes))


def best(
    gang: Gang, domains: Domains, anchors: Mapping[str, str], room: TwinCapacity = TwinCapacity.NOW
) -> Vector | None:
    """Return the least cost of all placements, or None when there is no placement."""
    return min(every(gang, domains, anchors, room), default=None)


def verify(
    gang: Gang,
    domains: Domains,
    found: TwinPlacement,
    anchors: Mapping[str, str] | None = None,
    room: TwinCapacity = TwinCapacity.NOW,
) -> list[str]:
    """Return every rule that a placement breaks, in words; an empty list means that it is right."""
    anchors = anchors or {}
    tasks = gang.all_tasks()
    position = domains.cluster.position
    if set(found.nodes) != {task.name for task in tasks}:
        odd = set(found.nodes) ^ {task.name for task in tasks}
        return [f"placed and asked for differ: {sorted(odd)}"]
    if strangers := set(found.nodes.values()) - set(position):
        return [f"no such nodes: {sorted(strangers)}"]

    wrong: list[str] = []
    taken: list[dict[str, int]] = [defaultdict(int) for _ in domains.cluster.names]
    for task in tasks:
        node = position[found.nodes[task.name]]
        if task.name in anchors:
            if anchors[task.name] != found.nodes[task.name]:
                wrong.append(f"{task.name} runs on {anchors[task.name]} and cannot be on {found.nodes[task.name]}")
            continue
        if not accepts(domains, node, task.shape, room):
            wrong.append(f"{task.name} may not be on {found.nodes[task.name]}")
        for name, amount in ((PODS, 1), *task.shape.requests):
            taken[node][name] += amount
    for name, left, load in zip(domains.cluster.names, spare(domains, room), taken, strict=True):
        wrong.extend(
            f"{name} has {left.get(resource, 0)} {resource} left and takes {amount}"
            for resource, amount in load.items()
            if amount > left.get(resource, 0)
        )
    wrong.extend(f"required group {group.path} is split" for group in broken(gang, domains, found.nodes))
    cost = extra(gang, domains, found.nodes)
    if unknown := set(found.extra) - set(cost):
        wrong.append(f"extra names unknown levels {sorted(unknown)}")
    if vector(domains, found.extra) != vector(domains, cost):
        wrong.append(f"extra says {dict(found.extra)}, the placement costs {cost}")
    return wrong
