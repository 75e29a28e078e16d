"""The controller of PodCliqueSets and graph deployments: it tells each one about levels that vanish and come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from coterie.frontends.admission import KnownTopologies, TargetCluster
from coterie.frontends.grove.availability import constraints_unavailable
from coterie.frontends.grove.conditions import GroveCondition
from coterie.frontends.grove.podcliqueset.model import TopologyConstraint
from coterie.kube.kinds import POD_CLIQUE_SET
from coterie.operator.controller import ObjectKey
from coterie.operator.metrics import OperatorMetrics
from coterie.operator.status import Outcome
from coterie.operator.watches import SharedWatch
from coterie.operator.workloads.reconcile import applied_constraints, condition_of, graph_outcome, set_outcome
from coterie.operator.workloads.references import READERS, TopologyReferences
from coterie.operator.writer import Writer

Object = dict[str, Any]


class WorkloadReconciler:
    """Reconciliations of objects that refer to topologies; `watches` are those of the owned kinds."""

    def __init__(
        self,
        watches: Iterable[SharedWatch],
        sets: SharedWatch,
        references: TopologyReferences,
        known: Callable[[], KnownTopologies],
        cluster: TargetCluster,
        writer: Writer,
        metrics: OperatorMetrics,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._watches = {watch.kind.name: watch for watch in watches}
        self._sets, self._references, self._known, self._cluster = sets, references, known, cluster
        self._writer, self._metrics, self._now = writer, metrics, now
        self._lost: dict[str, set[ObjectKey]] = {name: set() for name in self._watches}
        # What the API server stored of a status: a definition of the kind may drop fields that it does not have.
        self._stored: dict[ObjectKey, tuple[Object, Object]] = {}

    def __call__(self, key: ObjectKey) -> float | None:
        """Reconcile one object."""
        kind, namespace, name = key
        watch = self._watches.get(kind)
        about = watch.get(name, namespace) if watch is not None else None
        if watch is None or about is None or about["metadata"].get("deletionTimestamp"):
            self._count(key, lost=False)
            self._stored.pop(key, None)
            return None
        about = {**about, "apiVersion": watch.kind.api_version, "kind": kind}
        constraints, known = READERS[kind](about), self._known()
        if any(each.topology in known.wrong for each in constraints):
            return None  # nothing can be said of levels that cannot be read
        found = constraints_unavailable(constraints, known.found, self._cluster.sets)
        if kind == POD_CLIQUE_SET.name:
            outcome = set_outcome(about, found, self._now())
        else:
            outcome = self._graph(key, about, found, constraints, known)
        self._count(key, lost=found is not None and found.status != "False")
        self._write(key, about, outcome)
        return None

    def _graph(
        self,
        key: ObjectKey,
        about: Object,
        own: GroveCondition | None,
        constraints: tuple[TopologyConstraint, ...],
        known: KnownTopologies,
    ) -> Outcome:
        """Return the outcome for a graph: by the condition of its PodCliqueSet, and by its own levels without one."""
        if not constraints:
            return graph_outcome(about, None, None, self._now())
        behind = self._sets.get(self._references.set_of(key), key[1])
        condition = own if behind is None else condition_of(behind)
        applied = applied_constraints(constraints, known.found) if own and own.status != "Unknown" else []
        return graph_outcome(about, condition, applied, self._now())

    def _write(self, key: ObjectKey, about: Object, outcome: Outcome) -> None:
        if outcome.event is not None:
            self._writer.event(outcome.event)
        there = about.get("status") or {}
        if outcome.status == there or self._stored.get(key) == (outcome.status, there):
            return
        stored = self._writer.status(about, outcome.status)
        self._stored[key] = (outcome.status, stored.get("status") or {})

    def _count(self, key: ObjectKey, *, lost: bool) -> None:
        """Keep the number of objects of a kind whose levels are not available."""
        among = self._lost.get(key[0])
        if among is not None:
            (among.add if lost else among.discard)(key)
            self._metrics.unavailable.labels(key[0]).set(len(among))
