"""Writes to the cluster by the leader alone.

Every write first asks whether this replica still leads, and every write is refused by the API where the object has
changed since it was read. A former leader therefore cannot undo the work of the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from coterie.errors import CoterieError, NotFound
from coterie.kube.api import Api
from coterie.kube.delete import delete
from coterie.kube.errors import MissingKind, ObjectConflict
from coterie.kube.kinds import ObjectKind
from coterie.kube.reads import ObjectQuery, find, list_served
from coterie.kube.write import create, json_patch, replace

Object = dict[str, Any]


class NotLeading(CoterieError):  # noqa: N818 - the leaf says what happened
    """Raised for a write after leadership was lost."""


class Writer:
    """Writes of the leading replica, and reads that bypass the caches.

    `writes` is a connection whose requests end, without retries, before another replica can lead.
    """

    def __init__(self, reads: Api, writes: Api, leads: Callable[[], bool]) -> None:
        self._reads, self._writes = reads, writes
        self._leads = leads

    def find(self, kind: ObjectKind, name: str, namespace: str | None = None) -> Object | None:
        """Return an object as the API has it now, or None; also None where the cluster lacks the kind."""
        try:
            return find(self._reads, kind, name, Object, namespace)
        except MissingKind:
            return None

    def list(self, query: ObjectQuery) -> list[Object]:
        """Return the objects of a query as the API has them now; none where the cluster lacks the kind."""
        found = list_served(self._reads, query, Object)
        return found.items if found is not None else []

    def create(self, manifest: Mapping[str, Any], *, dry_run: bool = False) -> None:
        """Create an object."""
        self._require()
        create(self._writes, manifest, dry_run=dry_run)

    def replace(self, manifest: Mapping[str, Any]) -> None:
        """Replace an object that was read."""
        self._require()
        replace(self._writes, manifest)

    def delete(self, kind: ObjectKind, name: str, uid: str) -> None:
        """Delete exactly the object that was read."""
        self._require()
        delete(self._writes, kind, name, uid=uid)

    def patch(self, kind: ObjectKind, name: str, namespace: str, operations: Sequence[Mapping[str, Any]]) -> None:
        """Change fields of an object; one that is gone is left alone."""
        self._require()
        with suppress(NotFound):
            json_patch(self._writes, kind, name, operations, namespace or None)

    def status(self, about: Mapping[str, Any], status: Mapping[str, Any]) -> Object:
        """Replace the status of an object that was read, and return the object as it is stored."""
        self._require()
        return replace(self._writes, {**about, "status": dict(status)}, subresource="status")

    def event(self, manifest: Mapping[str, Any]) -> None:
        """Create an event; one that exists was written before a crash."""
        self._require()
        with suppress(ObjectConflict):
            create(self._writes, manifest)

    def _require(self) -> None:
        if not self._leads():
            raise NotLeading("this replica no longer leads", "Another replica continues.")
