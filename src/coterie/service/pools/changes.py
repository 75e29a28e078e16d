"""Changes of pools, their effects on workflows, and the views of pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.config.configuration import Config, Pool
from coterie.document.located import decode, load
from coterie.errors import Conflict, Fault, NotFound, Notice, SpecErrors, UsageError, did_you_mean, field_path
from coterie.inspection.labels import check_pool, part_of, pool_nodes
from coterie.lifecycle import State, from_json
from coterie.service.pools.catalog import CatalogPool, PoolCatalog, read_pool
from coterie.service.pools.topology_drift import topology_drift
from coterie.service.pools.usage import PoolUsage, unfinished
from coterie.service.views.workflows import waits
from coterie.store import Store
from coterie.topology.cluster import Bools, Cluster
from coterie.topology.domains import Domains

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DesiredPool:
    """The desired state of a pool, validated; `before` is the current one."""

    known: CatalogPool
    before: CatalogPool | None

    @property
    def lost_levels(self) -> list[str]:
        """The levels that the pool would lose."""
        old = self.before.pool.topology.names if self.before else ()
        return [level for level in old if level not in self.known.pool.topology.names]


def read_document(
    document: bytes | Mapping[str, Any], file: str, name: str, catalog: PoolCatalog
) -> tuple[Json, Pool, tuple[Notice, ...]]:
    """Return a pool validated like a section of a configuration; raise `SpecErrors` with the place of every fault.

    A text may also be a configuration with the pool below `pools`.
    """
    located = load(decode(document, file), file) if isinstance(document, bytes) else None
    data: object = located.data if located else document
    above: tuple[str, ...] = ()
    if located and isinstance(data, Mapping) and isinstance(pools := data.get("pools"), Mapping):
        if name not in pools:
            raise NotFound(f'{file} has no pool "{name}"', f"Pools in it: {', '.join(map(str, pools))}.")
        data, above = pools[name], ("pools", name)
    if not isinstance(data, Mapping):
        hint = "Write the fields that a pool has in a configuration, such as backend: lab."
        raise SpecErrors(
            [Fault("a pool is a mapping of fields", hint=hint, place=located.place(above) if located else None)]
        )
    try:
        place_of = (lambda path, on_key: located.place((*above, *path), key=on_key)) if located else None
        return dict(data), *read_pool(name, data, catalog.backends, place_of)
    except SpecErrors as error:
        if located:
            raise
        raise SpecErrors(
            [
                replace(fault, message=f"{field_path(fault.path)}: {fault.message}") if fault.path else fault
                for fault in error.faults
            ]
        ) from None


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Json]:
    """Return the fields of a pool's document that differ, with their old and new values."""
    old, new = _fields(before), _fields(after)
    return [
        {"field": field, "old": old.get(field), "new": new.get(field)}
        for field in sorted(old.keys() | new.keys())
        if old.get(field) != new.get(field)
    ]


def _fields(document: Mapping[str, Any], above: str = "") -> Json:
    """Return the values of a document by the path of each field; a list is one value."""
    found: Json = {}
    for key, value in document.items():
        path = f"{above}{key}"
        found |= _fields(value, f"{path}.") if isinstance(value, Mapping) else {path: value}
    return found


def want(name: str, document: bytes | Mapping[str, Any], file: str, catalog: PoolCatalog) -> DesiredPool:
    """Return a validated change of a pool; raise `Conflict` for one that only the configuration file can make."""
    before = catalog.pools.get(name)
    if before is not None and before.managed:
        raise Conflict(
            f'pool "{name}" is defined in {catalog.file or "the configuration of the service"}',
            "Change it there; the service reads the file again by itself.",
        )
    data, pool, notices = read_document(document, file, name, catalog)
    version = before.version if before else 0
    return DesiredPool(CatalogPool(pool, data, managed=False, version=version, notices=notices), before)


def affected(wanted: DesiredPool, store: Store) -> Iterator[Json]:
    """Yield the groups that require a level which the pool would lose; waiting ones then wait indefinitely."""
    lost = set(wanted.lost_levels)
    if not lost:
        return
    for summary in unfinished(store, wanted.known.pool.name):
        required: Mapping[str, list[str]] = summary.digest.get("requires", {})
        if not any(lost & set(levels) for levels in required.values()):
            continue
        state = from_json(State, store.workflow(summary.id).state)
        for group in state.groups:
            levels = [level for level in required.get(group.name, ()) if level in lost]
            if levels and not group.status.final:
                waiting = waits(group) or not group.attempt
                yield {"workflow": summary.id, "group": group.name, "level": levels[0], "waits": waiting}


