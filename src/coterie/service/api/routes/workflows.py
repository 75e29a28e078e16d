"""The routes of workflows: submit, show, why, cancel, retry, delete."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Header, Query, Request, Response

from coterie.errors import UsageError
from coterie.planning.changes import AS_IT_IS, WhatIf
from coterie.service.api.access import (
    JSON,
    LABELS,
    MANY,
    PRESENT,
    Behind,
    Cancelling,
    Retrying,
    Sent,
    Together,
    Who,
    answer,
    bodies,
    json_body,
    pairs,
    submission,
)
from coterie.service.api.models import plans, requests
from coterie.service.api.models import workflows as models
from coterie.service.api.models.base import Short
from coterie.service.api.routes.plain_submission import plain_submission
from coterie.service.api.times import seconds
from coterie.service.pools.usage import WhyQuery
from coterie.service.security import Role
from coterie.store import WorkflowQuery

router = APIRouter(prefix="/api/v1/workflows", tags=["workflows"])

SUBMIT = bodies(requests.Submit.model_json_schema())


async def what_if_of(
    prefer: Annotated[
        list[Short] | None, Query(max_length=MANY, description="Prefer these levels instead of requiring them.")
    ] = None,
    coarsen: Annotated[
        list[Short] | None, Query(max_length=MANY, description="Ask for the next coarser levels instead.")
    ] = None,
    tasks: Annotated[
        list[str] | None, Query(max_length=MANY, description="Run only the first N tasks of a group: GROUP=N.")
    ] = None,
    without: Annotated[
        list[Short] | None, Query(max_length=MANY, description="Assume that the pods of these owners are gone.")
    ] = None,
    uncordon: Annotated[
        list[Short] | None, Query(max_length=MANY, description="Assume that these nodes are not cordoned.")
    ] = None,
    tolerate: Annotated[
        list[Short] | None, Query(max_length=MANY, description="Let tasks tolerate the taints with these keys.")
    ] = None,
    allow_excluded: Annotated[bool, Query(description="Ignore nodesExcluded.")] = False,  # noqa: FBT002 - a parameter of the query
) -> WhatIf:
    """Return the hypothetical changes of a request."""
    return WhatIf(
        prefer=tuple(prefer or ()),
        coarsen=tuple(coarsen or ()),
        tasks=tuple(tasks or ()),
        without=tuple(without or ()),
        uncordon=tuple(uncordon or ()),
        tolerate=tuple(tolerate or ()),
        allow_excluded=allow_excluded,
    )


Supposed = Annotated[WhatIf, Depends(what_if_of)]


def submit(
    request: Request,
    body: Sent,
    service: Behind,
    caller: Who,
    what_if: Supposed,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
    dry_run: Annotated[bool, Query(description="Answer with the plan (200), and change nothing.")] = False,  # noqa: FBT002 - a parameter of the query
    plan: Annotated[
        str | None, Query(pattern="^[0-9a-f]{8}$", description="The id of a plan; 409 if it would be another one now.")
    ] = None,
    force: Annotated[bool, Query(description="Queue it even if it can never run in its pool as it is now.")] = False,  # noqa: FBT002 - a parameter of the query
) -> Response:
    """Submit a workflow. The parameters that ask what if change it; the answer says how.

    The same Idempotency-Key with the same content gives the same workflow again (200), with other content 409. One that
    can never run in its pool is refused (409, NeverFits).
    """
    wanted = replace(submission(body, caller, idempotency_key), what_if=None if what_if == AS_IT_IS else what_if)
    if dry_run:
        if plan is not None:
            raise UsageError("a dry run cannot be held to a plan", "Leave out plan, and compare the id of the answer.")
        return answer(service.plan(wanted, rehearsed=True))
    caller.need(Role.USER)
    made = service.submit(wanted, plan, force=force)
    view = {**made, "page": f"/workflows/{made['id']}" if request.app.state.page else None}
    return answer(view, 201 if view["created"] else 200, {"Location": f"/api/v1/workflows/{view['id']}"})


router.add_api_route(
    "",
    submit,
    methods=["POST"],
    status_code=201,
    response_model=models.Submitted,
    responses={
        200: {"model": models.Submitted | plans.Plan, "description": "It existed already; or the plan."},
    },
    openapi_extra=SUBMIT,
    dependencies=[PRESENT],
    route_class_override=plain_submission(submit),
)


@router.get("", response_model=models.Rows)
async def workflows(
    request: Request,
    service: Behind,
    shared: Together,
    _caller: Who,
    status: Annotated[list[str] | None, Query(max_length=MANY, description="Any of these.")] = None,
    pool: Annotated[list[Short] | None, Query(max_length=MANY, description="Any of these.")] = None,
    owner: Annotated[list[Short] | None, Query(max_length=MANY, description="Any of these.")] = None,
    name: Annotated[Short, Query(description="The beginning of the name.")] = "",
    label: Annotated[list[str] | None, Query(max_length=LABELS, description="KEY=VALUE; all must be there.")] = None,
    submitted_after: Annotated[datetime | None, Query(description="ISO 8601, or seconds since 1970.")] = None,
    submitted_before: Annotated[datetime | None, Query(description="ISO 8601, or seconds since 1970.")] = None,
    finished: bool | None = None,  # noqa: FBT001 - a parameter of the query
    after: Annotated[int | None, Query(ge=0, lt=2**62, description="The `next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """List workflows, newest first."""
    wanted = WorkflowQuery(
        statuses=tuple(status or ()),
        pools=tuple(pool or ()),
        owners=tuple(owner or ()),
        name_prefix=name,
        labels=pairs(label or ()),
        submitted_after=seconds(submitted_after),
        submitted_before=seconds(submitted_before),
        finished=finished,
    )
    found = await shared.of(
        ("workflows", request.url.query), lambda: msgspec.json.encode(service.workflows(wanted, after, limit))
    )
    return Response(found, media_type=JSON)


@router.get("/{workflow}", response_model=models.Workflow)
def workflow(workflow: str, service: Behind, _caller: Who) -> Response:
    """Show a workflow with its groups and tasks."""
    return answer(service.workflow(workflow))


@router.get("/{workflow}/why", response_model=models.Why | models.WhyInDetail)
def why(
    workflow: str,
    service: Behind,
    _caller: Who,
    what_if: Supposed,
    group: Short | None = None,
    verbose: Annotated[bool, Query(description="Answer with all the evidence: `alternatives`.")] = False,  # noqa: FBT002 - a parameter of the query
) -> Response:
    """Return why groups wait: the reason, the nearest domains, the holders, and verified remedies.

    With hypothetical changes, groups that would be placed have `assignments`; nothing changes.
    """
    return answer(service.why(workflow, group, WhyQuery(what_if, verbose)))


@router.get("/{workflow}/placement", response_model=models.Placement)
def placement(workflow: str, service: Behind, _caller: Who) -> Response:
    """Compare the nodes of running tasks with their constraints: held, missed, violated."""
    return answer(service.placement(workflow))


@router.get("/{workflow}/spec", response_model=models.Source)
def spec(workflow: str, service: Behind, _caller: Who) -> Response:
    """Return the workflow as it was submitted."""
    return answer(service.spec(workflow))


@router.post(
    "/{workflow}/cancel",
    status_code=202,
    response_model=models.Workflow,
    openapi_extra=json_body(requests.Cancel),
)
def cancel(workflow: str, service: Behind, caller: Who, request: Cancelling) -> Response:
    """Cancel a workflow, any number of times; it ends as FAILED_CANCELED. The answer may not show it yet.

    One that has ended in another way is left unchanged (409).
    """
    caller.need_own(service.owner_of(workflow))
    return answer(service.cancel(workflow, request.message, force=request.force, by=caller.known_as), 202)


@router.post(
    "/{workflow}/retry",
    status_code=202,
    response_model=models.Workflow,
    openapi_extra=json_body(requests.Retry),
)
def retry(workflow: str, service: Behind, caller: Who, request: Retrying) -> Response:
    """Run what failed again: one task, or all. The answer may not show it yet."""
    caller.need_own(service.owner_of(workflow))
    return answer(service.retry(workflow, request.task, by=caller.known_as), 202)


@router.delete("/{workflow}", status_code=204, responses={202: {"model": models.Deletion}})
def delete(
    workflow: str,
    service: Behind,
    caller: Who,
    force: Annotated[bool, Query(description="Cancel one that has not ended, and delete it then (202).")] = False,  # noqa: FBT002 - a parameter of the query
) -> Response:
    """Delete an ended workflow, with its logs; one that has not ended is refused (409) unless with force."""
    caller.need_own(service.owner_of(workflow))
    if service.delete(workflow, force=force, by=caller.known_as):
        return Response(status_code=204)
    return answer({"id": workflow, "deleted": False}, 202)
