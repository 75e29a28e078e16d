"""The result of a list and the events after it: the current objects, and each change once.

Pure: no clock, no network. For any input, the returned changes lead from the objects before to the objects after.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from coterie.kube.wire import Meta

T = TypeVar("T")
Key = tuple[str, str]


class ChangeType(StrEnum):
    """The type of a change to an object."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class CacheEntry(Generic[T]):
    """An object: its identity, and the data that the watcher keeps of it."""

    meta: Meta
    value: T

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.meta.namespace, self.meta.name


@dataclass(frozen=True, slots=True)
class CacheChange(Generic[T]):
    """A change to one object; for a deletion, `entry` is its last known state."""

    did: ChangeType
    entry: CacheEntry[T]


class Cache(Generic[T]):
    """The objects of a query at `version`."""

    def __init__(self) -> None:
        self.entries: dict[Key, CacheEntry[T]] = {}
        self.version = ""

    def replace(self, entries: Iterable[CacheEntry[T]], version: str) -> list[CacheChange[T]]:
        """Replace all objects by a fresh list; objects missing in it were deleted, even without an event."""
        fresh = {entry.key: entry for entry in entries}
        changes = [CacheChange(ChangeType.DELETED, old) for key, old in self.entries.items() if key not in fresh]
        for change in changes:
            del self.entries[change.entry.key]
        for entry in fresh.values():
            changes += self.put(entry)
        self.version = version
        return changes

    def put(self, entry: CacheEntry[T]) -> list[CacheChange[T]]:
        """Record the current state of an object; a new uid under its name means that the former one was deleted."""
        old = self.entries.get(entry.key)
        self.entries[entry.key] = entry
        if old is None:
            return [CacheChange(ChangeType.ADDED, entry)]
        if old.meta.uid != entry.meta.uid:
            return [CacheChange(ChangeType.DELETED, old), CacheChange(ChangeType.ADDED, entry)]
        # The same version is the same object: lists and replayed events repeat what is known.
        return (
            [CacheChange(ChangeType.MODIFIED, entry)]
            if old.meta.resource_version != entry.meta.resource_version
            else []
        )

    def remove(self, entry: CacheEntry[T]) -> list[CacheChange[T]]:
        """Record the deletion of an object; that of an unknown one, or of a predecessor, changes nothing."""
        old = self.entries.get(entry.key)
        if old is None or old.meta.uid != entry.meta.uid:
            return []
        del self.entries[entry.key]
        return [CacheChange(ChangeType.DELETED, entry)]
