"""The amounts of nodes and pods as a cluster file writes them: `gpu: 8`, `memory: 2Ti`."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from coterie.sources.fields import Fields, Path
from coterie.topology.cluster import CPU, GPU, MEMORY, PODS, STORAGE
from coterie.topology.quantity import amount, parse_quantity

SHORT_NAMES = {"cpu": CPU, "memory": MEMORY, "gpu": GPU, "storage": STORAGE, "pods": PODS}
_SIZES = (MEMORY, STORAGE)
_DIVISIBLE = (CPU, *_SIZES)
_MIB = 1 << 20


def read_amounts(
    fields: Fields, entry: Mapping[str, object], path: Path, full: str, *, offered: bool
) -> dict[str, int]:
    """Return the amounts of an entry: its short names, and the full resource names in the mapping under `full`."""
    written: list[tuple[str, object, Path]] = [
        (resource, entry[short], (*path, short)) for short, resource in SHORT_NAMES.items() if short in entry
    ]
    long_path = (*path, full)
    for name, value in fields.mapping(entry.get(full), long_path).items():
        written.append((name, value, (*long_path, name)))
    amounts: dict[str, int] = {}
    for resource, value, where in written:
        if resource in amounts:
            fields.fault(where, f'"{resource}" is given twice', f'Keep either its short name or the one in "{full}".')
        else:
            amounts[resource] = _amount(fields, resource, value, where, offered=offered)
    return {name: value for name, value in amounts.items() if value or (offered and name == PODS)}


def _amount(fields: Fields, resource: str, value: object, path: Path, *, offered: bool) -> int:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        fields.wrong(path, value, "a quantity", 'Write a number, or a text such as "500m" or 512Gi.')
        return 0
    try:
        if resource not in _DIVISIBLE and isinstance(parse_quantity(value), Fraction):
            fields.fault(path, f"{value} of {resource} is not a whole number")
            return 0
        counted = amount(resource, value, offered=offered)
    except ValueError as error:
        fields.fault(path, str(error))
        return 0
    if resource in _SIZES and 0 < counted < _MIB:
        fields.notice(path, "TinySize", f'{resource} {value} is {counted} bytes; for gibibytes write "{value}Gi"')
    return counted