def find(catalog: PoolCatalog, name: str) -> CatalogPool:
    """Return a pool by its name."""
    known = catalog.pools.get(name)
    if known is None:
        hint = f"Pools are: {', '.join(catalog.pools) or 'none'}. {did_you_mean(name, catalog.pools)}".strip()
        raise NotFound(f'there is no pool "{name}"', hint)
    return known


def refuse_managed(known: CatalogPool, catalog: PoolCatalog) -> None:
    """Raise `Conflict` for a pool that cannot be deleted here."""
    if known.managed:
        raise Conflict(
            f'pool "{known.pool.name}" is defined in {catalog.file or "the configuration of the service"}',
            "Remove it there; the service reads the file again by itself.",
        )


def pool_view(
    known: CatalogPool, live: PoolUsage, tally: Mapping[tuple[str, str], int], *, warnings: bool = True
) -> Json:
    """Return the view of a pool for users."""
    pool, catalog = known.pool, live.catalog
    cluster = known_cluster(pool, live)
    own = pool_nodes(cluster, pool) if cluster is not None else None
    mine = {status: count for (name, status), count in tally.items() if name == pool.name}
    return {
        "name": pool.name,
        "description": str(known.document.get("description", "")),
        "backend": pool.backend,
        "scheduler": pool.scheduler,
        "managed": known.managed,
        "version": known.version,
        "default": len(catalog.pools) == 1,
        "nvlink": pool.nvlink,
        "node_selector": dict(pool.node_selector),
        "topology_keys": [{"key": level.name, "label": level.label} for level in pool.topology.levels],
        "topology": pool.topology_name,
        "gpus": {
            "guarantee": pool.gpus.guarantee,
            "limit": pool.gpus.limit,
            "weight": pool.gpus.weight,
            "used": live.gpus.get(pool.name, 0),
            **(gpus_of(own) if own is not None else {"total": 0, "free": 0, "out_of_service": 0}),
        },
        "nodes": len(own) if own is not None else 0,
        "counted": own is not None,
        "unreachable": catalog.unreached.get(pool.backend),
        "max_exec_timeout": pool.max_exec_timeout,
        "max_queue_timeout": pool.max_queue_timeout,
        "workflows": {
            "running": mine.get("RUNNING", 0),
            "waiting": mine.get("WAITING", 0) + mine.get("PENDING", 0),
        },
        "document": dict(known.document),
        "warnings": list(_warnings(known, catalog, cluster)) if warnings else [],
    }


def topology_view(known: CatalogPool, live: PoolUsage) -> Json:
    """Return the levels of a pool, with the domains of its nodes and their free capacity.

    Where its nodes are not known here, nothing is counted.
    """
    pool = known.pool
    cluster = known_cluster(pool, live)
    if cluster is None:
        unknown = {"domains": None, "nodes": None, "unlabelled": None}
        levels = [{"key": level.name, "label": level.label, **unknown} for level in pool.topology.levels]
        names = {"pool": pool.name, "name": pool.topology_name, "drift": None}
        return {**names, "counted": False, "levels": levels, "domains": []}
    domains = Domains.of(pool_nodes(cluster, pool), pool.topology)
    own = domains.cluster
    total = own.gpus(own.allocatable)[domains.order]
    used = own.gpus(own.held(range(len(own.pods))))[domains.order]
    idle, serving = (total - used).clip(min=0), _in_service(own)[domains.order]
    return {
        "pool": pool.name,
        "name": pool.topology_name,
        "drift": topology_drift(pool, live.catalog.clusters.get(pool.backend)),
        "counted": True,
        "levels": [
            {
                "key": level.name,
                "label": level.label,
                "domains": len(tier),
                "nodes": int((tier.of >= 0).sum()),
                "unlabelled": int((tier.of < 0).sum()),
            }
            for level, tier in zip(pool.topology.levels, domains.tiers, strict=True)
        ],
        "domains": [
            {
                "path": list(path),
                "level": level.name,
                "nodes": int(end - start),
                "gpus": {
                    "total": int(total[start:end].sum()),
                    "used": int(used[start:end].sum()),
                    "free": int(idle[start:end][serving[start:end]].sum()),
                    "out_of_service": int(idle[start:end][~serving[start:end]].sum()),
                },
            }
            for level, tier in zip(pool.topology.levels, domains.tiers, strict=True)
            for path, start, end in zip(tier.values, tier.start.tolist(), tier.end.tolist(), strict=True)
        ],
    }


