"""What a list and the events after it amount to: the objects as they are, and each change once.

Pure: no clock, no network. Whatever is fed to it, the changes it returns lead from the objects before to those after.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from coterie.kube.wire import Meta

T = TypeVar("T")
Key = tuple[str, str]


class Did(StrEnum):
    """What happened to an object."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """An object: who it is, and what of it the watcher wants to know."""

    meta: Meta
    value: T

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.meta.namespace, self.meta.name


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What happened to one object; for a deletion, `entry` is the last that is known of it."""

    did: Did
    entry: Entry[T]


class Cache(Generic[T]):
    """The objects of a query as they are at `version`."""

    def __init__(self) -> None:
        self.entries: dict[Key, Entry[T]] = {}
        self.version = ""

    def replace(self, entries: Iterable[Entry[T]], version: str) -> list[Change[T]]:
        """Take a fresh list for the truth. What it lacks was deleted, though nobody said so."""
        fresh = {entry.key: entry for entry in entries}
        changes = [Change(Did.DELETED, old) for key, old in self.entries.items() if key not in fresh]
        for change in changes:
            del self.entries[change.entry.key]
        for entry in fresh.values():
            changes += self.put(entry)
        self.version = version
        return changes

    def put(self, entry: Entry[T]) -> list[Change[T]]:
        """Take an object as it is now. One that replaced another of its name means that the other was deleted."""
        old = self.entries.get(entry.key)
        self.entries[entry.key] = entry
        if old is None:
            return [Change(Did.ADDED, entry)]
        if old.meta.uid != entry.meta.uid:
            return [Change(Did.DELETED, old), Change(Did.ADDED, entry)]
        # The same version twice is the same object: lists and replayed events say again what is known.
        return [Change(Did.MODIFIED, entry)] if old.meta.resource_version != entry.meta.resource_version else []

    def remove(self, entry: Entry[T]) -> list[Change[T]]:
        """Take an object's end. That of an unknown one, or of a predecessor, changes nothing."""
        old = self.entries.get(entry.key)
        if old is None or old.meta.uid != entry.meta.uid:
            return []
        del self.entries[entry.key]
        return [Change(Did.DELETED, entry)]
