"""The constraint tree: an inner node places all tasks below it in one domain of its level; leaves are tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from coterie.topology.cluster import gpu_count

Path = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's toleration; an empty key with `Exists` tolerates everything, an empty effect every effect.

    An `assumed` toleration is not in the manifest: Kubernetes adds it to pods that request the resource of that name.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Expression:
    """One node-affinity expression: In, NotIn, Exists, DoesNotExist, Gt or Lt on a label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shape:
    """The properties of a task that decide which nodes are feasible; tasks of one shape are interchangeable.

    `requests` is sorted by name and holds only positive amounts: cpu in thousandths, memory and storage in bytes,
    everything else in pieces. `affinity` is a list of alternatives, each a list of expressions that must all hold.
    """

    requests: tuple[tuple[str, int], ...] = ()
    selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    affinity: tuple[tuple[Expression, ...], ...] = ()
    excluded: frozenset[str] = frozenset()

    def amount(self, resource: str) -> int:
        """Return the amount of a resource that one task requests."""
        return dict(self.requests).get(resource, 0)

    @property
    def gpus(self) -> int:
        """The number of GPUs, of any vendor, that one task requests."""
        return gpu_count(self.requests)


@dataclass(frozen=True, slots=True)
class Task:
    """A leaf: one pod. `rank` is its position in the gang as the user listed it.

    A task that is not `needed` is optional: the gang starts without it where capacity is short, and where it is placed
    it obeys every constraint of its groups. Tasks of one `clique` are interchangeable; a backend that counts needed
    tasks counts each clique separately. A `spare` task is one of several copies that a smaller run of the same workload
    could leave out: nothing else refers to it, and the workload does not state the number of tasks anywhere.
    """

    name: str
    shape: Shape
    rank: int = 0
    needed: bool = True
    clique: str = ""
    spare: bool = True


@dataclass(frozen=True, slots=True)
class Group:
    """An inner node: the tasks below share one domain at `level`, either required or preferred.

    `path` is the node's identity, ((level, group), …) from the coarsest down. A group's level is its parent's or a
    finer one. A constraint that is required at one level and preferred at a finer one is two groups, one inside the
    other.
    """

    path: Path
    required: bool
    groups: tuple[Group, ...] = ()
    tasks: tuple[Task, ...] = ()

    @property
    def level(self) -> str:
        """The level of the domain that the tasks below share."""
        return self.path[-1][0]

    def all_tasks(self) -> Iterator[Task]:
        """Yield every task at or below this node."""
        yield from self.tasks
        for group in self.groups:
            yield from group.all_tasks()

    def walk(self) -> Iterator[Group]:
        """Yield this node and all below it, parents first."""
        yield self
        for group in self.groups:
            yield from group.walk()


@dataclass(frozen=True, slots=True)
class Gang:
    """Tasks of which either all needed ones start or none; those outside every group may run on any node.

    A gang that `follows` another of the same workload starts with it or after it, never before. A group that both gangs
    have, by its path, is one group: the follower's tasks share the domain of the other gang's tasks.
    """

    name: str
    groups: tuple[Group, ...] = ()
    tasks: tuple[Task, ...] = field(default=())
    follows: str = ""

    def all_tasks(self) -> tuple[Task, ...]:
        """Return every task, in the order the user listed them."""
        found = list(self.tasks)
        for group in self.groups:
            found.extend(group.all_tasks())
        return tuple(sorted(found, key=lambda task: task.rank))

    def walk(self) -> Iterator[Group]:
        """Yield every group, parents before children."""
        for group in self.groups:
            yield from group.walk()
