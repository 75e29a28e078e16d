"""The application: all routes over one service, behind the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from functools import cache
from importlib.metadata import version
from typing import Any, ClassVar

import anyio.to_thread
from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from coterie.inspection.page_files import PageFiles
from coterie.service.api import errors
from coterie.service.api.change_feed import Followers
from coterie.service.api.guard import Guard
from coterie.service.api.metrics import Meter, Metrics
from coterie.service.api.models.base import Error
from coterie.service.api.osmo import pools as osmo_pools
from coterie.service.api.osmo import tasks as osmo_tasks
from coterie.service.api.osmo import workflows as osmo
from coterie.service.api.page import files as page_files
from coterie.service.api.page import live_map, session
from coterie.service.api.queries import known_query
from coterie.service.api.routes import events, logs, pools, state, workflows
from coterie.service.api.shared_work import SharedWork
from coterie.service.service import Service

MOST_BYTES = 10 << 20
# The number of requests handled at a time; others wait.
THREADS = 96

_REFUSALS = {
    400: "The request is not valid.",
    401: "A token is needed.",
    403: "The role does not allow it.",
    404: "Not found.",
    409: "It conflicts with the current state.",
    413: "The request is too large.",
    415: "The body is neither JSON nor YAML.",
    421: "The service is not known by this host name.",
    422: "What was sent is not valid; every fault is listed.",
    503: "Try again later.",
}


def create_app(
    service: Service,
    *,
    open_to_all: bool,
    hosts: Collection[str] | None = None,
    most_bytes: int = MOST_BYTES,
    started: Callable[[], None] | None = None,
) -> FastAPI:
    """Return the application for a service.

    `open_to_all` lets callers without a token do everything, as long as the store has no tokens. `hosts` are the names
    under which it is reached; None accepts any. `started` is called when it begins to answer.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        if started is not None:
            started()
        yield
        followers.close()

    app = _App(
        title="Coterie",
        version=version("coterie"),
        summary="Topology-aware gang placement: submit, watch, ask why.",
        openapi_url=errors.SCHEMA,
        # A documentation page would load scripts from elsewhere, and give them access to the service.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    followers = Followers(service)
    metrics = Metrics(followers)
    app.state.service = service
    app.state.open_to_all = open_to_all
    app.state.followers = followers
    app.state.metrics = metrics
    app.state.shared = SharedWork()
    app.state.maps = live_map.LiveMaps(service)
    app.state.page = PageFiles.read()
    errors.install(app)
    app.router.routes.extend(_routes())
    app.add_middleware(Guard, hosts=hosts, most_bytes=most_bytes)
    app.add_middleware(Meter, metrics=metrics)
    app.openapi()  # requests are checked against it, several at a time
    return app


@cache
def _routes() -> Sequence[BaseRoute]:
    """Return the routes of every application: FastAPI takes a quarter of a second to analyse them anew."""
    found = FastAPI(
        openapi_url=None,
        generate_unique_id_function=_operation,
        responses={code: {"model": Error, "description": words} for code, words in _REFUSALS.items()},
    )
    for part in (workflows, logs, events, pools, live_map, state):
        found.include_router(part.router, dependencies=[Depends(known_query)])
    # Other clients and probes may send more parameters than are used here.
    for lenient in (
        page_files.router,
        session.router,
        state.probes,
        osmo_pools.probes,
        osmo.router,
        osmo_tasks.router,
        osmo_pools.router,
    ):
        found.include_router(lenient)
    return found.routes


class _App(FastAPI):
    # All applications have the same routes, so a process needs one schema.
    _schema: ClassVar[dict[str, Any] | None] = None

    def openapi(self) -> dict[str, Any]:
        """Return the schema; errors are JSON even where the answer is text."""
        if _App._schema is None:
            schema = super().openapi()
            for operation in (each for methods in schema["paths"].values() for each in methods.values()):
                for code in _REFUSALS:
                    response = operation["responses"][str(code)]
                    response["content"] = {"application/json": next(iter(response["content"].values()))}
            _App._schema = schema
        return _App._schema


def _operation(route: APIRoute) -> str:
    """Return the name of an operation for generated clients: `workflows_submit`."""
    tag = str(route.tags[0]) if route.tags else "coterie"
    return route.name if route.name.startswith(tag) else f"{tag}_{route.name}"
