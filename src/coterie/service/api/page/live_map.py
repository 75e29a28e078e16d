"""The nodes of a pool: as a list, or followed as server-sent events, each of which changes a few of them."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, cast

import msgspec
from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.sse import EventSourceResponse, format_sse_event

from coterie.errors import NotFound, Unauthorized, Unavailable, UsageError
from coterie.inspection.node_map import NodeMap
from coterie.service.api.access import JSON, Admission, Admitted, Behind, Following, Together, Who
from coterie.service.api.change_feed import Followers
from coterie.service.api.errors import body_of, status_of
from coterie.service.api.models import nodes as models
from coterie.service.api.shared_work import SharedWork
from coterie.service.service import Service

# A follower that was away for fewer changes than this gets them; any other gets the whole map again.
KEPT = 200
# A map is looked at again after this time, since nodes also change without an event, and not sooner than that.
LOOK_S, LEAST_S = 1.0, 0.1
# The share of the time that may be spent on looking at one map.
SHARE = 0.2
KEEP_ALIVE_S = 15.0
RETRY_MS = 1000

router = APIRouter(prefix="/api/v1", tags=["pools"])


@dataclass
class MapHistory:
    """The latest map of a pool, and the last changes that led to it."""

    number: int
    map: NodeMap
    changes: deque[tuple[int, bytes]] = field(default_factory=lambda: deque(maxlen=KEPT))
    whole: bytes | None = None
    cost_s: float = 0.0


@dataclass(frozen=True, slots=True)
class MapNews:
    """Events for a follower, each with its number and kind; and why the cluster is not reached."""

    number: int
    events: tuple[tuple[int, str, bytes], ...]
    pause_s: float
    unreachable: str | None


class LiveMaps:
    """The maps of all pools that are followed, each computed once for all followers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._pools: dict[str, MapHistory] = {}
        # Numbers of another process say nothing about the maps of this one.
        self.epoch = secrets.token_hex(4)

    def whole(self, pool: str) -> bytes:
        """Return the map of a pool as JSON."""
        with self._lock:
            return self._encoded(self._look(pool))

    def news(self, pool: str, seen: int | None) -> MapNews:
        """Return what a follower has not seen: the changes since a number, or the whole map."""
        with self._lock:
            unreachable = self._service.cluster_problem(pool)
            try:
                history = self._look(pool)
            except Unavailable:
                # No map has the number 0, so that the first one is told as a whole.
                return MapNews(seen or 0, (), LOOK_S, unreachable)
            pause = max(LEAST_S, min(LOOK_S * 2, history.cost_s / SHARE))
            if seen is not None and history.number - len(history.changes) <= seen <= history.number:
                later = tuple((number, "change", data) for number, data in history.changes if number > seen)
                return MapNews(history.number, later, pause, unreachable)
            return MapNews(history.number, ((history.number, "map", self._encoded(history)),), pause, unreachable)

    def _look(self, pool: str) -> MapHistory:
        started = time.monotonic()
        try:
            found = self._service.node_map(pool)
        except NotFound:
            self._pools.pop(pool, None)
            raise
        history = self._pools.get(pool)
        if history is None:
            history = self._pools[pool] = MapHistory(1, found)
        elif found is not history.map:
            changes = found.changes_since(history.map)
            if changes is None:
                history.number += 1
                history.changes.clear()
                history.whole = None
            elif changes["nodes"]:
                history.number += 1
                history.changes.append((history.number, msgspec.json.encode(changes)))
                history.whole = None
            history.map = found
        history.cost_s = time.monotonic() - started
        return history

    def _encoded(self, history: MapHistory) -> bytes:
        if history.whole is None:
            history.whole = history.map.encoded()
        return history.whole


async def maps_of(request: Request) -> LiveMaps:
    """Return the followed maps."""
    return cast("LiveMaps", request.app.state.maps)


Maps = Annotated[LiveMaps, Depends(maps_of)]


