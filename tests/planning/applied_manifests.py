"""Remedies applied for real: the gang and the cluster are rebuilt, and the engine is asked again.

This shares no code with the engine's own check of a remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coterie.gang.rules import RequestedTask, TaskRequirement, build
from coterie.gang.tree import Gang, Path, Task
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, place
from coterie.placement.refusal import WayOut
from coterie.placement.whatif import AllowExcluded, Change, Coarsen, Keep, Prefer, Release, Tolerate, Uncordon
from coterie.topology.cluster import Cluster, Node, Pod
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology
from tests.placement.twin import TwinCapacity, leaves, verify


@dataclass(frozen=True)
class Case:
    """A gang that was refused, and all that the refusal depends on."""

    gang: Gang
    topology: Topology
    nodes: Sequence[Node]
    pods: Sequence[Pod] = ()
    anchors: Mapping[str, str] = field(default_factory=dict)
    room: TwinCapacity = TwinCapacity.NOW

    def domains(self) -> Domains:
        """Return the cluster seen through the topology."""
        return Domains.of(Cluster.of(self.nodes, self.pods), self.topology)


def failings(way: WayOut, case: Case) -> list[str]:
    """Return what is wrong with a way out: it places nothing, or places it wrongly; an empty list if it works."""
    changed = after(way.change, case)
    names = {task.name for task in changed.gang.all_tasks()}
    anchors = {task: node for task, node in case.anchors.items() if task in names}
    domains = changed.domains()
    room = case.room if way.now else TwinCapacity.EMPTY
    capacity = Capacity.now(domains) if room is TwinCapacity.NOW else Capacity.empty(domains)
    if room is TwinCapacity.EMPTY:
        for task in changed.gang.all_tasks():
            if task.name in anchors:
                capacity.take(task.shape, [domains.position[anchors[task.name]]], [1])
    found = place(changed.gang, capacity, anchors=anchors)
    if not isinstance(found, Found):
        return [f"{way} does not place the gang"]
    return verify(changed.gang, domains, found, anchors, room)


def after(change: Change, case: Case) -> Case:
    """Return the case as it is when a change has come about."""
    match change:
        case Prefer(level):
            return _rewritten(case, lambda one: replace(one, required=False) if one.key == level else one)
        case Coarsen(level, to):
            return _rewritten(case, lambda one: replace(one, key=to) if one.key == level else one)
        case Keep(name, path, count):
            if name != case.gang.name:
                return case
            inside = [task for at, task in leaves(case.gang) if at[: len(path)] == path]
            gone = {task.name for task in sorted(inside, key=lambda task: task.rank)[count:]}
            return _retold(case, [one for one in _told(case) if one[0].name not in gone])
        case AllowExcluded():
            return _retold(
                case,
                [
                    (replace(task, shape=replace(task.shape, excluded=frozenset())), wants)
                    for task, wants in _told(case)
                ],
            )
        case Release(owner):
            return replace(case, pods=[pod for pod in case.pods if pod.daemon or pod.owner != owner])
        case Uncordon(nodes):
            return replace(
                case, nodes=[replace(node, cordoned=False) if node.name in nodes else node for node in case.nodes]
            )
        case Tolerate(keys):
            return replace(
                case,
                nodes=[
                    replace(node, taints=tuple(taint for taint in node.taints if taint.key not in keys))
                    for node in case.nodes
                ],
            )


_Told = tuple[Task, tuple[TaskRequirement, ...]]


def _told(case: Case) -> list[_Told]:
    """Return every task with its list of requirements; a group is named by its whole path.

    A user writes the last name of the path alone. Groups of that name below different groups would become one where a
    change takes a level of the path away.
    """
    kinds: dict[Path, bool] = {group.path: group.required for group in case.gang.walk()}
    return sorted(
        (
            (
                task,
                tuple(
                    TaskRequirement(key, repr(path[: depth + 1]), kinds[path[: depth + 1]])
                    for depth, (key, _) in enumerate(path)
                ),
            )
            for path, task in leaves(case.gang)
        ),
        key=lambda one: one[0].rank,
    )


def _retold(case: Case, told: Sequence[_Told]) -> Case:
    asked = [RequestedTask(task.name, task.shape, wants) for task, wants in told]
    return replace(case, gang=build(case.gang.name, asked, case.topology))


def _rewritten(case: Case, change: Callable[[TaskRequirement], TaskRequirement]) -> Case:
    """Return the case with every requirement changed; several of one level all hold."""
    return _retold(case, [(task, tuple(map(change, wants))) for task, wants in _told(case)])
