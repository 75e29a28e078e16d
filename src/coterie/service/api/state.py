"""How the service is: health, readiness, metrics, and who asks."""

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

# Why nobody does any work, by whether somebody leads.
_IDLE = {False: "no replica leads yet", True: "the replica that leads cannot drive workflows"}


@router.get("/whoami", response_model=models.Identity)
def whoami(caller: Who) -> Response:
    """Say who asks, and in which role."""
    return answer({"name": caller.name, "role": caller.role})


@router.get("/health", response_model=models.Health)
def health(service: Behind, _caller: Who) -> Response:
    """Say how the service is, and what keeps it from its work."""
    return answer(service.health())


@probes.get("/metrics", response_class=PlainTextResponse)
def metrics(request: Request, service: Behind, _caller: Who) -> Response:
    """Return metrics for Prometheus."""
    found: Metrics = request.app.state.metrics
    return Response(found.text(service.gauges(), service.health()), media_type=CONTENT_TYPE_LATEST)


@probes.get("/healthz", response_model=models.Alive)
async def healthy() -> Json:
    """Tell that the process answers. It asks nobody else, so a database that is away does not get it restarted.

    Nor does it wait for a thread, all of which may be waiting for that database.
    """
    return {"status": "ok", "version": version("coterie")}


@probes.get("/readyz", response_model=models.Ready, responses={503: {"model": models.NotReady}})
def ready(service: Behind) -> Response:
    """Tell whether work can be done: the store answers and somebody leads; 503 otherwise."""
    found = service.health()
    shown = {"ready": found["ready"], "leader": found["leader"]}
    if found["ready"]:
        return answer(shown)
    # Whoever asks is not known here, and is not told where the store is.
    why = "the store does not answer" if found["store"] != "ok" else _IDLE[bool(found["holder"])]
    hint = "Ask again in a few seconds. GET /api/v1/health says what is wrong."
    return answer({**shown, "error": body_of("Unavailable", why, hint)}, 503, {"Retry-After": "5"})
