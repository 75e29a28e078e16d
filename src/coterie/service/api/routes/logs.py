"""Logs of tasks: a part, or a stream of all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse, StreamingResponse

from coterie.errors import NotFound, Unauthorized, Unavailable
from coterie.service.api.access import Admission, Admitted, Behind, Following, Who
from coterie.service.api.change_feed import Followers
from coterie.service.api.models.base import Short
from coterie.service.service import Service

# The maximum size of one answer, or of one part of a stream.
MOST = 1 << 20
# A follower checks at least this often, and soon after it found something.
QUICK_S, SLOW_S = 0.1, 1.0
TEXT = "text/plain; charset=utf-8"

router = APIRouter(prefix="/api/v1", tags=["workflows"])


@router.get(
    "/workflows/{workflow}/logs",
    response_class=PlainTextResponse,
    responses={200: {"headers": {name: {"schema": {"type": "integer"}} for name in ("X-Offset", "X-Next-Offset")}}},
)
def logs(
    workflow: str,
    service: Behind,
    followers: Following,
    admission: Admitted,
    _caller: Who,
    task: Short,
    attempt: Annotated[int | None, Query(ge=1, lt=2**31, description="The latest, where none is given.")] = None,
    offset: Annotated[int, Query(ge=0, lt=2**62, description="In bytes.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST, description="In bytes; not for `follow`.")] = MOST,
    follow: Annotated[bool, Query(description="Keep following until the attempt ends.")] = False,  # noqa: FBT002 - a parameter of the query
    tail: Annotated[int | None, Query(ge=0, lt=2**31, description="Only this number of last lines.")] = None,
    since: Annotated[
        float | None, Query(ge=0, lt=2**40, description="Only what was written after this time, in seconds since 1970.")
    ] = None,
) -> Response:
    """Return the log of a task, from a byte on.

    `X-Offset` is the number of that byte, where `tail` or `since` moved it; `X-Next-Offset` is where to continue.
    """
    if tail is not None or since is not None:
        offset = max(offset, service.log_start(workflow, task, attempt, tail, since))
    first = service.log(workflow, task, attempt, offset, limit)
    if follow:
        followed = _followed(service, followers, admission, LogRequest(workflow, task, attempt, offset))
        return followers.streamed(StreamingResponse(followed, media_type=TEXT, headers={"X-Offset": str(offset)}))
    headers = {"X-Offset": str(offset), "X-Next-Offset": str(offset + len(first))}
    return Response(first, media_type=TEXT, headers=headers)


@dataclass
class LogRequest:
    """The log of one attempt, by default the running or last one, and the offset sent so far."""

    workflow: str
    task: str
    attempt: int | None
    offset: int


async def _followed(
    service: Service, followers: Followers, admission: Admission, wanted: LogRequest
) -> AsyncIterator[bytes]:
    """Yield the log of one attempt, as long as the caller is known; no thread is held while nothing is written."""
    workflow, task = wanted.workflow, wanted.task
    pause = QUICK_S
    with followers.joined() as ear:
        while not followers.closed:
            try:
                wanted.attempt = wanted.attempt or await run_in_threadpool(_begun, service, workflow, task)
                # Checked before reading: output written in between is read in the next round.
                ended = await run_in_threadpool(service.log_ended, workflow, task, wanted.attempt)
                while piece := await run_in_threadpool(
                    service.log, workflow, task, wanted.attempt, wanted.offset, MOST
                ):
                    await admission.check(telling=True)
                    wanted.offset += len(piece)
                    pause = QUICK_S
                    yield piece
                await admission.check(telling=False)
            except Unavailable:
                ended = False
            except (NotFound, Unauthorized):  # the workflow or the token was deleted meanwhile
                return
            if ended:
                return
            pause = QUICK_S if await ear.news(pause) else min(pause * 2, SLOW_S)


def _begun(service: Service, workflow: str, task: str) -> int | None:
    """Return the attempt that a follower reads: the running or last one, None before the first."""
    tasks = (each for group in service.workflow(workflow)["groups"] for each in group["tasks"])
    return next((each["attempt"] for each in tasks if each["name"] == task), None) or None
