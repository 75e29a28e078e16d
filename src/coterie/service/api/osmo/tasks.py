"""OSMO's list of tasks over all workflows, in OSMO's shape."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Response

from coterie.errors import UsageError
from coterie.service.api.access import MANY, Behind, Who, answer
from coterie.service.api.models import osmo as models
from coterie.service.api.models.base import Short
from coterie.service.api.times import seconds
from coterie.service.driver.workflows.driven_workflow import shape_in
from coterie.service.pools.resources import whole_units
from coterie.service.submission.requests import check_statuses
from coterie.service.views import workflows
from coterie.store import Store, WorkflowQuery, WorkflowRecord

Json = dict[str, Any]
Names = Annotated[list[Short] | None, Query(max_length=MANY, description="Any of these.")]

# Tasks are read workflow by workflow, so the number of workflows is limited.
_LOOKED = 200

router = APIRouter(prefix="/api", tags=["osmo"])


@router.get("/task", response_model=models.Tasks)
def tasks(
    service: Behind,
    _caller: Who,
    workflow_id: Short | None = None,
    statuses: Names = None,
    users: Names = None,
    pools: Names = None,
    nodes: Names = None,
    started_after: datetime | None = None,
    started_before: datetime | None = None,
    offset: Annotated[int, Query(ge=0, le=10_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
    order: Literal["ASC", "DESC"] = "ASC",
    summary: bool = False,  # noqa: FBT001, FBT002 - a parameter of the query
    aggregate_by_workflow: bool = False,  # noqa: FBT001, FBT002 - a parameter of the query
) -> Response:
    """List tasks of one workflow, or of the newest 200 that match; the newest are taken, and shown in order."""
    if summary or aggregate_by_workflow:
        hint = "Sums of GPUs are at /api/pool_quota, and by workflow at /api/v1/workflows."
        raise UsageError("summary and aggregate_by_workflow are not supported here", hint)
    check_statuses(statuses or ())
    since, before = seconds(started_after), seconds(started_before)
    wanted = WorkflowQuery(owners=tuple(users or ()), pools=tuple(pools or ()))
    found = (
        _row(stored, task)
        for stored in _workflows(service.store, workflow_id, wanted)
        for group in workflows.whole(stored, ())["groups"]
        for task in group["tasks"]
        if (not statuses or task["status"] in statuses)
        and (not nodes or task["node"] in nodes)
        and _within(task["started"], since, before)
    )
    shown = list(islice(found, offset, offset + limit))
    return answer({"tasks": shown if order == "DESC" else shown[::-1]})


def _workflows(store: Store, ident: str | None, wanted: WorkflowQuery) -> Iterator[WorkflowRecord]:
    if ident is not None:
        one = store.workflow(ident)
        if (not wanted.owners or one.owner in wanted.owners) and (not wanted.pools or one.pool in wanted.pools):
            yield one
        return
    for known in store.workflows(wanted, None, _LOOKED).items:
        yield store.workflow(known.id)


def _within(started: str | None, since: float | None, before: float | None) -> bool:
    if since is None and before is None:
        return True
    if started is None:
        return False
    at = datetime.fromisoformat(started).timestamp()
    return (since is None or at >= since) and (before is None or at < before)


def _row(stored: WorkflowRecord, task: Json) -> Json:
    at = f"/api/workflow/{stored.id}"
    query = f"?task_name={quote(task['name'])}"
    failed = task["status"].startswith("FAILED")
    return {
        "user": stored.owner,
        "workflow_id": stored.id,
        "task_name": task["name"],
        "retry_id": max(0, task["attempt"] - 1),
        "pool": stored.pool,
        "node": task["node"],
        "start_time": task["started"],
        "end_time": task["ended"],
        "status": task["status"],
        "overview": at,
        "logs": f"{at}/logs{query}",
        "error_logs": f"{at}/error_logs{query}" if failed else None,
        **whole_units(dict(shape_in(stored.digest, task["name"]).requests)),
        "priority": stored.priority,
    }