@router.get(
    "/pools/{pool}/nodes",
    response_model=models.NodeMap,
    responses={
        200: {
            "description": "The nodes; or a stream of `event: map` with all of them and `event: change` with those "
            "that changed, by their index. `event: cluster` says that the cluster is not reached, with the reason "
            "in `unreachable`, which is `connecting` before the first try has ended, or null once it is reached again. "
            "The stream ends with `event: end` and a `reason`: `deleted`, `unauthorized`, or `refused` with "
            "the `error` that a list is refused with.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def pool_nodes(
    pool: str,
    request: Request,
    service: Behind,
    maps: Maps,
    followers: Following,
    shared: Together,
    admission: Admitted,
    _caller: Who,
    follow: Annotated[
        bool | None, Query(description="A stream, or a list; without it, a stream for `Accept: text/event-stream`.")
    ] = None,
    after: Annotated[
        str | None, Query(max_length=40, description="Like Last-Event-ID, which takes precedence.")
    ] = None,
    last: Annotated[
        str | None, Header(alias="Last-Event-ID", max_length=40, description="The id of the last event that was seen.")
    ] = None,
) -> Response:
    """Return the nodes of a pool with the tasks on them; or follow them as server-sent events.

    A client that sends the id of the last event it saw gets the changes since then or, where they are no longer
    known, all nodes again.
    """
    streams = "text/event-stream" in request.headers.get("accept", "") if follow is None else follow
    if not streams:
        return Response(await shared.of(("nodes", pool), partial(maps.whole, pool)), media_type=JSON)
    await shared.of(("pool", pool), partial(service.find_pool, pool))
    told = _followed(pool, maps, followers, shared, admission, _seen(maps, last or after))
    return followers.streamed(EventSourceResponse(told, headers={"X-Accel-Buffering": "no"}))


def _seen(maps: LiveMaps, event: str | None) -> int | None:
    epoch, _, number = (event or "").partition("-")
    known = epoch == maps.epoch and number.isascii() and number.isdecimal() and len(number) < 19
    return int(number) if known else None


async def _followed(
    pool: str, maps: LiveMaps, followers: Followers, shared: SharedWork, admission: Admission, seen: int | None
) -> AsyncIterator[bytes]:
    """Yield changes of a map until the pool or its nodes are no longer known, or the caller, or the service ends."""
    with followers.joined() as ear:
        yield format_sse_event(retry=RETRY_MS)
        spoke = time.monotonic()
        # A follower takes a cluster to be reached until it hears otherwise.
        unreachable: str | None = None
        while not followers.closed:
            pause = LOOK_S
            try:
                news = await shared.of(("map", pool, seen), partial(maps.news, pool, seen))
                changed = news.unreachable != unreachable
                await admission.check(telling=changed or bool(news.events))
                if changed:
                    unreachable = news.unreachable
                    yield _event("cluster", {"unreachable": unreachable})
                    spoke = time.monotonic()
                for number, kind, data in news.events:
                    # JSON is one line, so that the bytes that all followers share are sent as they are.
                    yield b"event: %b\nid: %b-%d\ndata: %b\n\n" % (kind.encode(), maps.epoch.encode(), number, data)
                    spoke = time.monotonic()
                seen, pause = news.number, news.pause_s
            except Unavailable:
                pass
            except NotFound:
                yield _event("end", {"reason": "deleted"})
                return
            except Unauthorized:
                yield _event("end", {"reason": "unauthorized"})
                return
            except UsageError as error:
                _, code = status_of(error)
                yield _event("end", {"reason": "refused", "error": body_of(code, str(error), error.hint)})
                return
            if time.monotonic() - spoke >= KEEP_ALIVE_S:
                yield format_sse_event(comment="still here")
                spoke = time.monotonic()
            # Changes that come in quick succession are told together.
            await asyncio.sleep(pause)
            await ear.news(LOOK_S)


def _event(kind: str, body: dict[str, Any]) -> bytes:
    """Return an event without an id: the last change that was seen stays the one to go on from."""
    return format_sse_event(event=kind, data_str=msgspec.json.encode(body).decode())