def domains_of(pool: Pool, live: PoolUsage) -> Domains:
    """Return the nodes of a pool with their holders, divided by its levels."""
    return Domains.of(pool_nodes(live.cluster(pool), pool), pool.topology)


def known_cluster(pool: Pool, live: PoolUsage) -> Cluster | None:
    """Return the nodes of a pool's backend, None where neither this service nor a file declares them."""
    if pool.backend in live.catalog.clusters:
        return live.cluster(pool)
    told = live.catalog.elsewhere.get(pool.backend)
    return told.cluster if told else None


def gauges(live: PoolUsage, tally: Mapping[tuple[str, str], int]) -> Mapping[str, Mapping[Any, int]]:
    """Return metrics: workflows by pool and status, GPUs by pool and by backend."""
    pools = {name: pool_view(known, live, tally, warnings=False)["gpus"] for name, known in live.catalog.pools.items()}
    return {
        "workflows": tally,
        "gpus_used": {name: found["used"] for name, found in pools.items()},
        "gpus_total": {name: found["total"] for name, found in pools.items()},
        "backend_gpus": {name: found["total"] for name, found in backend_gpus(live).items()},
    }


def backend_gpus(live: PoolUsage) -> dict[str, Json]:
    """Return the GPUs of every backend's nodes that are in a pool, each shared node once."""
    found: dict[str, Json] = {}
    for backend in live.catalog.clusters:
        pools = [known.pool for known in live.catalog.pools.values() if known.pool.backend == backend]
        if pools:
            cluster = live.cluster(pools[0])
            names = {name for pool in pools for name in pool_nodes(cluster, pool).names}
            found[backend] = gpus_of(part_of(cluster, np.array([name in names for name in cluster.names], dtype=bool)))
    return found


def gpus_of(own: Cluster) -> Json:
    """Return the number of GPUs of nodes, and of idle ones: free where nodes accept work, else out of service.

    All others are in use.
    """
    total, serving = own.gpus(own.allocatable), _in_service(own)
    idle = (total - own.gpus(own.held(range(len(own.pods))))).clip(min=0)
    return {
        "total": int(total.sum()),
        "free": int(idle[serving].sum()),
        "out_of_service": int(idle[~serving].sum()),
    }


def _in_service(own: Cluster) -> Bools:
    return own.ready & ~own.cordoned


def _warnings(known: CatalogPool, catalog: PoolCatalog, cluster: Cluster | None) -> Iterator[Json]:
    if known.unusable:
        yield {"code": "PoolUnusable", "severity": "error", "level": None, "message": known.unusable, "hint": ""}
    for notice in known.notices:
        yield {"code": notice.code, "severity": "info", "level": None, "message": notice.message, "hint": ""}
    if cluster is None:
        return
    pools = {name: each.pool for name, each in catalog.pools.items()} | {known.pool.name: known.pool}
    config = Config(catalog.backends, pools, catalog.file)
    for finding in check_pool(cluster, known.pool, config):
        yield {
            "code": finding.code,
            "severity": finding.severity,
            "level": finding.level or None,
            "message": finding.message,
            "hint": finding.hint,
        }


def still_runs(catalog: PoolCatalog, workflow: str, pool: str) -> None:
    """Raise `Conflict` unless the pool of a workflow that is to be retried accepts workflows now."""
    known = catalog.pools.get(pool)
    others = [name for name in catalog.pools if name != pool]
    hint = f"Create the pool again, or submit the workflow to another. Pools are: {', '.join(others) or 'none'}."
    if known is None:
        raise Conflict(f'workflow "{workflow}" cannot be retried: its pool "{pool}" is gone', hint)
    try:
        runs_here(known)
    except UsageError as error:
        raise Conflict(f'workflow "{workflow}" cannot be retried: {error}', error.hint) from None


def runs_here(known: CatalogPool) -> Pool:
    """Return a pool into which workflows can be submitted here; raise `UsageError` for any other."""
    if known.unusable:
        raise UsageError(f'pool "{known.pool.name}" takes no workflows: {known.unusable}', "An admin has to fix it.")
    if not known.pool.traits.driven:
        raise UsageError(
            f'pool "{known.pool.name}" has the scheduler "{known.pool.scheduler}", which this service does not drive',
            "Render it with `coterie render`, or choose a pool of a local backend.",
        )
    return known.pool
