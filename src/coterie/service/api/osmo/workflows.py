"""OSMO's routes of workflows, in OSMO's shapes, for existing scripts.

OSMO writes quota numbers as text and counts attempts from zero; statuses have the same names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import PlainTextResponse

from coterie.errors import UsageError
from coterie.lifecycle import TaskState
from coterie.service.api.access import LABELS, MANY, PRESENT, Behind, Raw, Who, answer, json_body, pairs, parsed
from coterie.service.api.models import osmo as models
from coterie.service.api.models.base import Short
from coterie.service.api.models.requests import Priority
from coterie.service.api.routes.logs import MOST, TEXT
from coterie.service.api.times import seconds
from coterie.service.security import Caller, Role
from coterie.service.service import Service
from coterie.service.settings import Submission
from coterie.store import WorkflowQuery

Json = dict[str, Any]

# The maximum share of each task in the log of all tasks together.
_EACH = 1 << 16
_EVENTS = 10_000

Any_ = Annotated[list[Short] | None, Query(max_length=MANY, description="Any of these.")]
Labels = Annotated[list[str] | None, Query(max_length=LABELS, description="KEY=VALUE; all of them.")]
Retry = Annotated[int | None, Query(ge=0, lt=2**31 - 1)]
Lines = Annotated[int | None, Query(ge=1, le=100_000)]

router = APIRouter(prefix="/api", tags=["osmo"])


class OutputPart(NamedTuple):
    """The part of a workflow's logs or events that a request is about; None where it is not limited."""

    task: str | None
    attempt: int | None
    lines: int | None


def part_of(task_name: Short | None = None, retry_id: Retry = None, last_n_lines: Lines = None) -> OutputPart:
    """Return the part that a query names; attempts are counted from one."""
    return OutputPart(task_name, None if retry_id is None else retry_id + 1, last_n_lines)


Part = Annotated[OutputPart, Depends(part_of)]


async def template_of(request: Request, body: Raw) -> models.TemplateSpec | None:
    """Return the submitted workflow; None where an earlier one is to be run again."""
    return await parsed(request, body, models.TemplateSpec) if body else None


@router.post(
    "/pool/{pool}/workflow",
    response_model=models.Submitted,
    openapi_extra=json_body(models.TemplateSpec),
    dependencies=[PRESENT],
)
def submit(
    pool: str,
    body: Annotated[models.TemplateSpec | None, Depends(template_of)],
    service: Behind,
    caller: Who,
    label: Labels = None,
    env_vars: Annotated[list[str] | None, Query(max_length=MANY, description="Not supported: refused.")] = None,
    workflow_id: Annotated[
        Short | None, Query(description="An earlier workflow to run again, instead of a body.")
    ] = None,
    dry_run: bool = False,  # noqa: FBT001, FBT002 - a parameter of the query
    validation_only: bool = False,  # noqa: FBT001, FBT002 - a parameter of the query
    priority: Priority = "NORMAL",
) -> Response:
    """Submit a workflow; with dry_run or validation_only it is only planned, with its outcome in warnings.

    Such an answer has no addresses, since nothing is stored.
    """
    if env_vars:
        hint = "Write them under `environment` of the tasks, or into the file as templates that set_variables fill in."
        raise UsageError("env_vars are not supported here, and tasks would run without them", hint)
    wanted = replace(
        _sent(service, caller, body, workflow_id),
        pool=pool,
        priority=priority,
        labels=pairs(label or ()),
        owner=caller.name,
    )
    if dry_run or validation_only:
        plan = service.plan(wanted, rehearsed=True)
        nowhere = dict.fromkeys(("overview", "logs", "spec", "dashboard_url"), "")
        return answer({"name": plan["workload"], **nowhere, "warnings": [*_messages(plan), *_verdicts(plan)]})
    caller.need(Role.USER)
    view = service.submit(wanted, force=True)  # which says so in a warning
    return answer(_submitted(view, _messages(view)))


def _sent(service: Service, caller: Caller, body: models.TemplateSpec | None, earlier: str | None) -> Submission:
    """Return the submission: the one sent, or that of an earlier workflow."""
    if (body is None) is (earlier is None):
        twice = "both a workflow and workflow_id were sent" if body else "neither a workflow nor workflow_id was sent"
        raise UsageError(twice, "Send the workflow as `file` of a JSON body, or name an earlier one in workflow_id.")
    if body is not None:
        return Submission(
            body.file.encode(), sets=tuple(body.set_variables), set_strings=tuple(body.set_string_variables)
        )
    assert earlier is not None  # noqa: S101 - one of the two is there
    upload = service.store.upload(earlier)
    if upload.files:
        # Only the caller who submitted the files can read them; others see no more than their names.
        caller.need_own(service.owner_of(earlier))
    return Submission(
        upload.source,
        upload.file,
        sets=upload.sets,
        set_strings=upload.set_strings,
        local_files=upload.files,
        amendment=upload.amendment,
    )


