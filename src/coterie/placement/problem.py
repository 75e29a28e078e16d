"""A gang compiled to integers: shapes, classes of equal tasks, and the tree of branches above them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

from coterie.gang.tree import Gang, Group, Shape, Task
from coterie.topology.cluster import by_name
from coterie.topology.domains import Domains

ROOT = 0


@dataclass(frozen=True, slots=True)
class Class:
    """Tasks of one shape at one place in the tree: only their number matters."""

    branch: int
    shape: int
    tasks: tuple[Task, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.tasks)


@dataclass(frozen=True, slots=True)
class Branch:
    """A node of the constraint tree; branch 0 is the root, which constrains nothing.

    `anchored` holds the domain of every task below that already runs, -1 for one outside every domain; `homes` are the
    domains among them.
    """

    level: int
    required: bool
    parent: int
    group: Group | None = None
    anchored: tuple[int, ...] = ()
    homes: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be placed. Branches come parents first; anchored tasks (task -> position) are in no class."""

    shapes: tuple[Shape, ...]
    classes: tuple[Class, ...]
    branches: tuple[Branch, ...]
    anchors: Mapping[str, int]
    names: tuple[str, ...]  # of all tasks, in the order the user listed them
    outlines: dict[frozenset[int], Any] = field(
        default_factory=dict, compare=False
    )  # kept for whoever asks about it again

    def preferred_levels(self) -> list[int]:
        """Levels on which something is preferred, finest first: the order of the objective."""
        return sorted({branch.level for branch in self.branches[1:] if not branch.required}, reverse=True)


def compile_gang(gang: Gang, domains: Domains, anchors: Mapping[str, int]) -> Problem:
    """Compile a gang; `anchors` gives the position of the node of each task that already runs.

    Shapes and groups are put in an order of their own, so that the order in which a user lists them changes nothing.
    """
    distinct = {id(task.shape): task.shape for task in gang.all_tasks() if task.name not in anchors}
    shapes = sorted(set(distinct.values()), key=_shape_key)
    number_of = {shape: number for number, shape in enumerate(shapes)}
    # Shapes are shared objects: each is looked up once, not once per task.
    numbers = {identity: number_of[shape] for identity, shape in distinct.items()}
    classes: list[Class] = []
    branches: list[Branch] = [Branch(level=-1, required=True, parent=-1)]

    def sort_in(tasks: Sequence[Task], branch: int) -> None:
        by_shape: dict[int, list[Task]] = {}
        for task in tasks:
            if task.name not in anchors:
                by_shape.setdefault(numbers[id(task.shape)], []).append(task)
        classes.extend(Class(branch, shape, tuple(by_shape[shape])) for shape in sorted(by_shape))

    def descend(groups: Iterable[Group], parent: int) -> None:
        for group in sorted(groups, key=_group_key):
            level = domains.topology.index(group.level)
            tier = domains.tiers[level]
            at: tuple[int, ...] = ()
            if anchors:
                at = tuple(int(tier.of[anchors[task.name]]) for task in group.all_tasks() if task.name in anchors)
            homes = frozenset(domain for domain in at if domain >= 0)
            branches.append(Branch(level, group.required, parent, group, at, homes))
            number = len(branches) - 1
            sort_in(group.tasks, number)
            descend(group.groups, number)

    descend(gang.groups, ROOT)
    sort_in(gang.tasks, ROOT)
    names = tuple(task.name for task in gang.all_tasks())
    return Problem(tuple(shapes), tuple(classes), tuple(branches), anchors, names)


def _shape_key(shape: Shape) -> tuple[object, ...]:
    return (
        shape.requests,
        shape.selector,
        tuple(map(astuple, shape.tolerations)),
        tuple(tuple(map(astuple, term)) for term in shape.affinity),
        tuple(sorted(shape.excluded)),
    )


def _group_key(group: Group) -> tuple[object, ...]:
    level, name = group.path[-1]
    return level, by_name(name)
