"""Hypothetical changes to a gang or to the cluster that the engine can evaluate: the vocabulary of remedies.

A change is a value. The same one is tried by the explanation and offered as an option of `coterie plan`, so every
remedy can be verified by its reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from coterie.gang import edits
from coterie.gang.tree import Gang, Path
from coterie.placement.capacity import Capacity
from coterie.placement.option import Option
from coterie.topology.levels import Topology


@dataclass(frozen=True, slots=True)
class Prefer:
    """Make a required level preferred."""

    level: str


@dataclass(frozen=True, slots=True)
class Coarsen:
    """Require the next coarser level, `to`, instead."""

    level: str
    to: str


@dataclass(frozen=True, slots=True)
class Keep:
    """Run with only the first tasks of a group; an empty path means the whole gang."""

    gang: str
    path: Path
    count: int


@dataclass(frozen=True, slots=True)
class AllowExcluded:
    """Allow the nodes that the user excluded."""


@dataclass(frozen=True, slots=True)
class Release:
    """Wait until a holder's pods are gone."""

    owner: str


@dataclass(frozen=True, slots=True)
class Uncordon:
    """Put nodes back into service."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tolerate:
    """Let the tasks run on nodes with taints of these keys."""

    keys: tuple[str, ...]


Change = Prefer | Coarsen | Keep | AllowExcluded | Release | Uncordon | Tolerate


def options(change: Change) -> tuple[Option, ...]:
    """Return the parameters that ask about a change."""
    match change:
        case Prefer(level):
            return (Option("prefer", level),)
        case Coarsen(level, _):
            return (Option("coarsen", level),)
        case Keep(gang, path, number):
            return (Option("tasks", f"{'/'.join([gang, *(f'{level}:{name}' for level, name in path)])}={number}"),)
        case Release(owner):
            return (Option("without", owner),)
        case Uncordon(nodes):
            return tuple(Option("uncordon", node) for node in nodes)
        case Tolerate(keys):
            return tuple(Option("tolerate", key) for key in keys)
        case AllowExcluded():
            return (Option("allow_excluded"),)


def relaxations(gang: Gang, topology: Topology) -> Iterator[Prefer | Coarsen]:
    """Yield relaxations of one required level, the coarsest first, since finer constraints are worth more."""
    required = {group.level for group in gang.walk() if group.required}
    coarser = None
    for level in topology.names:
        if level in required:
            yield Prefer(level)
            if coarser is not None:
                yield Coarsen(level, coarser)
        coarser = level


def changed_gang(change: Change, gang: Gang, topology: Topology) -> Gang | None:
    """Return the gang after a change, or None when the change does not apply to it."""
    match change:
        case Prefer(level):
            return edits.prefer(gang, level)
        case Coarsen(level, _):
            return edits.coarsen(gang, level, topology)
        case Keep(name, path, count):
            return edits.keep(gang, path, count) if name == gang.name else gang
        case AllowExcluded():
            return edits.without_exclusions(gang)
        case Tolerate(keys):
            return edits.tolerating(gang, keys)
        case _:
            return gang


def changed_capacity(change: Change, capacity: Capacity) -> Capacity:
    """Return the capacity after a change; the given capacity is left unchanged."""
    match change:
        case Release(owner):
            cluster = capacity.domains.cluster
            freed = cluster.held(
                index for index, pod in enumerate(cluster.pods) if pod.owner == owner and not pod.daemon
            )
            capacity = capacity.copy()
            capacity.give(freed[:, capacity.domains.order])
        case Uncordon(nodes):
            capacity = capacity.copy()
            capacity.open(capacity.domains.position[node] for node in nodes)
        case _:
            pass
    return capacity
