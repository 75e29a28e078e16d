"""Logs of tasks: a piece, or all of it as it is written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse, StreamingResponse

from coterie.errors import NotFound, Unavailable
from coterie.service.api.access import Behind, Following, Who
from coterie.service.api.following import Followers
from coterie.service.api.models.base import Short
from coterie.service.service import Service

# How much of a log one answer, or one piece of a stream, holds at most.
MOST = 1 << 20
# A follower looks at least this often, and soon after it found something.
QUICK_S, SLOW_S = 0.1, 1.0
TEXT = "text/plain; charset=utf-8"

router = APIRouter(prefix="/api/v1", tags=["workflows"])


@router.get(
    "/workflows/{workflow}/logs",
    response_class=PlainTextResponse,
    responses={200: {"headers": {"X-Next-Offset": {"schema": {"type": "integer"}}}}},
)
def logs(
    workflow: str,
    service: Behind,
    followers: Following,
    _caller: Who,
    task: Short,
    attempt: Annotated[int | None, Query(ge=1, lt=2**31, description="The latest, where none is given.")] = None,
    offset: Annotated[int, Query(ge=0, lt=2**62, description="In bytes.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST, description="In bytes; not for `follow`.")] = MOST,
    follow: Annotated[bool, Query(description="Go on until the attempt ends.")] = False,  # noqa: FBT002 - a parameter of the query
) -> Response:
    """Return what a task has written, from a byte on; `X-Next-Offset` says where to go on."""
    first = service.log(workflow, task, attempt, offset, limit)
    if follow:
        return StreamingResponse(_followed(service, followers, workflow, task, attempt, offset), media_type=TEXT)
    return Response(first, media_type=TEXT, headers={"X-Next-Offset": str(offset + len(first))})


async def _followed(
    service: Service, followers: Followers, workflow: str, task: str, attempt: int | None, offset: int
) -> AsyncIterator[bytes]:
    """Yield the log of one attempt. No thread is held while nothing is written."""
    pause = QUICK_S
    with followers.joined() as ear:
        while not followers.closed:
            try:
                attempt = attempt or await run_in_threadpool(_begun, service, workflow, task)
                # Asked before reading: what is written between the two is read the next time round.
                ended = await run_in_threadpool(service.log_ended, workflow, task, attempt)
                while piece := await run_in_threadpool(service.log, workflow, task, attempt, offset, MOST):
                    offset += len(piece)
                    pause = QUICK_S
                    yield piece
            except Unavailable:
                ended = False
            except NotFound:  # deleted meanwhile
                return
            if ended:
                return
            pause = QUICK_S if await ear.news(pause) else min(pause * 2, SLOW_S)


def _begun(service: Service, workflow: str, task: str) -> int | None:
    """Return the attempt that a follower reads: the one that runs or ran last, none before the first."""
    tasks = (each for group in service.workflow(workflow)["groups"] for each in group["tasks"])
    return next((each["attempt"] for each in tasks if each["name"] == task), None) or None
