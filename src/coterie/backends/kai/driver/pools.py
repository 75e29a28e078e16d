"""The objects of pools: queues, topologies and priority classes, written only where they differ.

The levels of a Topology are immutable, so changed levels make another one, under another name. It exists before any
PodGroup names it, and the old one goes when no PodGroup names it any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from coterie.backends.kai.driver.objects import AnyObject, GangPodGroup
from coterie.backends.kai.driver.own_objects import apply_own
from coterie.backends.kai.manifests import objects
from coterie.backends.kai.manifests.metadata import BACKEND, STORE, ManifestContext
from coterie.backends.shared.manifest_text import Manifest
from coterie.backends.shared.names import label_value
from coterie.config.configuration import Pool
from coterie.kube.api import Api
from coterie.kube.delete import delete
from coterie.kube.kinds import QUEUE, TOPOLOGY
from coterie.kube.reads import ObjectQuery, list_all


class PoolObjects:
    """The shared objects of a backend's pools."""

    def __init__(self, api: Api, namespace: str, store: str, backend: str) -> None:
        self._api, self._namespace, self._store = api, namespace, store
        # The parent of the queues has no backend and stays; other backends may be on the same cluster.
        self._own = f"{STORE}={store},{BACKEND}={label_value(backend)}"
        self._written: dict[tuple[str, str], Manifest] = {}

    def sync(self, pools: Iterable[Pool]) -> None:
        """Write what is new or different; objects of former pools stay until `sweep`."""
        wanted: dict[tuple[str, str], Manifest] = {}
        for manifest in objects.priority_classes():
            wanted[manifest["kind"], manifest["metadata"]["name"]] = manifest
        for pool in pools:
            scene = ManifestContext(self._namespace, "", pool, store=self._store)
            for manifest in objects.shared(scene):
                wanted[manifest["kind"], manifest["metadata"]["name"]] = manifest
        for key, manifest in wanted.items():
            if self._written.get(key) != manifest:
                apply_own(self._api, manifest)
                self._written[key] = manifest
        self._written = wanted

    def sweep(self, groups: Collection[GangPodGroup]) -> None:
        """Delete queues and topologies of this backend that no pool has and no PodGroup names."""
        used = {name for group in groups for name in group.spec.topologies()} | {group.spec.queue for group in groups}
        for kind in (QUEUE, TOPOLOGY):
            for each in list_all(self._api, ObjectQuery(kind, labels=self._own), AnyObject).items:
                meta = each.metadata
                if (kind.name, meta.name) not in self._written and meta.name not in used and meta.own:
                    delete(self._api, kind, meta.name, uid=meta.uid)
