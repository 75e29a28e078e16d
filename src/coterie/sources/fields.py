"""Typed reading of a loaded document, field by field, collecting every fault instead of stopping at the first."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from coterie.errors import Fault, Notice, Place, did_you_mean
from coterie.sources.assemble import shortened
from coterie.topology.levels import label_fault

Path = tuple[str | int, ...]
Locate = Callable[[Path], Place]

_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "text", dict: "a mapping", list: "a list"}


class Fields:
    """The faults and notices of one document, and readers that add to them.

    A reader returns a harmless value of the right type where it found a fault, so that reading continues.
    """

    def __init__(self, locate: Locate) -> None:
        self.locate = locate
        self.faults: list[Fault] = []
        self.notices: list[Notice] = []

    def fault(self, path: Path, message: str, hint: str = "") -> None:
        """Add a fault at a path."""
        self.faults.append(Fault(message, hint=hint, place=self.locate(path), path=path))

    def notice(self, path: Path, code: str, message: str) -> None:
        """Add a notice at a path."""
        self.notices.append(Notice(code, message, self.locate(path), path))

    def mapping(self, value: object, path: Path, known: Collection[str] = ()) -> Mapping[str, object]:
        """Return a mapping, empty if absent; with `known`, any other key is a fault."""
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.wrong(path, value, "a mapping")
            return {}
        entries = {str(key): entry for key, entry in value.items()}
        for key in entries:
            if known and key not in known:
                hint = did_you_mean(key, known) or f"Known fields: {', '.join(sorted(known))}."
                self.fault((*path, key), f'unknown field "{shortened(key, 60)}" in {named(path)}', hint)
        return entries

    def items(self, value: object, path: Path) -> Sequence[object]:
        """Return a list, empty if absent."""
        if value is None:
            return ()
        if not isinstance(value, list | tuple):
            self.wrong(path, value, "a list", "Begin each entry with a dash.")
            return ()
        return value

    def text(self, value: object, path: Path) -> str:
        """Return a non-empty text; a whole number is accepted as one."""
        if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 200:
            return str(value)
        if not isinstance(value, str) or not value:
            self.wrong(path, value, "text", "Put it in quotes." if isinstance(value, bool | float) else "")
            return ""
        return value

    def flag(self, value: object, path: Path) -> bool:
        """Return a boolean, false if absent."""
        if value is not None and not isinstance(value, bool):
            self.wrong(path, value, "true or false")
        return value is True

    def count(self, value: object, path: Path, least: int) -> int:
        """Return a whole number that is at least `least`."""
        if not isinstance(value, int) or isinstance(value, bool):
            self.wrong(path, value, "a whole number")
            return least
        if value.bit_length() > 40:
            self.fault(path, f"{named(path)} is far too large")
            return least
        if value < least:
            self.fault(path, f"{named(path)} must be at least {least}")
            return least
        return value

    def labels(self, value: object, path: Path) -> dict[str, str]:
        """Return node or pod labels, checked by Kubernetes' syntax."""
        labels = {}
        for key, entry in self.mapping(value, path).items():
            if problem := label_fault(key):
                self.fault((*path, key), f'"{shortened(key, 60)}" is not a label: {problem}')
            else:
                labels[key] = self.label_value(entry, (*path, key))
        return labels

    def label_value(self, value: object, path: Path) -> str:
        """Return a label's value; it may be empty."""
        text = "" if value == "" else self.text(value, path)
        if not _LABEL_VALUE.fullmatch(text):
            self.fault(
                path,
                f'"{shortened(text, 60)}" cannot be the value of a label',
                'At most 63 letters, digits, "-", "_" and ".", beginning and ending with a letter or digit.',
            )
            return ""
        return text

    def wrong(self, path: Path, value: object, wanted: str, hint: str = "") -> None:
        """Add a fault for a value of the wrong type."""
        found = "nothing" if value is None else _KINDS.get(type(value), "something else")
        if value == "":
            found = "an empty text"
        self.fault(path, f"{named(path)} must be {wanted}, not {found}", hint)


def named(path: Path) -> str:
    """Return a path as `pods[3].gpu`; the document itself is "the cluster file"."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text or "the cluster file"
