"""The objects of pools: queues, topologies and priority classes, written only where they differ.

The levels of a Topology are immutable, so changed levels make another one, under another name. It exists before any
PodGroup names it, and the old one goes when no PodGroup names it any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from coterie.backends.kai.driver.objects import GangPodGroup, ObjectMeta
from coterie.backends.kai.driver.own_objects import apply_own
from coterie.backends.kai.manifests import objects
from coterie.backends.kai.manifests.metadata import BACKEND, POOL, STORE, ManifestContext
from coterie.backends.shared.manifest_text import Manifest
from coterie.backends.shared.names import label_value
from coterie.config.configuration import Pool
from coterie.errors import CoterieError, Unavailable
from coterie.kube.api import Api
from coterie.kube.delete import delete
from coterie.kube.kinds import POD_GROUP, QUEUE, TOPOLOGY, ObjectKind
from coterie.kube.reads import ObjectQuery, list_all


class VersionedMeta(ObjectMeta, gc=False, rename="camel"):
    """The identity of an object in one state."""

    resource_version: str = ""


class PoolObject(msgspec.Struct, gc=False):
    """A queue or a topology."""

    metadata: VersionedMeta


class PoolObjects:
    """The shared objects of a backend's pools.

    `others` are queues and topologies of this service that another backend has written, with the label of that backend.
    """

    def __init__(self, api: Api, namespace: str, store: str, backend: str) -> None:
        self._api, self._namespace, self._store = api, namespace, store
        # The parent of the queues has no pool and stays.
        self._query, self._backend = f"{STORE}={store},{POOL}", label_value(backend)
        self.others: list[tuple[ObjectKind, ObjectMeta]] = []
        self._wanted: set[tuple[str, str]] = set()
        self._written: dict[tuple[str, str], Manifest] = {}

    def sync(self, pools: Iterable[Pool]) -> dict[str, CoterieError]:
        """Write what is new or different; objects of former pools stay until `sweep`.

        Returns the errors of pools whose objects the cluster refuses, by name; those of the others are written. The
        name is empty for a PriorityClass, which no pool depends on. Raises `Unavailable` where the cluster is.
        """
        wanted: dict[str, list[Manifest]] = {"": list(objects.priority_classes())}
        for pool in pools:
            wanted[pool.name] = list(objects.shared(ManifestContext(self._namespace, "", pool, store=self._store)))
        self._wanted = {_key(manifest) for some in wanted.values() for manifest in some}
        self._written = {key: known for key, known in self._written.items() if key in self._wanted}
        refused: dict[str, CoterieError] = {}
        for name, some in wanted.items():
            try:
                self._write(some)
            except Unavailable:
                raise
            except CoterieError as error:
                refused[name] = error
        return refused

    def _write(self, manifests: Iterable[Manifest]) -> None:
        for manifest in manifests:
            if self._written.get(_key(manifest)) != manifest:
                apply_own(self._api, manifest)
                self._written[_key(manifest)] = manifest

    def sweep(self, groups: Collection[GangPodGroup]) -> None:
        """Delete queues and topologies of this backend that no pool has and no PodGroup names.

        Those without a backend are of an earlier version of Coterie: a backend whose pool has one has labelled it when
        the pool was written, and any other goes. One that somebody changes at this moment stays.
        """
        used, others = _named(groups), list[tuple[ObjectKind, ObjectMeta]]()
        for kind in (QUEUE, TOPOLOGY):
            for each in list_all(self._api, ObjectQuery(kind, labels=self._query), PoolObject).items:
                meta = each.metadata
                backend = meta.label(BACKEND)
                if backend not in ("", self._backend):
                    others.append((kind, meta))
                elif (kind.name, meta.name) not in self._wanted and meta.name not in used and meta.own:
                    # Another backend of an earlier version may have gangs in another namespace.
                    if not backend and meta.name in _named(self._all_groups()):
                        continue
                    delete(self._api, kind, meta.name, uid=meta.uid, version=meta.resource_version)
        self.others = others

    def _all_groups(self) -> list[GangPodGroup]:
        return list_all(self._api, ObjectQuery(POD_GROUP, labels=f"{STORE}={self._store}"), GangPodGroup).items


def _named(groups: Iterable[GangPodGroup]) -> set[str]:
    """Return the names of all queues and topologies that PodGroups refer to."""
    return {name for group in groups for name in (group.spec.queue, *group.spec.topologies())}


def _key(manifest: Manifest) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]
