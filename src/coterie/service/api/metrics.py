"""Request metrics for Prometheus, and log entries of requests that change something or fail."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coterie.service.api.change_feed import Followers

_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_READING = frozenset({"GET", "HEAD", "OPTIONS"})

_log = structlog.get_logger("coterie.http")


class Metrics:
    """The metrics of one application, with its own registry."""

    def __init__(self, followers: Followers) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        names = ("method", "path", "status")
        self.requests = Counter("coterie_http_requests", "Requests answered.", names, registry=registry)
        self.seconds = Histogram(
            "coterie_http_request_seconds", "Time until an answer began.", ("path",), registry=registry
        )
        self._workflows = Gauge("coterie_workflows", "Workflows by status.", ("pool", "status"), registry=registry)
        self._used = Gauge("coterie_gpus_used", "GPUs that tasks hold.", ("pool",), registry=registry)
        # Pools may share nodes, so the sum over pools may exceed the total.
        self._total = Gauge("coterie_gpus", "GPUs of a pool's nodes, shared or not.", ("pool",), registry=registry)
        self._backend = Gauge(
            "coterie_backend_gpus", "GPUs of all nodes in pools, each node once.", ("backend",), registry=registry
        )
        self._leader = Gauge("coterie_leader", "1 if this replica leads.", registry=registry)
        self._ready = Gauge("coterie_ready", "1 if the service is ready.", registry=registry)
        self._problems = Gauge("coterie_problems", "Problems that /api/v1/health reports.", registry=registry)
        self._running = Gauge("coterie_tasks_running", "Tasks that this replica drives.", registry=registry)
        self._waiting = Gauge("coterie_groups_waiting", "Groups that wait for a place.", registry=registry)
        Gauge("coterie_followers", "Open streams of events and logs.", registry=registry).set_function(
            lambda: len(followers)
        )

    def text(self, gauges: Mapping[str, Mapping[Any, int]], health: Mapping[str, Any]) -> bytes:
        """Return all current metrics as text."""
        self._workflows.clear()
        for (pool, status), count in gauges["workflows"].items():
            self._workflows.labels(pool, status).set(count)
        for gauge, name in (
            (self._used, "gpus_used"),
            (self._total, "gpus_total"),
            (self._backend, "backend_gpus"),
        ):
            gauge.clear()
            for whose, count in gauges[name].items():
                gauge.labels(whose).set(count)
        self._leader.set(health["leader"])
        self._ready.set(health["ready"])
        self._problems.set(len(health["problems"]))
        self._running.set(health["running"])
        self._waiting.set(health["waiting"])
        return generate_latest(self.registry)


class Meter:
    """ASGI middleware that counts requests by route, so that callers cannot add series."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin = time.perf_counter()
        scope.setdefault("state", {})

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(scope, int(message["status"]), time.perf_counter() - begin)
            await send(message)

        await self._app(scope, receive, noted)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        path = scope["state"].get("route", "none")
        self._metrics.requests.labels(method, path, str(status)).inc()
        self._metrics.seconds.labels(path).observe(seconds)
        if method not in _READING or status >= 500:
            # No queries, headers or bodies: they may hold confidential data.
            caller = scope["state"].get("caller", "")
            _log.info(
                "request", method=method, path=scope["path"][:300], status=status, caller=caller, ms=seconds * 1e3
            )
