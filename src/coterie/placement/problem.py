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
    """Tasks of one shape at one position of the tree: only their number matters."""

    branch: int
    shape: int
    names: tuple[str, ...]  # of the tasks

    @property
    def count(self) -> int:
        """The number of tasks."""
        return len(self.names)


@dataclass(frozen=True, slots=True)
class Branch:
    """A node of the constraint tree; branch 0 is the root, which constrains nothing.

    `anchored` holds the domain of every running task below, -1 for one outside every domain; `homes` are the domains
    among them. An implied branch stands for levels without a constraint, coarsest first: the tasks below it are better
    placed in few domains of them, but this is only a tie-break. `near` are the nodes of running tasks below it.
    """

    level: int
    required: bool
    parent: int
    group: Group | None = None
    anchored: tuple[int, ...] = ()
    homes: frozenset[int] = frozenset()
    implied: tuple[int, ...] = ()
    near: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """The tasks to be placed; branches come parents first, and anchored tasks (task -> position) are in no class."""

    shapes: tuple[Shape, ...]
    classes: tuple[Class, ...]
    branches: tuple[Branch, ...]
    anchors: Mapping[str, int]
    names: tuple[str, ...]  # of all tasks, in the order the user listed them
    unmentioned: tuple[int, ...] = ()  # levels that separate groups of nodes and that no group constrains
    outlines: dict[tuple[frozenset[int], bool], Any] = field(
        default_factory=dict, compare=False
    )  # cached for repeated requests

    def preferred_levels(self) -> list[int]:
        """Return the levels of preferred groups, finest first: the order of the objective."""
        return sorted(
            {branch.level for branch in self.branches[1:] if not branch.required and not branch.implied}, reverse=True
        )

    @property
    def implies(self) -> bool:
        """Whether there is an implied branch."""
        return any(branch.implied for branch in self.branches)


def compile_gang(gang: Gang, domains: Domains, anchors: Mapping[str, int]) -> Problem:
    """Compile a gang; `anchors` gives the position of the node of each running task.

    Shapes and groups are sorted, so that the order in which a user lists them changes nothing.
    """
    every = gang.all_tasks()
    distinct = {id(task.shape): task.shape for task in every if task.name not in anchors}
    shapes = sorted(set(distinct.values()), key=_shape_key)
    number_of = {shape: number for number, shape in enumerate(shapes)}
    # Shapes are shared objects: each is looked up once, not once per task.
    numbers = {identity: number_of[shape] for identity, shape in distinct.items()}
    classes: list[Class] = []
    branches: list[Branch] = [Branch(level=-1, required=True, parent=-1)]

    mentioned = {domains.topology.index(group.level) for group in gang.walk()}
    unmentioned = tuple(level for level in domains.groupings if level not in mentioned)

    def sort_in(tasks: Sequence[Task], branch: int) -> None:
        by_shape: dict[int, list[str]] = {}
        for task in tasks:
            if task.name not in anchors:
                by_shape.setdefault(numbers[id(task.shape)], []).append(task.name)
        classes.extend(Class(branch, shape, tuple(by_shape[shape])) for shape in sorted(by_shape))

    def descend(groups: Sequence[Group], tasks: Sequence[Task], parent: int, free: Sequence[int]) -> None:
        """Add groups and tasks below a branch, the finer ones below an implied branch for the levels in between."""
        if not groups and len(shapes) < 2:
            # The common case: no implied branch is needed, and nothing is below.
            sort_in(tasks, parent)
            return
        by_level = [(domains.topology.index(group.level), group) for group in sorted(groups, key=_group_key)]
        coarsest = min((level for level, _ in by_level), default=len(domains.tiers))
        between = tuple(level for level in free if level < coarsest)
        # A single group, or tasks of one shape, use few domains without an implied branch.
        if between and len(groups) + len({numbers[id(task.shape)] for task in tasks if task.name not in anchors}) > 1:
            near = _near(groups, tasks, anchors)
            branches.append(Branch(between[-1], required=False, parent=parent, implied=between, near=near))
            parent = len(branches) - 1
        for level, group in by_level:
            if level == coarsest:
                hang(level, group, parent)
        finer = [group for level, group in by_level if level > coarsest]
        if finer:
            descend(finer, tasks, parent, [level for level in free if level > coarsest])
        else:
            sort_in(tasks, parent)

    def hang(level: int, group: Group, parent: int) -> None:
        tier = domains.tiers[level]
        at: tuple[int, ...] = ()
        if anchors:
            at = tuple(int(tier.of[anchors[task.name]]) for task in group.all_tasks() if task.name in anchors)
        homes = frozenset(domain for domain in at if domain >= 0)
        branches.append(Branch(level, group.required, parent, group, at, homes))
        descend(group.groups, group.tasks, len(branches) - 1, [other for other in unmentioned if other > level])

    descend(gang.groups, gang.tasks, ROOT, unmentioned)
    names = tuple([task.name for task in every])
    return Problem(tuple(shapes), tuple(classes), tuple(branches), anchors, names, unmentioned)


def _near(groups: Iterable[Group], tasks: Iterable[Task], anchors: Mapping[str, int]) -> tuple[int, ...]:
    """Return the nodes on which some of these tasks run."""
    if not anchors:
        return ()
    every = [*tasks, *(task for group in groups for task in group.all_tasks())]
    return tuple(sorted({anchors[task.name] for task in every if task.name in anchors}))


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
