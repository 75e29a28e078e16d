"""The webhook: requests of an API server over TLS, answered by the rules; certificates are renewed while it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from coterie.errors import CoterieError
from coterie.frontends.admission import KnownTopologies, TargetCluster
from coterie.kube.kinds import CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_BINDING, GRAPH_DEPLOYMENT, POD_CLIQUE_SET
from coterie.operator.endpoints import ServerThread
from coterie.operator.metrics import OperatorMetrics
from coterie.operator.webhook.certificates import Authority, load, load_files, server_context
from coterie.operator.webhook.review import InvalidReviewError, answer_to

PATH = "/validate"
# An API server sends objects of at most 3 MiB, and an update has two of them.
_MOST_BYTES = 8 << 20
_COUNTED = frozenset(
    kind.name for kind in (CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_BINDING, POD_CLIQUE_SET, GRAPH_DEPLOYMENT)
)
# The time between two looks at certificates.
CERTIFICATE_CHECK_S = 60.0

_log = structlog.get_logger("coterie.operator")


def webhook_app(
    known: Callable[[], KnownTopologies | None], site: TargetCluster, metrics: OperatorMetrics
) -> Starlette:
    """Return the application; while `known` gives None, requests are refused with 503, as the API server may retry."""

    async def validate(request: Request) -> Response:
        try:
            body = await _body(request)
        except ClientDisconnect:
            return Response(status_code=400)
        if body is None:
            return PlainTextResponse("the body is too large\n", status_code=413)
        return await run_in_threadpool(_answer, body, known(), site, metrics)

    return Starlette(routes=[Route(PATH, validate, methods=["POST"])])


async def _body(request: Request) -> bytes | None:
    """Return the body; None for one that is too large, of which the rest is not read."""
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > _MOST_BYTES:
            return None
    return bytes(found)


def _answer(body: bytes, known: KnownTopologies | None, site: TargetCluster, metrics: OperatorMetrics) -> Response:
    begun = time.perf_counter()
    if known is None:
        return PlainTextResponse("the topologies have not been read yet\n", status_code=503)
    try:
        review: Any = msgspec.json.decode(body)
        answer = answer_to(review, known, site)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidReviewError) as error:
        metrics.decisions.labels("", "bad-request").inc()
        return PlainTextResponse(f"{error}\n", status_code=400)
    metrics.decisions.labels(
        _counted_kind(review["request"]), "allowed" if answer["response"]["allowed"] else "refused"
    ).inc()
    metrics.decision_seconds.observe(time.perf_counter() - begun)
    return Response(msgspec.json.encode(answer), media_type="application/json")


def _counted_kind(request: Mapping[str, Any]) -> str:
    """Return the kind of a request for a metric; clients must not be able to add values to its label."""
    about = request.get("kind")
    kind = about.get("kind") if isinstance(about, Mapping) else None
    return kind if isinstance(kind, str) and kind in _COUNTED else "other"


class Webhook:
    """The server with its certificates; `on_authority` gets the certificates of authorities whenever they change.

    It is called only while `ready`: a registration without answers would stop the cluster's users.
    `checks` counts how often certificates were looked at.
    """

    def __init__(
        self,
        app: Starlette,
        host: str,
        port: int,
        on_authority: Callable[[bytes], None],
        *,
        ready: Callable[[], bool] = lambda: True,
        folder: Path | None = None,
        check_s: float = CERTIFICATE_CHECK_S,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._host, self._folder, self._check_s, self._now = host, folder, check_s, now
        self._on_authority, self._ready = on_authority, ready
        self._context = server_context()
        self._authority: Authority | None = None
        self._next: Authority | None = None
        self._known_authority = b""
        self._renew_at = now()
        self._registered = False
        self.checks = 0
        self._renew()
        self._server = ServerThread(app, host, port, tls=self._context)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="certificates", daemon=True)

    @property
    def url(self) -> str:
        """The URL of the webhook."""
        return f"https://{f'[{self._host}]' if ':' in self._host else self._host}:{self._server.port}{PATH}"

    def start(self) -> None:
        """Start to answer, and register once it is ready."""
        self._server.start()
        self._thread.start()

    def stop(self) -> None:
        """Finish what is being answered, and end."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10.0)
        self._server.stop()

    @property
    def registered(self) -> bool:
        """Whether the cluster knows the webhook with its current authority."""
        return self._registered

    def _run(self) -> None:
        wait = 0.0
        while not self._stop.wait(wait):
            try:
                self._renew()
                if not self._registered and self._ready():
                    self._on_authority(self._known_authority)
                    self._registered = True
            except CoterieError as error:
                _log.warning("webhook not registered", error=str(error))
            self.checks += 1
            wait = self._check_s if self._registered else min(1.0, self._check_s)

    def _renew(self) -> None:
        """Load a new certificate where one is due, or what the files have now."""
        if self._folder is not None:
            self._trust(load_files(self._context, self._folder))
            return
        now = self._now()
        if self._authority is None:
            self._authority = Authority(now)
            self._trust(self._authority.certificate)
        elif self._next is not None and self._registered:
            # The cluster trusts both by now, so connections may meet either.
            self._authority, self._next, self._renew_at = self._next, None, now
        elif self._next is None and now >= self._authority.renew_at:
            self._next = Authority(now)
            self._trust(self._authority.certificate + self._next.certificate)
        if now >= self._renew_at:
            certificate = self._authority.issue(self._host, now)
            load(self._context, certificate)
            self._renew_at = certificate.renew_at
            _log.info("certificate issued", host=self._host, renew_at=self._renew_at.isoformat())

    def _trust(self, authority: bytes) -> None:
        if authority != self._known_authority:
            self._known_authority, self._registered = authority, False