def _submitted(view: Json, warnings: list[str]) -> Json:
    at = f"/api/workflow/{view['id']}"
    addresses = {"overview": at, "logs": f"{at}/logs", "spec": f"{at}/spec", "dashboard_url": ""}
    return {"name": view["id"], **addresses, "warnings": warnings}


@router.post("/pool/{pool}/workflow/{name}/restart", response_model=models.Submitted)
def restart(pool: str, name: str, service: Behind, caller: Who) -> Response:
    """Run again what failed. The workflow keeps its name, and groups that completed are kept."""
    known = service.store.summary(name)
    caller.need_own(known.owner)
    if known.pool != pool:
        hint = f"Restart it there: POST /api/pool/{known.pool}/workflow/{name}/restart"
        raise UsageError(f'workflow "{name}" is in pool "{known.pool}", and can be resumed only there', hint)
    told = "the workflow resumes under its own name; groups that completed are kept"
    return answer(_submitted(service.retry(name, by=caller.known_as), [told]))


def _messages(found: Json) -> list[str]:
    return [one["message"] for one in found["warnings"]]


def _verdicts(plan: Json) -> Iterator[str]:
    """Return, for each group, whether it fits now."""
    for group in plan["groups"]:
        refusal = group["refusal"]
        why = f": {refusal['message']} ({refusal['reason']})" if refusal else ""
        yield f'placement of group "{group["name"]}": {group["verdict"]}{why}'


@router.get("/workflow", response_model=models.Rows)
def workflows(
    service: Behind,
    _caller: Who,
    name: Short = "",
    statuses: Any_ = None,
    users: Any_ = None,
    pools: Any_ = None,
    label: Labels = None,
    submitted_after: datetime | None = None,
    submitted_before: datetime | None = None,
    offset: Annotated[int, Query(ge=0, le=10_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
    order: Literal["ASC", "DESC"] = "ASC",
) -> Response:
    """List workflows; the newest are taken, and shown in the requested order."""
    wanted = WorkflowQuery(
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
    return answer({"workflows": shown if order == "DESC" else shown[::-1], "more_entries": more})


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
) -> Response:
    """Show a workflow."""
    view = service.workflow(name)
    return answer({**_row(view), "groups": [] if skip_groups else [_group(group) for group in view["groups"]]})


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
def logs(name: str, service: Behind, _caller: Who, part: Part) -> Response:
    """Return the log of a task, or of all tasks with their names before each line; of long ones, the end."""
    return _log(service, name, part, lambda _: True)


@router.get("/workflow/{name}/error_logs", response_class=PlainTextResponse)
def error_logs(name: str, service: Behind, _caller: Who, part: Part) -> Response:
    """Return the log of a task, or of all failed tasks: tasks write their errors into the same log."""
    return _log(service, name, part, lambda task: task.status.failed)


@router.get("/workflow/{name}/events", response_class=PlainTextResponse)
def events(name: str, service: Behind, _caller: Who, part: Part) -> Response:
    """Return the events, a line each: the time, the object, and the message; of many, the last ones."""
    if part.task is not None:
        service.log_ended(name, part.task)  # raises for an unknown task
    lines = deque[bytes](maxlen=_EVENTS)
    after = 0
    while page := service.events(after, name):
        after = page[-1]["seq"]
        lines += [
            _line(one) for one in page if part.task in (None, one["task"]) and part.attempt in (None, one["attempt"])
        ]
    return _text(list(lines), part.lines)


def _line(event: Json) -> bytes:
    whom = event["task"] or event["group"] or event["workflow"]
    again = f" retry-{event['attempt'] - 1}" if event["task"] and event["attempt"] > 1 else ""
    day, _, hour = event["at"].removesuffix("Z").partition("T")
    said = " ".join(event["message"].split())
    return f"{day} {hour} [{whom}{again}] {event['kind']}: {said}\n".encode("utf-8", "replace")


def _text(lines: list[bytes], last: int | None) -> Response:
    return Response(b"".join(lines[-last:] if last else lines), media_type=TEXT)


def _log(service: Service, name: str, part: OutputPart, chosen: Callable[[TaskState], bool]) -> Response:
    """Return the log of the requested task, or of all chosen tasks where none is requested."""
    if part.task is not None:
        return _text(service.log_end(name, part.task, part.attempt, MOST).splitlines(keepends=True), part.lines)
    logs_of_tasks = [
        f"[{task}] ".encode() + line
        for task, text in service.log_ends(name, MOST, _EACH, chosen)
        for line in text.splitlines(keepends=True)
    ]
    return _text(logs_of_tasks, part.lines)


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
) -> Response:
    """Request the cancellation of a workflow."""
    caller.need_own(service.owner_of(name))
    view = service.cancel(name, message, force=force, by=caller.known_as)
    return answer({"name": view["id"], "status": view["status"]})
