"""The controller of PodCliqueSets and graph deployments: it tells each one about levels that vanish and come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from coterie.frontends.admission import KnownTopologies, TargetCluster
from coterie.frontends.grove.availability import constraints_unavailable
from coterie.frontends.grove.conditions import LEVELS_AVAILABLE, LEVELS_UNAVAILABLE, GroveCondition
from coterie.frontends.grove.podcliqueset.model import TopologyConstraint
from coterie.kube.kinds import POD_CLIQUE_SET
from coterie.operator.catalog import TopologyCatalog
from coterie.operator.controller import ObjectKey
from coterie.operator.metrics import OperatorMetrics
from coterie.operator.status import Outcome, condition_in
from coterie.operator.watches import SharedWatch
from coterie.operator.workloads.reconcile import applied_constraints, condition_of, graph_outcome, set_outcome
from coterie.operator.workloads.references import READERS, TopologyReferences
from coterie.operator.writer import Writer

Object = dict[str, Any]


class WorkloadReconciler:
    """Reconciliations of objects that refer to topologies; `watches` are those of the kinds that may be owned."""

    def __init__(
        self,
        watches: Iterable[SharedWatch],
        sets: SharedWatch,
        references: TopologyReferences,
        catalog: TopologyCatalog,
        cluster: TargetCluster,
        writer: Writer,
        metrics: OperatorMetrics,
        owns: Callable[[str], bool] = lambda _: True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._watches = {watch.kind.name: watch for watch in watches}
        self._sets, self._references, self._catalog, self._cluster = sets, references, catalog, cluster
        self._writer, self._metrics, self._owns, self._now = writer, metrics, owns, now
        self._lost: dict[str, set[ObjectKey]] = {name: set() for name in self._watches}
        # What the API server stored of a status: a definition of the kind may drop fields that it does not have.
        self._stored: dict[ObjectKey, tuple[Object, Object]] = {}

    def __call__(self, key: ObjectKey) -> float | None:
        """Reconcile one object."""
        kind, namespace, name = key
        watch = self._watches.get(kind)
        about = watch.get(name, namespace) if watch is not None else None
        if watch is None or about is None or about["metadata"].get("deletionTimestamp") or not self._owns(kind):
            self._count(key, lost=False)
            self._stored.pop(key, None)
            return None
        about = {**about, "apiVersion": watch.kind.api_version, "kind": kind}
        constraints, known = READERS[kind](about), self._catalog.known()
        names = {each.topology for each in constraints if each.topology}
        found = constraints_unavailable(constraints, known.found, self._cluster.sets)
        if found is not None and found.status == "True" and not names & known.wrong and not _already_told(about, found):
            # An object may be seen before the topology that was created with it.
            known = self._catalog.current(names)
            found = constraints_unavailable(constraints, known.found, self._cluster.sets)
        if names & known.wrong:
            return None  # nothing can be said of levels that cannot be read
        if kind == POD_CLIQUE_SET.name:
            outcome = set_outcome(about, found, self._now())
        else:
            outcome = self._graph(key, about, found, constraints, known)
        self._count(key, lost=found is not None and found.status != "False")
        self._write(key, about, outcome)
        return None

    def all_keys(self) -> Iterable[ObjectKey]:
        """Return all objects of the kinds that may be owned."""
        for kind, watch in self._watches.items():
            for namespace, name in watch.objects() or {}:
                yield kind, namespace, name

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


def _already_told(about: Object, found: GroveCondition) -> bool:
    """Return whether the status of an object has this problem, under the condition of its kind."""
    type_ = LEVELS_UNAVAILABLE if about["kind"] == POD_CLIQUE_SET.name else LEVELS_AVAILABLE
    told = condition_in(about.get("status"), type_)
    return told is not None and told.get("message") == found.message
