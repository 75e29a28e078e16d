"""The route of plain submissions, which are read without FastAPI's dependency resolution.

That takes longer than all other work of the event loop for a submission: it looks for some twenty parameters, of which
most submissions have none. Any other submission takes the usual way.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from coterie.planning.changes import AS_IT_IS
from coterie.service.api.access import JSON, parsed, presence, service_of, shared_of, who
from coterie.service.api.models.requests import Submit

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

_present = asynccontextmanager(presence)
# The queries of plain submissions, each with the meaning of `force`.
_QUERIES = {b"": False, b"force=true": True, b"force=false": False}
_KEY = "idempotency-key"
_LONGEST_KEY = 200


def plain_submission(submit: Callable[..., Response]) -> type[APIRoute]:
    """Return the class of a route that calls `submit` directly for plain submissions."""

    class PlainSubmission(APIRoute):
        """A route with a short way for plain submissions."""

        def get_route_handler(self) -> Handler:
            """Return the handler of all submissions."""
            usual = super().get_route_handler()

            async def handle(request: Request) -> Response:
                return await (_submitted(request, submit) if _is_plain(request) else usual(request))

            return handle

    return PlainSubmission


def _is_plain(request: Request) -> bool:
    """Return whether a submission is JSON, and has no parameters but `force` and a key."""
    keys = request.headers.getlist(_KEY)
    return (
        request.scope["query_string"] in _QUERIES
        and request.headers.get("content-type") == JSON
        and (not keys or (len(keys) == 1 and 0 < len(keys[0]) <= _LONGEST_KEY))
    )


async def _submitted(request: Request, submit: Callable[..., Response]) -> Response:
    service = await service_of(request)
    caller = await who(request, service, await shared_of(request))
    body = await request.body()
    async with _present(request, body):
        sent = await parsed(request, body, Submit)
        return await run_in_threadpool(
            submit,
            request,
            sent,
            service,
            caller,
            AS_IT_IS,
            request.headers.get(_KEY),
            force=_QUERIES[request.scope["query_string"]],
        )
