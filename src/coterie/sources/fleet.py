"""The shorthand of a cluster file: many nodes of one shape, distributed over domains.

A block expands to the product of its domains. A level's entry is one value, a list of values, or a count, which stands
for the level's name followed by 1, 2, 3 …, restarting under each coarser domain.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coterie.errors import did_you_mean
from coterie.sources.assemble import MAX_NODES, shortened
from coterie.sources.fields import Fields, Path, named
from coterie.topology.levels import Topology

_SLOT = re.compile(r"\{([^{}]*)\}")
_PADDED = re.compile(r"(?P<name>.*?)(?::0(?P<width>[1-9]))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of a block's nodes: the level values of each domain, and the number of nodes per domain."""

    levels: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    nodes: int

    @property
    def size(self) -> int:
        """The number of nodes in the block."""
        return self.nodes * math.prod(len(choice) for choice in self.values)


def read_spread(fields: Fields, entry: Mapping[str, object], path: Path, topology: Topology | None) -> Spread | None:
    """Return the `domains` and `nodes` of a block; None when they are invalid or exceed the allowed number of nodes."""
    before = len(fields.faults)
    nodes = fields.count(entry["nodes"], (*path, "nodes"), 1) if "nodes" in entry else 1
    where = (*path, "domains")
    written = fields.mapping(entry.get("domains"), where)
    known = known_levels(fields, written, where, topology)
    choices = tuple(_choices(fields, level, written[level], (*where, level)) for level in known)
    spread = Spread(known, choices, nodes)
    if spread.size > MAX_NODES:
        fields.fault(path, f"{named(path)} makes {spread.size:,} nodes: at most {MAX_NODES:,} are allowed")
    return spread if len(fields.faults) == before else None


def known_levels(
    fields: Fields, written: Mapping[str, object], path: Path, topology: Topology | None
) -> tuple[str, ...]:
    """Return the levels of a `domains` entry, coarsest first; unknown levels are faults."""
    names = topology.names if topology else ()
    for level in written:
        if level not in names:
            hint = did_you_mean(level, names) or (
                f"Levels: {', '.join(names)}." if names else 'List the levels and their labels under "topology_keys".'
            )
            fields.fault((*path, level), f'"{shortened(level, 60)}" is not a level of topology_keys', hint)
    return tuple(name for name in names if name in written)


def node_names(fields: Fields, template: object, path: Path, spread: Spread) -> list[tuple[str, tuple[str, ...]]]:
    """Return the name of each node of a block with the level values of its domain."""
    text = None if template is None else fields.text(template, path)
    parts = [] if text is None else _parts(fields, text, path, spread.levels)
    made: list[tuple[str, tuple[str, ...]]] = []
    for values in itertools.product(*spread.values):
        for index in range(1, spread.nodes + 1):
            if text is None:
                name = "-".join((*filter(None, values), f"n{index}"))
            else:
                known = {"n": str(len(made) + 1), "i": str(index), **dict(zip(spread.levels, values, strict=True))}
                name = "".join(known.get(slot, slot).zfill(width) if width >= 0 else slot for slot, width in parts)
            made.append((name, values))
    if text is not None and len({name for name, _ in made}) < len(made):
        fields.fault(path, f'"{shortened(text, 60)}" gives two nodes the same name', "Put {n} into it: node-{n}.")
        return []
    return made


def _choices(fields: Fields, level: str, value: object, path: Path) -> tuple[str, ...]:
    if isinstance(value, int) and not isinstance(value, bool):
        count = fields.count(value, path, 1)
        if count > MAX_NODES:
            fields.fault(path, f"{count:,} domains are too many: at most {MAX_NODES:,} are allowed")
            return (level,)
        return tuple(f"{level}{number}" for number in range(1, count + 1))
    if not isinstance(value, list | tuple):
        return (fields.label_value(value, path),)
    values = tuple(fields.label_value(each, (*path, index)) for index, each in enumerate(value))
    if not values:
        fields.fault(path, f"{named(path)} is an empty list", "Give a value, a list of values or a count.")
        return ("",)
    if len(set(values)) < len(values):
        fields.fault(path, f"{named(path)} has the same value twice")
    return values


def _parts(fields: Fields, text: str, path: Path, levels: Sequence[str]) -> list[tuple[str, int]]:
    """Return a name template as parts: (text, -1) or (slot, width)."""
    parts: list[tuple[str, int]] = []
    for index, piece in enumerate(_SLOT.split(text)):
        if index % 2 == 0:
            parts.append((piece, -1))
            continue
        found = _PADDED.fullmatch(piece)
        name = found["name"] if found else piece
        if name not in {"n", "i", *levels}:
            known = ", ".join(f"{{{slot}}}" for slot in ("n", "i", *levels))
            fields.fault(path, f'"{{{shortened(piece, 40)}}}" has no meaning in a node name', f"Known: {known}.")
        parts.append((name, int(found["width"] or 0) if found else 0))
    return parts
