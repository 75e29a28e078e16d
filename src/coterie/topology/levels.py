"""Levels and topologies: the names an admin gives to the levels of the physical hierarchy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from coterie.errors import Fault

HOSTNAME = "kubernetes.io/hostname"
MAX_LEVELS = 16

# Kubernetes' syntax for the name part of a label key and for a non-empty label value; level names follow it too.
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_LABEL_PREFIX = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the hierarchy: a short name for a node label."""

    name: str
    label: str


@dataclass(frozen=True, slots=True)
class Topology:
    """An ordered list of levels, coarsest first, and their names; built only from pairs without `level_faults`."""

    levels: tuple[Level, ...] = ()
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(level.name for level in self.levels))

    def index(self, name: str) -> int:
        """Return the position of a level; 0 is the coarsest."""
        return self.names.index(name)

    def label(self, name: str) -> str:
        """Return the node label behind a level."""
        return self.levels[self.index(name)].label

    @staticmethod
    def of(*pairs: tuple[str, str]) -> Topology:
        """Build a topology from (name, label) pairs that are known to be valid."""
        return Topology(tuple(Level(name, label) for name, label in pairs))


def label_fault(label: str) -> str:
    """Return the fault of a label key by Kubernetes' syntax, or an empty string."""
    prefix, slash, name = label.rpartition("/")
    if slash and not prefix:
        return "nothing precedes the slash"
    if not name:
        return "nothing follows the slash" if slash else "it is empty"
    if len(name) > 63:
        return f"the name part has {len(name)} characters, at most 63 are allowed"
    if not _NAME.fullmatch(name):
        return "the name part may hold letters, digits, '-', '_' and '.', and begins and ends with a letter or digit"
    if len(prefix) > 253:
        return f"the prefix has {len(prefix)} characters, at most 253 are allowed"
    if prefix and not _LABEL_PREFIX.fullmatch(prefix):
        return "the prefix must be a lower-case DNS name"
    return ""


def is_label_value(text: str) -> bool:
    """Return whether a text can be a label value; Kubernetes allows an empty one too, but it names no domain."""
    return bool(_NAME.fullmatch(text))


def level_faults(pairs: Sequence[tuple[str, str]]) -> list[Fault]:
    """Return every breach of the rules for levels; each fault's path is (index, "key" or "label")."""
    faults: list[Fault] = []
    if not pairs:
        faults.append(Fault("a topology needs at least one level", hint="List levels from the coarsest to the finest."))
    if len(pairs) > MAX_LEVELS:
        message = f"a topology has at most {MAX_LEVELS} levels, not {len(pairs)}"
        faults.append(Fault(message, hint="Leave out levels that nothing asks for.", path=(MAX_LEVELS,)))
    names: dict[str, int] = {}
    labels: dict[str, str] = {}
    for index, (name, label) in enumerate(pairs):
        if not _NAME.fullmatch(name):
            faults.append(
                Fault(
                    f'level name "{name}" is not 1 to 63 letters, digits, ".", "_" or "-"',
                    hint="Use a short name, such as rack.",
                    path=(index, "key"),
                )
            )
        elif name in names:
            faults.append(Fault(f'level "{name}" is defined twice', hint="Rename one of the two.", path=(index, "key")))
        names.setdefault(name, index)
        if problem := label_fault(label):
            faults.append(
                Fault(
                    f'"{label}" is not a node label: {problem}',
                    path=(index, "label"),
                    hint="Example: topology.kubernetes.io/rack",
                )
            )
        elif label in labels:
            faults.append(
                Fault(
                    f'label "{label}" is used by two levels, "{labels[label]}" and "{name}"',
                    path=(index, "label"),
                    hint="Each level needs a label of its own.",
                )
            )
        elif label == HOSTNAME and index != len(pairs) - 1:
            faults.append(
                Fault(
                    f'"{HOSTNAME}" must be the last level: nothing is finer than a node',
                    path=(index, "label"),
                    hint="Move it to the end of the list.",
                )
            )
        labels.setdefault(label, name)
    return faults
