"""The names in the PodCliqueSet of a graph deployment, as Dynamo makes them.

Grove builds the names of pods from those of the set, the scaling group and the clique, and leaves 45 characters for the
three together. The names of the components are the user's; that of the set is shortened to fit beside the longest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

BUDGET = 45
LEADER, WORKER = "ldr", "wkr"
_SHORTEST = 8


class ComponentNaming(Protocol):
    """The properties of a component that determine its names."""

    @property
    def name(self) -> str:
        """The component's name as the user wrote it."""

    @property
    def nodes(self) -> int:
        """The number of nodes that one replica spans."""

    @property
    def grouped(self) -> bool:
        """Whether the component becomes a scaling group."""


def unit_name(component: ComponentNaming) -> str:
    """Return the name of the clique or scaling group of a component."""
    return component.name.lower()


def clique_names(component: ComponentNaming) -> tuple[str, ...]:
    """Return the names of a component's cliques, the leader's first."""
    unit = unit_name(component)
    return (f"{unit}-{LEADER}", f"{unit}-{WORKER}") if component.nodes > 1 else (unit,)


def share(component: ComponentNaming) -> int:
    """Return how many characters of the budget a component takes."""
    group = len(unit_name(component)) if component.grouped else 0
    return group + max(len(name) for name in clique_names(component))


def set_name(graph: str, components: Sequence[ComponentNaming]) -> str:
    """Return the name of the PodCliqueSet: the graph's, shortened to the room that the longest component leaves."""
    left = max(BUDGET - max((share(component) for component in components), default=0), _SHORTEST)
    return fitted(graph, left)


def fitted(name: str, longest: int) -> str:
    """Return a name; one that is too long is cut and gets four digits of its FNV-1a hash."""
    if len(name) <= longest:
        return name
    mark = f"{fnv1a(name.encode()) & 0xFFFF:04x}"
    return f"{name[: longest - len(mark) - 1].rstrip('.')}-{mark}"


def fnv1a(data: bytes) -> int:
    """Return the 32-bit FNV-1a hash of some bytes."""
    found = 0x811C9DC5
    for byte in data:
        found = ((found ^ byte) * 0x01000193) & 0xFFFFFFFF
    return found
