"""OSMO's routes of pools, nodes, health and version, in OSMO's shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from coterie.errors import NotFound, UsageError, did_you_mean
from coterie.service.api.access import MANY, Behind, Who, answer
from coterie.service.api.models import osmo as models
from coterie.service.api.models.base import Short
from coterie.service.pools.resources import NodeUse
from coterie.service.service import Service

Json = dict[str, Any]
Names = Annotated[list[Short] | None, Query(max_length=MANY, description="These alone.")]

router = APIRouter(prefix="/api", tags=["osmo"])
probes = APIRouter(tags=["osmo"])


@probes.get("/health", response_model=models.Health)
async def osmo_health() -> Response:
    """Report that the process answers, without checking anything else."""
    return answer({"status": "ok"})


@probes.get("/api/version", response_model=models.Version)
async def osmo_version() -> Response:
    """Return the version of Coterie."""
    major, minor, revision, *_ = [*version("coterie").split("."), "0", "0"]
    return answer({"major": major, "minor": minor, "revision": revision, "hash": ""})


@router.get("/pool", response_model=models.Pools)
def pools(service: Behind, _caller: Who, pools: Names = None) -> Response:
    """List pools with their levels and quotas; pools of one backend share its nodes."""
    return _pools(service, pools)


@router.get("/pool_quota", response_model=models.Pools)
def pool_quota(service: Behind, _caller: Who, pools: Names = None) -> Response:
    """List pools with their quotas."""
    return _pools(service, pools)


def _pools(service: Service, names: Sequence[str] | None) -> Response:
    views = [service.pool(name) for name in dict.fromkeys(names)] if names else service.pools()
    nodes = service.nodes()
    found = [(view["backend"], _pool(view, nodes)) for view in views]
    backends = dict.fromkeys(backend for backend, _ in found)
    chosen = {view["name"] for view in views}
    return answer(
        {
            "node_sets": [{"pools": [pool for its, pool in found if its == backend]} for backend in backends],
            "resource_sum": _sum([pool for _, pool in found], [node for node in nodes if chosen & node.pools.keys()]),
        }
    )


def _pool(view: Json, nodes: Iterable[NodeUse]) -> Json:
    gpus = view["gpus"]
    limit = gpus["total"] if gpus["limit"] is None else gpus["limit"]
    quota = {
        "quota_used": gpus["used"],
        "quota_limit": limit,
        "quota_free": max(0, limit - gpus["used"]),
    }
    return {
        "name": view["name"],
        "description": view["description"],
        "status": "ONLINE",
        "backend": view["backend"],
        "topology_keys": view["topology_keys"],
        "resource_usage": _texts({**quota, **_totals([node for node in nodes if view["name"] in node.pools])}),
    }


def _sum(pools: Sequence[Json], nodes: Sequence[NodeUse]) -> Json:
    """Return the sum of all quotas, and of all nodes; shared nodes count once."""
    names = ("quota_used", "quota_limit", "quota_free")
    quota = {name: sum(int(pool["resource_usage"][name]) for pool in pools) for name in names}
    return _texts({**quota, **_totals(nodes)})


def _totals(nodes: Sequence[NodeUse]) -> dict[str, int]:
    """Return the totals of nodes: allocatable, held, and free on nodes in service."""
    return {
        "total_usage": sum(node.workflows["gpu"] + node.others["gpu"] for node in nodes),
        "total_capacity": sum(node.has["gpu"] for node in nodes),
        "total_free": sum(node.free_gpus for node in nodes),
    }


def _texts(numbers: Mapping[str, int]) -> Json:
    return {name: str(number) for name, number in numbers.items()}


@router.get("/resources", response_model=models.Resources)
def resources(
    service: Behind,
    _caller: Who,
    pools: Names = None,
    platforms: Names = None,
    concise: bool = False,  # noqa: FBT001, FBT002 - a parameter of the query
) -> Response:
    """List the nodes of pools, by default of all, with their usage."""
    if concise:
        raise UsageError("concise is not supported here", "The sums of each pool are at /api/pool_quota.")
    for name in pools or ():
        service.pool(name)
    wanted, kinds = set(pools or ()), set(platforms or ())
    found = [
        _resource(node)
        for node in service.nodes()
        if any((not wanted or pool in wanted) and (not kinds or kinds & set(its)) for pool, its in node.pools.items())
    ]
    return answer({"resources": found})


@router.get("/resources/{node}", response_model=models.Resources)
def resource(node: str, service: Behind, _caller: Who) -> Response:
    """Show one node."""
    nodes = service.nodes()
    found = [_resource(each) for each in nodes if each.name == node]
    if not found:
        hint = did_you_mean(node, [each.name for each in nodes]) or "All nodes are listed at /api/resources."
        raise NotFound(f'there is no node "{node[:80]}"', hint)
    return answer({"resources": found})


def _resource(node: NodeUse) -> Json:
    kinds = [f"{pool}/{kind}" for pool, its in node.pools.items() for kind in its or ("",)]
    return {
        "hostname": node.name,
        "backend": node.backend,
        "exposed_fields": {"node": node.name, "pool/platform": kinds},
        "pool_platform_labels": {pool: list(its) for pool, its in node.pools.items()},
        "allocatable_fields": dict(node.has),
        "usage_fields": dict(node.workflows),
        "non_workflow_usage_fields": dict(node.others),
        "label_fields": dict(node.labels()),
        "taints": [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.taints],
        "conditions": [word for word, holds in (("Ready", node.ready), ("Unschedulable", node.cordoned)) if holds],
        "resource_type": ("UNUSED", "RESERVED", "SHARED")[min(len(node.pools), 2)],
    }
