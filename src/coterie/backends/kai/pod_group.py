"""The PodGroup of a constraint tree: one constraint, and parts below it.

A PodGroup and each of its subgroups have at most one required and one preferred level, so a chain of single children
folds into one part: its finest required level implies the coarser ones, and a preference counts where it is finer than
that. Where the tree branches, parts have subparts. Tasks are in leaves only.

A leaf states how many of its tasks must start, not which: where some are optional, each clique is a leaf.

Two properties of KAI shape the result. It places siblings in the order of their names, those with subgroups before
those with pods, without backtracking; so the hardest to place gets the first name, and a subgroup around its pods where
others with subgroups come later. The hardest sibling is the one with the most tasks that must share one domain, because
tasks that may be split over several domains are easier to place. And KAI looks for a required level only at or below
the domain that all nodes have in common, unless a preferred level stops it earlier; so a requirement without a
preference below it is given one, for the next finer level, which forbids nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from coterie.backends.shared.names import LONGEST, free_name, shortened
from coterie.gang.tree import Gang, Group, Path, Task
from coterie.topology.cluster import CPU, GPU, MEMORY
from coterie.topology.levels import Topology


@dataclass(frozen=True, slots=True)
class LevelConstraint:
    """Levels by name: the tasks share one domain of the first, and preferably one of the second."""

    required: str | None = None
    preferred: str | None = None

    def __bool__(self) -> bool:
        return self.required is not None or self.preferred is not None


@dataclass(frozen=True, slots=True)
class PodGroupPart:
    """A PodGroup, whose name is empty, or a subgroup; it has either parts or tasks, never both.

    `path` is the lowest node of the tree that was folded into it; tasks beside parts have the path of their parent.
    """

    constraint: LevelConstraint = LevelConstraint()
    parts: tuple[PodGroupPart, ...] = ()
    tasks: tuple[Task, ...] = ()
    path: Path = ()
    name: str = ""

    @property
    def called(self) -> str:
        """The name of the part for users: level and group name, empty for a whole gang."""
        return f'{self.path[-1][0]} group "{self.path[-1][1]}"' if self.path else ""

    def walk(self, parent: str = "") -> Iterator[tuple[PodGroupPart, str]]:
        """Yield this part and all below it, each with the name of its parent, parents first."""
        yield self, parent
        for part in self.parts:
            yield from part.walk(self.name)

    def all_tasks(self) -> Iterator[Task]:
        """Yield every task at or below this part."""
        yield from self.tasks
        for part in self.parts:
            yield from part.all_tasks()


def pod_group_of(gang: Gang, topology: Topology) -> PodGroupPart:
    """Return the PodGroup of a gang, with subgroups where the tree branches."""
    whole = len(gang.groups) == 1 and not gang.tasks
    root = (
        _part(gang.groups[0], topology)
        if whole
        else _branched(LevelConstraint(), (), gang.groups, gang.tasks, topology)
    )
    return _named(root, {""})


def size(part: PodGroupPart) -> tuple[int, ...]:
    """Return a sort key for the size of a part: GPUs first, then pods, processors and memory."""
    tasks = list(part.all_tasks())
    gpus, cpus, memory = (sum(task.shape.amount(name) for task in tasks) for name in (GPU, CPU, MEMORY))
    return gpus, len(tasks), cpus, memory


def needed(part: PodGroupPart) -> int:
    """Return how many tasks of a part must start for any to start."""
    return sum(task.needed for task in part.all_tasks())


def is_bound(part: PodGroupPart) -> bool:
    """Return whether anything is required at or below a part."""
    return any(found.constraint.required is not None for found, _ in part.walk())


def _part(group: Group, topology: Topology) -> PodGroupPart:
    chain = [group]
    while len(chain[-1].groups) == 1 and not chain[-1].tasks:
        chain.append(chain[-1].groups[0])
    last = chain[-1]
    return _branched(_constraint(chain, topology), last.path, last.groups, last.tasks, topology)


def _branched(
    constraint: LevelConstraint, path: Path, groups: Sequence[Group], tasks: tuple[Task, ...], topology: Topology
) -> PodGroupPart:
    leaves = _leaves(tasks, path)
    if not groups and len(leaves) < 2:
        return PodGroupPart(constraint, tasks=tasks, path=path)
    parts = [*(_part(group, topology) for group in groups), *leaves]
    parts.sort(key=lambda part: _turn(part, topology))
    last = max((index for index, part in enumerate(parts) if part.parts), default=0)
    early = [_wrapped(part) if part.tasks else part for part in parts[:last]]
    return PodGroupPart(constraint, parts=(*early, *parts[last:]), path=path)


def _leaves(tasks: tuple[Task, ...], path: Path) -> list[PodGroupPart]:
    """Return the leaves for tasks outside every group."""
    if all(task.needed for task in tasks):
        return [PodGroupPart(tasks=tasks, path=path)] if tasks else []
    cliques: dict[str, list[Task]] = {}
    for task in tasks:
        cliques.setdefault(task.clique, []).append(task)
    return [PodGroupPart(tasks=tuple(found), path=path) for found in cliques.values()]


def _wrapped(leaf: PodGroupPart) -> PodGroupPart:
    return replace(leaf, parts=(PodGroupPart(tasks=leaf.tasks, path=leaf.path),), tasks=())


def _turn(part: PodGroupPart, topology: Topology) -> tuple[int, ...]:
    """Return the sort key of siblings: those that must be together before those that may be apart.

    Of siblings with requirements, the one with the largest piece for one domain comes first, and of equal pieces the
    one that needs the finer level; then the largest.
    """
    freedom = 0 if is_bound(part) else 1 if any(found.constraint for found, _ in part.walk()) else 2
    whole = (*(-amount for amount in size(part)), 0 if part.parts else 1)
    pieces = (
        (*(-amount for amount in size(piece)), -topology.index(piece.constraint.required))
        for piece in _undivided(part)
        if piece.constraint.required is not None
    )
    return (freedom, *min(pieces, default=(0,) * 5), *whole)


def _undivided(part: PodGroupPart) -> Iterator[PodGroupPart]:
    """Yield the parts, this one or below it, that require one domain for all their tasks, and nothing finer inside."""
    if not any(is_bound(below) for below in part.parts):
        yield part
    for below in part.parts:
        yield from _undivided(below)


def _constraint(chain: Sequence[Group], topology: Topology) -> LevelConstraint:
    required = next((group.level for group in reversed(chain) if group.required), None)
    preferred = next((group.level for group in reversed(chain) if not group.required), None)
    if required is None:
        return LevelConstraint(preferred=preferred)
    if preferred is not None and topology.index(preferred) > topology.index(required):
        return LevelConstraint(required, preferred)
    finer = topology.names[topology.index(required) + 1 :]
    return LevelConstraint(required, finer[0] if finer else None)


def _named(part: PodGroupPart, taken: set[str]) -> PodGroupPart:
    """Return all parts below one with names, numbered in the order in which they are to be placed."""
    width = len(str(len(part.parts) - 1))
    named = []
    for index, below in enumerate(part.parts):
        # A constraint comes from the tree; tasks without a group are either the whole gang or its remainder.
        words = below.path[-1] if below.path != part.path else _rest(part, below)
        wanted = f"{index:0{width}}-{shortened(words, 2 * LONGEST)}".rstrip("-")
        steps = [text for step in below.path for text in step]
        name = free_name(wanted, taken, str(index), *steps)
        taken.add(name)
        named.append(_named(replace(below, name=name), taken))
    return replace(part, parts=tuple(named))


def _rest(part: PodGroupPart, below: PodGroupPart) -> tuple[str, ...]:
    if len({task.clique for task in below.tasks}) == 1 and below.tasks[0].clique:
        return (below.tasks[0].clique,)
    return ("rest" if len(part.parts) > 1 else "all",)
