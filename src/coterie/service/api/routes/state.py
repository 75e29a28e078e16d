"""The routes of health, readiness, metrics and identity."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from coterie.service.api.access import Behind, Who, answer
from coterie.service.api.errors import body_of
from coterie.service.api.metrics import Metrics
from coterie.service.api.models import state as models

Json = dict[str, Any]

router = APIRouter(prefix="/api/v1", tags=["state"])
probes = APIRouter(tags=["state"])

# The reasons why no work is done, by whether there is a leader.
_IDLE = {False: "no replica leads yet", True: "the replica that leads cannot drive workflows"}


@router.get("/whoami", response_model=models.Identity)
def whoami(caller: Who) -> Response:
    """Return the caller and its role."""
    return answer({"name": caller.name, "role": caller.role})


@router.get("/health", response_model=models.Health)
def health(service: Behind, _caller: Who) -> Response:
    """Return the health of the service, and its problems."""
    return answer(service.health())


@probes.get("/metrics", response_class=PlainTextResponse)
def metrics(request: Request, service: Behind, _caller: Who) -> Response:
    """Return metrics for Prometheus."""
    found: Metrics = request.app.state.metrics
    return Response(found.text(service.gauges(), service.health()), media_type=CONTENT_TYPE_LATEST)


@probes.get("/healthz", response_model=models.Alive)
async def healthy() -> Json:
    """Report that the process answers; nothing else is checked, so an unavailable database does not cause a restart.

    Nor does it wait for a thread, all of which may be waiting for that database.
    """
    return {"status": "ok", "version": version("coterie")}


@probes.get("/readyz", response_model=models.Ready, responses={503: {"model": models.NotReady}})
def ready(service: Behind) -> Response:
    """Return whether work can be done: the store answers and there is a leader; 503 otherwise."""
    found = service.health()
    shown = {"ready": found["ready"], "leader": found["leader"]}
    if found["ready"]:
        return answer(shown)
    # The caller is not authenticated here, so the location of the store is not revealed.
    why = "the store does not answer" if found["store"] != "ok" else _IDLE[bool(found["holder"])]
    hint = "Ask again in a few seconds. GET /api/v1/health says what is wrong."
    return answer({**shown, "error": body_of("Unavailable", why, hint)}, 503, {"Retry-After": "5"})
