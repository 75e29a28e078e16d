"""OSMO's paths that are cheap to offer, in OSMO's shapes, so that scripts find what they know.

Numbers of quotas are text there; statuses have the same names here. An attempt is counted from zero there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import PlainTextResponse

from coterie.service.api.access import Behind, Who, pairs
from coterie.service.api.logs import MOST, TEXT
from coterie.service.api.models import osmo as models
from coterie.service.api.models.base import Short
from coterie.service.api.models.requests import Priority
from coterie.service.api.times import seconds
from coterie.service.security import Role
from coterie.service.service import Service
from coterie.service.settings import Submission
from coterie.service.store import Query as Filter

Json = dict[str, Any]

# All tasks together; each of them is cut to its end.
_EACH = 1 << 16

router = APIRouter(prefix="/api", tags=["osmo"])


@router.post("/pool/{pool}/workflow", response_model=models.Submitted)
def submit(
    pool: str,
    body: models.TemplateSpec,
    service: Behind,
    caller: Who,
    label: Annotated[list[str] | None, Query(description="KEY=VALUE.")] = None,
    dry_run: bool = False,  # noqa: FBT001, FBT002 - a parameter of the query
    validation_only: bool = False,  # noqa: FBT001, FBT002 - a parameter of the query
    priority: Priority = "NORMAL",
) -> Json:
    """Submit a workflow; with dry_run or validation_only it is only planned, and warnings say what would become of it.

    Such an answer has no addresses, as there is nothing to look at.
    """
    wanted = Submission(
        source=body.file.encode(),
        pool=pool,
        sets=tuple(body.set_variables),
        set_strings=tuple(body.set_string_variables),
        priority=priority,
        labels=pairs(label or ()),
        owner=caller.name,
    )
    if dry_run or validation_only:
        plan = service.plan(wanted, rehearsed=True)
        nowhere = dict.fromkeys(("overview", "logs", "spec", "dashboard_url"), "")
        return {"name": plan["workload"], **nowhere, "warnings": [*_messages(plan), *_verdicts(plan)]}
    caller.need(Role.USER)
    view = service.submit(wanted)
    at = f"/api/workflow/{view['id']}"
    addresses = {"overview": at, "logs": f"{at}/logs", "spec": f"{at}/spec", "dashboard_url": ""}
    return {"name": view["id"], **addresses, "warnings": _messages(view)}


def _messages(found: Json) -> list[str]:
    return [one["message"] for one in found["warnings"]]


def _verdicts(plan: Json) -> Iterator[str]:
    """Say of each group whether there is a place for it now."""
    for group in plan["groups"]:
        refusal = group["refusal"]
        why = f": {refusal['message']} ({refusal['reason']})" if refusal else ""
        yield f'placement of group "{group["name"]}": {group["verdict"]}{why}'


@router.get("/workflow", response_model=models.Rows)
def workflows(
    service: Behind,
    _caller: Who,
    name: Short = "",
    statuses: Annotated[list[str] | None, Query()] = None,
    users: Annotated[list[str] | None, Query(description="Any of these.")] = None,
    pools: Annotated[list[str] | None, Query(description="Any of these.")] = None,
    label: Annotated[list[str] | None, Query(description="KEY=VALUE; all must be there.")] = None,
    submitted_after: datetime | None = None,
    submitted_before: datetime | None = None,
    offset: Annotated[int, Query(ge=0, le=10_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
    order: Literal["ASC", "DESC"] = "ASC",
) -> Json:
    """List workflows; the newest are taken, and shown in the order asked for."""
    wanted = Filter(
        statuses=tuple(statuses or ()),
        owners=tuple(users or ()),
        pools=tuple(pools or ()),
        name_prefix=name,
        labels=pairs(label or ()),
        submitted_after=seconds(submitted_after),
        submitted_before=seconds(submitted_before),
    )
    rows: list[Json] = []
    after: int | None = None
    more = True
    while more and len(rows) < offset + limit:
        page = service.workflows(wanted, after, min(1000, offset + limit - len(rows)))
        rows += page["items"]
        after = page["next"]
        more = after is not None
    shown = [_row(row) for row in rows[offset:]]
    return {"workflows": shown if order == "DESC" else shown[::-1], "more_entries": more}


def _row(row: Json) -> Json:
    return {
        "user": row["owner"],
        "name": row["id"],
        "status": row["status"],
        "pool": row["pool"],
        "priority": row["priority"],
        "submit_time": row["submitted"],
        "start_time": row["started"],
        "end_time": row["ended"],
    }


@router.get("/workflow/{name}", response_model=models.Workflow)
def workflow(
    name: str,
    service: Behind,
    _caller: Who,
    skip_groups: bool = False,  # noqa: FBT001, FBT002 - a parameter of the query
) -> Json:
    """Show a workflow."""
    view = service.workflow(name)
    return {**_row(view), "groups": [] if skip_groups else [_group(group) for group in view["groups"]]}


def _group(group: Json) -> Json:
    return {
        "name": group["name"],
        "status": group["status"],
        "start_time": group["started"],
        "end_time": group["ended"],
        "failure_message": group["message"] or None,
        "tasks": [
            {
                "name": task["name"],
                "status": task["status"],
                "lead": task["lead"],
                "retry_id": max(0, task["attempt"] - 1),
                "node_name": task["node"],
                "exit_code": task["exit_code"],
                "failure_message": task["message"] or None,
                "start_time": task["started"],
                "end_time": task["ended"],
            }
            for task in group["tasks"]
        ],
    }


@router.get("/workflow/{name}/logs", response_class=PlainTextResponse)
def logs(
    name: str,
    service: Behind,
    _caller: Who,
    task_name: Short | None = None,
    retry_id: Annotated[int | None, Query(ge=0, lt=2**31 - 1)] = None,
    last_n_lines: Annotated[int | None, Query(ge=1, le=100_000)] = None,
) -> Response:
    """Return the log of a task, or of all tasks with their names before each line."""
    if task_name is not None:
        attempt = None if retry_id is None else retry_id + 1
        lines = service.log(name, task_name, attempt, 0, MOST).splitlines(keepends=True)
    else:
        lines = list(_all_lines(service, name))
    return Response(b"".join(lines[-last_n_lines:] if last_n_lines else lines), media_type=TEXT)


def _all_lines(service: Service, name: str) -> Iterator[bytes]:
    left = MOST
    for group in service.workflow(name)["groups"]:
        for task in (one for one in group["tasks"] if one["attempt"]):
            text = service.log(name, task["name"], None, 0, min(_EACH, left))
            left -= len(text)
            yield from (f"[{task['name']}] ".encode() + line for line in text.splitlines(keepends=True))


@router.get("/workflow/{name}/spec", response_class=PlainTextResponse)
def spec(name: str, service: Behind, _caller: Who) -> str:
    """Return the workflow as it was submitted."""
    return str(service.spec(name)["source"])


@router.post("/workflow/{name}/cancel", response_model=models.Cancelled)
def cancel(
    name: str,
    service: Behind,
    caller: Who,
    message: Annotated[str, Query(max_length=1000)] = "",
    force: bool = False,  # noqa: FBT001, FBT002 - a parameter of the query
) -> Json:
    """Ask a workflow to stop."""
    caller.need_own(service.owner_of(name))
    view = service.cancel(name, message, force=force)
    return {"name": view["id"], "status": view["status"]}


@router.get("/pool", response_model=models.Pools)
def pools(service: Behind, _caller: Who) -> Json:
    """List pools with their levels and quotas; pools of one backend share its nodes."""
    views = service.pools()
    found = [(pool["backend"], _pool(pool)) for pool in views]
    backends = list(dict.fromkeys(backend for backend, _ in found))
    return {
        "node_sets": [{"pools": [pool for its, pool in found if its == backend]} for backend in backends],
        "resource_sum": _sum([pool for _, pool in found], service.backend_gpus()),
    }


@router.get("/pool_quota", response_model=models.Pools)
def pool_quota(service: Behind, caller: Who) -> Json:
    """List the same."""
    return pools(service, caller)


def _pool(pool: Json) -> Json:
    gpus = pool["gpus"]
    limit = gpus["total"] if gpus["limit"] is None else gpus["limit"]
    quota = {
        "quota_used": gpus["used"],
        "quota_limit": limit,
        "quota_free": max(0, limit - gpus["used"]),
    }
    return {
        "name": pool["name"],
        "description": pool["description"],
        "status": "ONLINE",
        "backend": pool["backend"],
        "topology_keys": pool["topology_keys"],
        "resource_usage": _texts({**quota, **_totals(gpus["total"], gpus["free"])}),
    }


def _sum(pools: list[Json], backends: Mapping[str, Mapping[str, int]]) -> Json:
    """Return all quotas together, and all nodes: those that pools share are there once."""
    names = ("quota_used", "quota_limit", "quota_free")
    quota = {name: sum(int(pool["resource_usage"][name]) for pool in pools) for name in names}
    total, free = (sum(found[name] for found in backends.values()) for name in ("total", "free"))
    return _texts({**quota, **_totals(total, free)})


def _totals(total: int, free: int) -> dict[str, int]:
    return {"total_usage": max(0, total - free), "total_capacity": total, "total_free": free}


def _texts(numbers: Mapping[str, int]) -> Json:
    return {name: str(number) for name, number in numbers.items()}
