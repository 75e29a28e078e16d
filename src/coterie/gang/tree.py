"""The constraint tree: inner nodes say "all below me share one domain at this level", leaves are tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

Path = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's toleration; an empty key with `Exists` tolerates everything, an empty effect every effect.

    One that is `assumed` was written by nobody: Kubernetes adds it to pods that ask for the resource of that name.
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
    """All about a task that decides which nodes can take it; tasks of one shape are interchangeable.

    `requests` is sorted by name and holds only positive amounts: cpu in thousandths, memory and storage in bytes,
    everything else in pieces. `affinity` is a list of alternatives, each a list of expressions that must all hold.
    """

    requests: tuple[tuple[str, int], ...] = ()
    selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    affinity: tuple[tuple[Expression, ...], ...] = ()
    excluded: frozenset[str] = frozenset()

    def amount(self, resource: str) -> int:
        """Return how much of a resource one task asks for."""
        return dict(self.requests).get(resource, 0)


@dataclass(frozen=True, slots=True)
class Task:
    """A leaf: one pod. `rank` is its place in the gang as the user listed it.

    A task that is not `needed` is wanted: the gang starts without it where there is no room, and where there is, it
    keeps every constraint of the groups it is in. Tasks of one `clique` stand in for each other; a back end that counts
    what is needed counts each clique by itself. A `spare` task is one of several copies, so that a smaller run of the
    same workload could leave it out: nothing else refers to it, and no number of tasks is written down.
    """

    name: str
    shape: Shape
    rank: int = 0
    needed: bool = True
    clique: str = ""
    spare: bool = True


@dataclass(frozen=True, slots=True)
class Group:
    """An inner node: the tasks below share one domain at `level`, as a promise or as a wish.

    `path` is the node's identity, ((level, group), …) from the coarsest down. A group's level is its parent's or a
    finer one. What is both required at one level and preferred at a finer one is two groups, one inside the other.
    """

    path: Path
    required: bool
    groups: tuple[Group, ...] = ()
    tasks: tuple[Task, ...] = ()

    @property
    def level(self) -> str:
        """The level at which the tasks below are together."""
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
    """Tasks of which all that are needed start or none; those outside every group may go anywhere.

    A gang that `follows` another of the same workload starts beside it and never before it. A group of both gangs, by
    its path, is one group: the follower's tasks go where those of the other gang are.
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
