"""Events: as a list, or as server-sent events that resume where a client left off."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.sse import EventSourceResponse, format_sse_event

from coterie.errors import NotFound, Unauthorized, Unavailable, UsageError
from coterie.service.api.access import Admission, Admitted, Behind, Following, Together, Who
from coterie.service.api.change_feed import Followers
from coterie.service.api.models import state as models
from coterie.service.api.shared_work import SharedWork
from coterie.service.service import Service

# A regular comment keeps proxies from closing a silent stream, and detects disconnected clients.
KEEP_ALIVE_S = 15.0
# A follower checks at least this often, in case a wake-up got lost.
LOOK_S = 1.0
RETRY_MS = 1000
PAGE = 500

router = APIRouter(prefix="/api/v1", tags=["events"])

After = Annotated[int, Query(ge=0, lt=2**62, description="The number of the last event that is known already.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="Of a list; a stream has no limit.")]
Follow = Annotated[
    bool | None, Query(description="A stream, or a list; without it, a stream for `Accept: text/event-stream`.")
]
LastEvent = Annotated[
    str | None, Header(alias="Last-Event-ID", max_length=32, description="Like `after`; the larger of them counts.")
]
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A list, or a stream whose `data` are events as in the list. A stream ends with `event: end` "
        "and a `reason`: finished, deleted, or unauthorized for a token that is no longer known.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
}
_DONE: dict[int | str, dict[str, Any]] = {204: {"description": "Everything was seen, and nothing more will happen."}}


class EventQuery(NamedTuple):
    """The events that a request is about; `resumed` if it continues a stream that was interrupted."""

    after: int
    limit: int
    follow: bool
    resumed: bool


def query_of(
    request: Request, after: After = 0, limit: Limit = 1000, follow: Follow = None, last: LastEvent = None
) -> EventQuery:
    """Return the query of a request; the header of a resumed stream and `after` may both give the last known event."""
    streams = "text/event-stream" in request.headers.get("accept", "") if follow is None else follow
    if last and not (last.isascii() and last.isdecimal() and len(last) < 19):
        raise UsageError("the Last-Event-ID header is not the number of an event", "Send the id of the last event.")
    return EventQuery(max(after, int(last)) if last else after, limit, streams, last is not None)


class EventStream:
    """A stream of events for one client; no thread is held while nothing happens."""

    def __init__(self, service: Service, followers: Followers, shared: SharedWork, admission: Admission) -> None:
        self.service = service
        self._followers, self._shared, self._admission = followers, shared, admission

    def response(self, workflow: str | None, after: int) -> Response:
        """Return the events after a number, and all that follow; raise `Unavailable` if there are too many streams."""
        stream = EventSourceResponse(self.events(workflow, after), headers={"X-Accel-Buffering": "no"})
        return self._followers.streamed(stream)

    async def events(self, workflow: str | None, after: int) -> AsyncIterator[bytes]:
        """Yield events until the workflow is done, the caller is no longer known, or the service ends."""
        with self._followers.joined() as ear:
            yield format_sse_event(retry=RETRY_MS)
            spoke = time.monotonic()
            while not self._followers.closed:
                try:
                    # Most followers have seen the same events, and wait for the same.
                    found, done = await self._shared.of(
                        ("events", workflow, after), partial(_look, self.service, workflow, after)
                    )
                    await self._admission.check(telling=bool(found))
                except Unavailable:
                    found, done = [], False
                except NotFound:
                    yield _end("deleted")
                    return
                except Unauthorized:
                    yield _end("unauthorized")
                    return
                for one in found:
                    after = one["seq"]
                    yield format_sse_event(data_str=json.dumps(one), id=str(after))
                if found:
                    spoke = time.monotonic()
                elif done:
                    yield _end("finished")
                    return
                elif not await ear.news(LOOK_S) and time.monotonic() - spoke >= KEEP_ALIVE_S:
                    yield format_sse_event(comment="still here")
                    spoke = time.monotonic()


def stream_of(service: Behind, followers: Following, shared: Together, admission: Admitted) -> EventStream:
    """Return the stream for the client of a request."""
    return EventStream(service, followers, shared, admission)


Asked = Annotated[EventQuery, Depends(query_of)]
Stream = Annotated[EventStream, Depends(stream_of)]


@router.get("/events", response_model=models.Events, responses=_RESPONSES)
def events(_caller: Who, query: Asked, stream: Stream) -> Any:  # noqa: ANN401 - a list, or a stream of the same
    """Return the events after a number; or follow them as server-sent events."""
    return stream.response(None, query.after) if query.follow else _list(stream.service, None, query)


@router.get("/workflows/{workflow}/events", response_model=models.Events, responses={**_RESPONSES, **_DONE})
def workflow_events(_caller: Who, workflow: str, query: Asked, stream: Stream) -> Any:  # noqa: ANN401 - see above
    """Return the events of one workflow; a stream ends when the workflow has ended and is cleaned up."""
    if not query.follow:
        return _list(stream.service, workflow, query)
    found, done = _look(stream.service, workflow, query.after)
    if done and not found and query.resumed:
        return Response(status_code=204)  # which tells a browser not to reconnect
    return stream.response(workflow, query.after)


def _list(service: Service, workflow: str | None, query: EventQuery) -> dict[str, Any]:
    newest = service.last_event()
    return {"items": service.events(query.after, workflow, query.limit), "last": newest}


def _look(service: Service, workflow: str | None, after: int) -> tuple[list[dict[str, Any]], bool]:
    """Return events, and whether no more will follow; checked in this order, so that the last event is never missed."""
    done = workflow is not None and service.store.summary(workflow).finished
    found = service.events(after, workflow, PAGE)
    return found, done


def _end(reason: str) -> bytes:
    return format_sse_event(event="end", data_str=json.dumps({"reason": reason}))
