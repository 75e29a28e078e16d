"""The webhook: requests of an API server over TLS, answered by the rules; certificates are renewed while it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
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
from coterie.operator.catalog import TopologyLookup
from coterie.operator.endpoints import ServerThread
from coterie.operator.metrics import OperatorMetrics
from coterie.operator.webhook.certificates import Authority, load, load_files, server_context
from coterie.operator.webhook.review import JUDGED, InvalidReviewError, answer_to

PATH = "/validate"
# An API server sends objects of at most 3 MiB, and an update has two of them.
_MOST_BYTES = 8 << 20
# The time between two looks at certificates.
CERTIFICATE_CHECK_S = 60.0
# How long the authority of former files is trusted: by then, every replica has the new ones.
_HANDOVER = timedelta(minutes=10)

_log = structlog.get_logger("coterie.operator")


@dataclass(frozen=True, slots=True)
class Reviewer:
    """The answers to requests, by the topologies of a cluster and the rules.

    While `known` gives None, requests are refused with 503, as the API server may retry. `current` gives topologies of
    some names as the API has them now, and `owns` says which kinds are this operator's.
    """

    known: Callable[[], KnownTopologies | None]
    site: TargetCluster = field(default_factory=TargetCluster)
    current: Callable[[Collection[str]], KnownTopologies] | None = None
    owns: Callable[[str], bool] = lambda _: True

    def answer(self, review: object, known: KnownTopologies) -> dict[str, Any]:
        """Return the answer to a review; nothing is refused only because a watch is behind."""
        lookup = TopologyLookup(known.found)
        answer = answer_to(review, replace(known, found=lookup), self.site, self.owns)
        if answer["response"]["allowed"] or not lookup.asked or self.current is None:
            return answer
        return answer_to(review, self.current(lookup.asked), self.site, self.owns)


def webhook_app(reviewer: Reviewer, metrics: OperatorMetrics) -> Starlette:
    """Return the application that answers the requests of API servers."""

    async def validate(request: Request) -> Response:
        try:
            body = await _body(request)
        except ClientDisconnect:
            return Response(status_code=400)
        if body is None:
            return PlainTextResponse("the body is too large\n", status_code=413)
        return await run_in_threadpool(_answer, body, reviewer, metrics)

    return Starlette(routes=[Route(PATH, validate, methods=["POST"])])


async def _body(request: Request) -> bytes | None:
    """Return the body; None for one that is too large, of which the rest is not read."""
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > _MOST_BYTES:
            return None
    return bytes(found)


def _answer(body: bytes, reviewer: Reviewer, metrics: OperatorMetrics) -> Response:
    begun = time.perf_counter()
    known = reviewer.known()
    if known is None:
        return PlainTextResponse("the topologies have not been read yet\n", status_code=503)
    try:
        review: Any = msgspec.json.decode(body)
        answer = reviewer.answer(review, known)
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
    return kind if isinstance(kind, str) and kind in JUDGED else "other"


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
        self._file_authority = b""
        self._former_authority, self._former_until = b"", now()
        self._renew_at = now()
        # How often a registration was asked for, and the last one that was made.
        self._asked = 0
        self._done: tuple[int, bytes] | None = None
        self.checks = 0
        self._renew()
        self._server = ServerThread(app, host, port, tls=self._context)
        self._stop = threading.Event()
        self._awake = threading.Event()
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
        self._awake.set()
        if self._thread.is_alive():
            self._thread.join(10.0)
        self._server.stop()

    @property
    def registered(self) -> bool:
        """Whether the cluster knows the webhook with its current authority."""
        return self._done == (self._asked, self._known_authority)

    @property
    def was_registered(self) -> bool:
        """Whether the cluster has known the webhook since it started."""
        return self._done is not None

    def register_again(self) -> None:
        """Call `on_authority` again soon: the registration has to change, or somebody has changed it."""
        self._asked += 1
        self._awake.set()

    def _run(self) -> None:
        while True:
            self._awake.clear()
            if self._stop.is_set():
                return
            try:
                self._renew()
                wanted = (self._asked, self._known_authority)
                if self._done != wanted and self._ready():
                    self._on_authority(self._known_authority)
                    self._done = wanted
            except CoterieError as error:
                _log.warning("webhook not registered", error=str(error))
            self.checks += 1
            self._awake.wait(self._check_s if self.registered else min(1.0, self._check_s))

    def _renew(self) -> None:
        """Load a new certificate where one is due, or what the files have now."""
        now = self._now()
        if self._folder is not None:
            found = load_files(self._context, self._folder)
            if self._file_authority and found != self._file_authority:
                self._former_authority, self._former_until = self._file_authority, now + _HANDOVER
            if now >= self._former_until:
                self._former_authority = b""
            self._file_authority = found
            # Other replicas may serve a certificate of the former authority for some time.
            self._known_authority = found + self._former_authority
            return
        if self._authority is None:
            self._authority = Authority(now)
            self._known_authority = self._authority.certificate
        elif self._next is not None and self.registered:
            # The cluster trusts both by now, so connections may meet either.
            self._authority, self._next, self._renew_at = self._next, None, now
        elif self._next is None and now >= self._authority.renew_at:
            self._next = Authority(now)
            self._known_authority = self._authority.certificate + self._next.certificate
        if now >= self._renew_at:
            certificate = self._authority.issue(self._host, now)
            load(self._context, certificate)
            self._renew_at = certificate.renew_at
            _log.info("certificate issued", host=self._host, renew_at=self._renew_at.isoformat())
