"""The gangs of a PodCliqueSet: a base gang per replica of the set, and a follower for each further group replica.

The base gang holds the standalone cliques and the replicas of every scaling group up to its minAvailable; each replica
above that is a gang of its own, which starts only together with or after the base gang. Pods of a clique up to its
minAvailable are needed, the others optional. Every constraint applies to one instance: of the set, of a scaling group's
replica, of a clique.

The set's own constraint encloses the following gangs as well. It is the same group there, by its path, so a follower
shares the domain of its base gang.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coterie.errors import FieldError, Notice, SpecErrors
from coterie.frontends.grove.podcliqueset.model import Clique, Effective, PodCliqueSet, ScalingGroup
from coterie.frontends.kubernetes.objects import field_fault
from coterie.gang.tree import Gang, Group, Path, Shape, Task
from coterie.topology.levels import Topology

# More pods than this in one document are a typing error, or need another tool.
MOST_PODS = 20_000


@dataclass(frozen=True, slots=True)
class SetPod:
    """The pod of the set that a task is; `group` and `group_replica` are None for a standalone clique."""

    replica: int
    clique: Clique
    index: int
    group: ScalingGroup | None = None
    group_replica: int | None = None


@dataclass(frozen=True, slots=True)
class LoweredSet:
    """The gangs of a set, each base gang before its followers, with the pod of every task."""

    gangs: tuple[Gang, ...]
    seats: Mapping[str, SetPod]
    notices: tuple[Notice, ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    """The constraint of an instance: levels by index, -1 for none."""

    required: int = -1
    preferred: int = -1


@dataclass(frozen=True, slots=True)
class _Instance:
    """A set, a replica of a scaling group or a clique, with everything inside it."""

    name: str
    asked: _Asked
    inside: tuple[_Instance, ...] = ()
    tasks: tuple[Task, ...] = ()


def lower(pcs: PodCliqueSet, shapes: Mapping[str, Shape], topology: Topology) -> LoweredSet:
    """Return the gangs of a valid set, given the shape of each clique's pods; raise `SpecErrors` for too many pods."""
    if (pods := count_pods(pcs)) > MOST_PODS:
        hint = f"At most {MOST_PODS:,} can be planned at once; check the replicas of the set, its groups and cliques."
        fault = field_fault(FieldError.INVALID, ("spec", "replicas"), f"the set has {pods:,} pods", hint)
        raise SpecErrors(pcs.resource.located([fault]) if pcs.resource else [fault])
    lowering = _Lowering(pcs, shapes, topology)
    gangs = [gang for replica in range(pcs.replicas) for gang in lowering.gangs(replica)]
    if lowering.clashes:
        hint = "A clique of a scaling group is called SET-REPLICA-GROUP-REPLICA-CLIQUE; give one of them another name."
        faults = [
            field_fault(FieldError.INVALID, (*clique.path, "name"), f'the PodClique "{name}" would be made twice', hint)
            for name, clique in lowering.clashes.items()
        ]
        raise SpecErrors(pcs.resource.located(faults) if pcs.resource else faults)
    return LoweredSet(tuple(gangs), lowering.seats, tuple(lowering.notices()))


def count_pods(pcs: PodCliqueSet) -> int:
    """Return how many pods all replicas of a set have."""
    alone = sum(clique.replicas for clique in pcs.standalone)
    grouped = sum(
        max(group.replicas, group.min_available) * sum(clique.replicas for clique in pcs.members(group))
        for group in pcs.groups
    )
    return pcs.replicas * (alone + grouped)


