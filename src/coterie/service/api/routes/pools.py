"""The routes of pools, their levels and maps, and of plans."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from coterie.service.api.access import PRESENT, Behind, Document, Sent, Who, answer, bodies, submission
from coterie.service.api.models import plans
from coterie.service.api.models import pools as models
from coterie.service.api.models.base import Short
from coterie.service.api.routes.workflows import SUBMIT
from coterie.service.security import Role

router = APIRouter(prefix="/api/v1", tags=["pools"])

# A name of 63 characters, "=", and a label of 317.
_LEVEL_LENGTH = 381


@router.get("/pools", response_model=models.Pools)
def pools(
    service: Behind,
    _caller: Who,
    warnings: Annotated[bool, Query(description="Include findings, which take long on a large cluster.")] = True,  # noqa: FBT002 - a parameter of the query
) -> Response:
    """List all pools."""
    return answer({"items": service.pools(warnings=warnings)})


@router.get("/pools/{pool}", response_model=models.Pool)
def pool(pool: str, service: Behind, _caller: Who) -> Response:
    """Show a pool: its levels and labels, and its GPU usage."""
    return answer(service.pool(pool))


@router.put("/pools/{pool}", response_model=models.Applied, openapi_extra=bodies({"type": "object"}))
def apply_pool(
    pool: str,
    service: Behind,
    caller: Who,
    document: Document,
    file: Annotated[Short, Query(description="The name of the file, for messages.")] = "pool.yaml",
    dry_run: Annotated[bool, Query(description="Only say what it would do.")] = False,  # noqa: FBT002 - a parameter of the query
    version: Annotated[
        int | None, Query(ge=0, lt=2**31, description="The version that is to be replaced; 0 for a new pool.")
    ] = None,
) -> Response:
    """Create or change a pool: the body is the pool's section of a configuration or, as YAML, a whole configuration.

    The answer lists the workflows affected by a lost level.
    """
    caller.need(Role.ADMIN)
    return answer(service.apply_pool(pool, document, file=file, dry_run=dry_run, version=version, by=caller.known_as))


@router.delete("/pools/{pool}", status_code=204)
def delete_pool(pool: str, service: Behind, caller: Who) -> None:
    """Delete a pool that no workflow uses."""
    caller.need(Role.ADMIN)
    service.delete_pool(pool, by=caller.known_as)


@router.get("/pools/{pool}/map", response_model=models.Map)
def pool_map(pool: str, service: Behind, _caller: Who) -> Response:
    """Return the nodes of a pool by domain, with their holders."""
    return answer(service.map(pool))


@router.get("/pools/{pool}/history", response_model=models.PoolHistory)
def pool_history(
    pool: str,
    service: Behind,
    _caller: Who,
    hours: Annotated[int, Query(ge=1, le=24, description="How far back.")] = 6,
    points: Annotated[int, Query(ge=1, le=1440, description="The maximum number of points, of equal length.")] = 120,
) -> Response:
    """Return the use, the waiting workflows and the fragmentation of a pool over the last hours."""
    return answer(service.pool_history(pool, hours, points))


@router.get("/topologies", response_model=models.Topologies)
def topologies(service: Behind, _caller: Who) -> Response:
    """List the levels of every pool."""
    return answer({"items": service.topologies()})


@router.get("/topologies/{pool}", response_model=models.Topology)
def topology(pool: str, service: Behind, _caller: Who) -> Response:
    """Show the levels of a pool with their domains and counts."""
    return answer(service.topology(pool))


@router.get("/topologies/{pool}/users", response_model=models.TopologyUsers)
def topology_users(
    pool: str,
    service: Behind,
    _caller: Who,
    levels: Annotated[
        list[Annotated[str, Field(max_length=_LEVEL_LENGTH)]] | None,
        Query(description="The levels that the pool would have, as NAME or NAME=LABEL; their effects are included."),
    ] = None,
) -> Response:
    """Show who requires levels of a pool, and what other levels would do to them.

    These are groups of unfinished workflows and, where the levels come from a ClusterTopology, the PodCliqueSets and
    graph deployments of the cluster that refer to it.
    """
    return answer(service.topology_users(pool, levels))


@router.post("/plan", response_model=plans.Plan, openapi_extra=SUBMIT, dependencies=[PRESENT])
def plan(body: Sent, service: Behind, caller: Who) -> Response:
    """Return the placement that a workload would get now, or why it would get none; nothing is stored.

    It is a workflow, or a PodCliqueSet or a graph deployment, which a service does not run.
    """
    return answer(service.plan(submission(body, caller, None)))
