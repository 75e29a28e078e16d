"""The operations on pools: their views, changes, levels, and nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.inspection.map import default_depth, map_json, scene_of
from coterie.inspection.node_map import NodeMap, node_map
from coterie.rendering.scene import MapScene
from coterie.service.core import Json, ServiceCore
from coterie.service.pools import changes as pool_rules
from coterie.service.pools.history import KEPT_S, SAMPLE_S, point, points, sample
from coterie.service.pools.resources import NodeUse, nodes_of
from coterie.service.pools.topology_users import level_users
from coterie.service.pools.usage import PoolUsage, unfinished
from coterie.service.settings import Settings
from coterie.service.views.workflows import when
from coterie.store import NewEvent


class PoolOperations(ServiceCore):
    """The pools of a service."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._node_maps: dict[str, tuple[PoolUsage, NodeMap]] = {}

    def runs_tasks_here(self) -> bool:
        """Return whether a pool runs its tasks on this machine."""
        return any(known.pool.traits.embedded for known in self._catalog().pools.values())

    def pools(self, *, warnings: bool = True) -> list[Json]:
        """Return all pools, with or without the findings about each, which take long on a large cluster."""
        live, tally = self._now(), self.store.tally()
        return [pool_rules.pool_view(known, live, tally, warnings=warnings) for known in live.catalog.pools.values()]

    def find_pool(self, name: str) -> None:
        """Raise `NotFound` where there is no such pool."""
        pool_rules.find(self._catalog(), name)

    def pool(self, name: str) -> Json:
        """Return a pool."""
        live = self._now()
        return pool_rules.pool_view(pool_rules.find(live.catalog, name), live, self.store.tally())

    def apply_pool(
        self,
        name: str,
        document: bytes | Mapping[str, Any],
        *,
        file: str = "pool.yaml",
        dry_run: bool = False,
        version: int | None = None,
        by: str = "",
    ) -> Json:
        """Create or change a pool; return the effects on workflows. An identical pool changes nothing."""
        live = self._now()
        wanted = pool_rules.want(name, document, file, live.catalog)
        hit = list(pool_rules.affected(wanted, self.store))
        before = wanted.before
        changed = before is None or dict(before.document) != dict(wanted.known.document)
        view = pool_rules.pool_view(wanted.known, live, self.store.tally())
        if changed and not dry_run:
            now = self.settings.now()
            _, changed = self.store.put_pool(name, wanted.known.document, now, version)
            if changed:
                said = f'pool "{name}" was {"changed" if before else "created"}{f" by {by}" if by else ""}'
                lost = f"; it lost {', '.join(wanted.lost_levels)}" if wanted.lost_levels else ""
                self.store.record([NewEvent(now, "PoolApplied", said + lost, pool=name)])
                self._ring()
            self._driver.poke()
            view = self.pool(name)
        return {
            "pool": view,
            "changed": changed,
            "created": before is None,
            "dry_run": dry_run,
            "lost_levels": wanted.lost_levels,
            "affected": hit,
            "changes": pool_rules.changes(before.document if before else {}, wanted.known.document),
        }

    def delete_pool(self, name: str, *, by: str = "") -> None:
        """Delete a pool that no workflow uses."""
        catalog = self._catalog()
        pool_rules.refuse_managed(pool_rules.find(catalog, name), catalog)
        self.store.delete_pool(name)
        said = f'pool "{name}" was deleted{f" by {by}" if by else ""}'
        self.store.record([NewEvent(self.settings.now(), "PoolDeleted", said, pool=name)])
        self._ring()
        self._driver.poke()

    def topologies(self) -> list[Json]:
        """Return the levels of all pools that run workflows here, and of all others that have some."""
        live = self._now()
        return [
            pool_rules.topology_view(known, live)
            for known in live.catalog.pools.values()
            if known.pool.backend in live.catalog.clusters or known.pool.topology.levels
        ]

    def topology(self, pool: str) -> Json:
        """Return the levels of a pool, with their domains."""
        live = self._now()
        return pool_rules.topology_view(pool_rules.find(live.catalog, pool), live)

    def topology_users(self, pool: str, levels: Sequence[str] | None = None) -> Json:
        """Return the users of a pool's levels; with other levels, also their effects."""
        known = pool_rules.find(self._catalog(), pool).pool
        return level_users(known, self.store, levels, self._catalogue.live.referring_objects).as_json()

    def scene(self, pool: str) -> MapScene:
        """Return the scene of a pool's nodes and their holders."""
        live = self._now()
        known = pool_rules.find(live.catalog, pool).pool
        domains = pool_rules.domains_of(known, live)
        return scene_of(domains, default_depth(domains), pool=pool)

    def map(self, pool: str) -> Json:
        """Return the map of a pool as data."""
        known = pool_rules.find(self._catalog(), pool).pool
        return map_json(self.scene(pool), known.topology, guessed=False)

    def node_map(self, pool: str) -> NodeMap:
        """Return the nodes of a pool with the tasks on them; the same object as long as nothing can have changed."""
        live = self._now()
        known = self._node_maps.get(pool)
        if known is None or known[0] is not live:
            domains = pool_rules.domains_of(pool_rules.find(live.catalog, pool).pool, live)
            known = self._node_maps[pool] = (live, node_map(domains, default_depth(domains), pool=pool))
        return known[1]

    def cluster_problem(self, pool: str) -> str | None:
        """Return why the cluster of a pool cannot be reached, None while it can; raise `NotFound`."""
        catalog = self._catalog()
        return catalog.unreached.get(pool_rules.find(catalog, pool).pool.backend)

    def pool_history(self, pool: str, hours: int, most: int) -> Json:
        """Return the use of a pool over the last hours, as at most `most` points of equal length, and now."""
        live, now = self._now(), self.settings.now()
        known = pool_rules.find(live.catalog, pool).pool
        current = sample(known, live, unfinished(self.store, pool), now)
        step = SAMPLE_S * max(1, -(-hours * 3600 // (SAMPLE_S * most)))
        since = (int(now) // SAMPLE_S + 1) * SAMPLE_S - max(step, hours * 3600 // step * step)
        found = points(self.store.samples(pool, since), since, step)
        return {
            "pool": pool,
            "step_s": step,
            "kept_s": KEPT_S,
            "points": [{**each, "at": when(each["at"])} for each in found],
            "now": {**point([current]), "at": when(now)} if current else None,
        }

    def gauges(self) -> Mapping[str, Mapping[Any, int]]:
        """Return metrics: workflows by pool and status, GPUs by pool and by backend."""
        return pool_rules.gauges(self._now(), self.store.tally())

    def nodes(self) -> list[NodeUse]:
        """Return every node with its capacity, its holders, and its pools."""
        return list(nodes_of(self._now()))