@dataclass
class _Lowering:
    pcs: PodCliqueSet
    shapes: Mapping[str, Shape]
    topology: Topology
    seats: dict[str, SetPod] = field(default_factory=dict)
    clashes: dict[str, Clique] = field(default_factory=dict)
    _read_coarser: dict[str, str] = field(default_factory=dict)

    def gangs(self, replica: int) -> Iterator[Gang]:
        """Yield the base gang of one replica of the set, then its followers."""
        pcs = self.pcs
        base = f"{pcs.name}-{replica}"
        alone = (self._clique(clique, base, SetPod(replica, clique, 0)) for clique in pcs.standalone)
        needed = (
            self._replica(group, base, replica, number) for group in pcs.groups for number in range(group.min_available)
        )
        yield self._gang(base, base, (*alone, *needed))
        for group in pcs.groups:
            for number in range(group.min_available, group.replicas):
                inside = self._replica(group, base, replica, number)
                name = f"{base}-{group.name}-{number - group.min_available}"
                yield replace(self._gang(name, base, (inside,)), follows=base)

    def notices(self) -> Iterator[Notice]:
        """Yield a notice for each constraint that is applied differently from how it is written."""
        for owner, words in self._read_coarser.items():
            yield Notice("PreferenceRead", f"{owner} prefers {words}")
        if not self.pcs.replicas:
            yield Notice("NoReplicas", f'"{self.pcs.name}" has spec.replicas 0: there is nothing to place')

    def _gang(self, name: str, base: str, inside: tuple[_Instance, ...]) -> Gang:
        whole = self._settled(_Instance(base, self._asked(self.pcs.effective()), inside))
        groups, tasks = self._tree(whole, (), -1)
        ranks = {task.name: rank for rank, task in enumerate(_tasks(whole))}
        return _ranked(Gang(name, groups, tasks), ranks)

    def _replica(self, group: ScalingGroup, base: str, replica: int, number: int) -> _Instance:
        name = f"{base}-{group.name}-{number}"
        members = (
            self._clique(clique, name, SetPod(replica, clique, 0, group, number)) for clique in self.pcs.members(group)
        )
        return _Instance(name, self._asked(self.pcs.effective(group)), tuple(members))

    def _clique(self, clique: Clique, owner: str, seat: SetPod) -> _Instance:
        name = f"{owner}-{clique.name}"
        shape = self.shapes[clique.name]
        tasks: list[Task] = []
        if f"{name}-0" in self.seats:
            self.clashes.setdefault(name, clique)
        for index in range(clique.replicas):
            # A clique needs its minimum, so a smaller run would be incomplete.
            needed = index < clique.min_available
            tasks.append(Task(f"{name}-{index}", shape, needed=needed, clique=name, spare=False))
            self.seats[tasks[-1].name] = replace(seat, index=index)
        return _Instance(name, self._asked(self.pcs.effective(clique)), tasks=tuple(tasks))

    def _asked(self, effective: Effective | None) -> _Asked:
        if effective is None:
            return _Asked()
        levels = (effective.required, effective.preferred)
        required, preferred = (self.topology.index(level) if level else -1 for level in levels)
        # Tasks that must share a domain share every coarser one as well.
        return _Asked(required, preferred if preferred > required else -1)

    def _settled(self, whole: _Instance) -> _Instance:
        """Move a preference that is finer than a requirement inside it to where it can be satisfied.

        Cliques that each need one zone cannot all share a host; they can share a zone together, and a host each.
        """
        finest = whole.asked.preferred
        coarsest = min((level for level in _required(whole.inside) if level < finest), default=-1)
        if coarsest < 0:
            return replace(whole, inside=tuple(map(self._settled, whole.inside)))
        names = self.topology.names
        self._read_coarser[whole.name] = (
            f"{names[finest]}, but parts of it require {names[coarsest]}: read as {names[coarsest]} for the whole and "
            f"{names[finest]} for each part"
        )
        kept = _Asked(whole.asked.required, coarsest if coarsest > whole.asked.required else -1)
        return replace(whole, asked=kept, inside=tuple(self._settled(_preferring(one, finest)) for one in whole.inside))

    def _tree(self, instance: _Instance, path: Path, bound: int) -> tuple[tuple[Group, ...], tuple[Task, ...]]:
        """Return the groups and tasks of an instance below a path whose finest required level is `bound`."""
        asked = instance.asked
        levels: list[tuple[int, bool]] = []
        if asked.required >= 0:
            levels.append((asked.required, True))
        if asked.preferred > max(bound, asked.required):
            levels.append((asked.preferred, False))
        lower = path
        for level, _ in levels:
            lower = (*lower, (self.topology.names[level], instance.name))
        groups: tuple[Group, ...] = ()
        tasks = instance.tasks
        for one in instance.inside:
            more, loose = self._tree(one, lower, max(bound, asked.required))
            groups, tasks = (*groups, *more), (*tasks, *loose)
        for depth in range(len(levels), 0, -1):
            here = lower[: len(path) + depth]
            groups, tasks = (Group(here, levels[depth - 1][1], groups, tasks),), ()
        return groups, tasks


def _required(instances: Iterable[_Instance]) -> Iterator[int]:
    for instance in instances:
        if instance.asked.required >= 0:
            yield instance.asked.required
        yield from _required(instance.inside)


def _preferring(instance: _Instance, level: int) -> _Instance:
    """Return an instance that also prefers a level, unless it already prefers one or requires one as fine."""
    asked = instance.asked
    if asked.preferred >= 0 or asked.required >= level:
        return instance
    return replace(instance, asked=replace(asked, preferred=level))


def _tasks(instance: _Instance) -> Iterator[Task]:
    yield from instance.tasks
    for one in instance.inside:
        yield from _tasks(one)


def _ranked(gang: Gang, ranks: Mapping[str, int]) -> Gang:
    def tasks(found: Sequence[Task]) -> tuple[Task, ...]:
        return tuple(replace(task, rank=ranks[task.name]) for task in found)

    def descend(group: Group) -> Group:
        return replace(group, groups=tuple(map(descend, group.groups)), tasks=tasks(group.tasks))

    return replace(gang, groups=tuple(map(descend, gang.groups)), tasks=tasks(gang.tasks))
