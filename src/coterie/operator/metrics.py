"""Metrics of the operator for Prometheus, in a registry of their own."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from coterie.kube.errors import RequestDescription

_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class OperatorMetrics:
    """The counters and gauges of one operator."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.reconciliations = Counter(
            "coterie_operator_reconciliations", "Reconciliations.", ("controller", "outcome"), registry=registry
        )
        self.seconds = Histogram(
            "coterie_operator_reconcile_seconds",
            "Time of a reconciliation.",
            ("controller",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._queue = Gauge(
            "coterie_operator_queue_depth", "Keys waiting to be reconciled.", ("controller",), registry=registry
        )
        self._requests = Counter(
            "coterie_operator_api_requests", "Requests to the API server.", ("verb", "kind", "code"), registry=registry
        )
        self.drift = Gauge(
            "coterie_operator_topology_drift",
            "1 if a scheduler's topology differs or is not known.",
            ("kind", "topology"),
            registry=registry,
        )
        self.unavailable = Gauge(
            "coterie_operator_levels_unavailable",
            "Objects that name a topology or a level that does not exist.",
            ("kind",),
            registry=registry,
        )
        self.decisions = Counter(
            "coterie_operator_webhook_decisions", "Decisions of the webhook.", ("kind", "decision"), registry=registry
        )
        self.decision_seconds = Histogram(
            "coterie_operator_webhook_seconds", "Time of a decision.", buckets=_SECONDS, registry=registry
        )
        self.leader = Gauge("coterie_operator_leader", "1 if this replica leads.", registry=registry)

    def watch_queue(self, controller: str, depth: Callable[[], int]) -> None:
        """Show the depth of a queue."""
        self._queue.labels(controller).set_function(depth)

    def count_request(self, call: RequestDescription, code: int) -> None:
        """Count a request by its answer."""
        self._requests.labels(call.verb, call.kind.name, str(code)).inc()

    def text(self) -> bytes:
        """Return all metrics as text."""
        return generate_latest(self.registry)
