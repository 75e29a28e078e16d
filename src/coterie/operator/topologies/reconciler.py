"""The controller of ClusterTopologies: reads, carries out the next step, and writes the status when none is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog

from coterie.backends.base.topology_resource import TopologyResource
from coterie.errors import CoterieError, SpecErrors, Unavailable
from coterie.frontends.grove.conditions import DRIFT
from coterie.frontends.grove.drift import drift_of
from coterie.frontends.grove.kai_topology import read_kai_topologies
from coterie.frontends.grove.topology import ClusterTopology, read_cluster_topology
from coterie.frontends.kubernetes.objects import resource_of
from coterie.kube.cache import CacheChange
from coterie.kube.errors import ObjectConflict
from coterie.kube.kinds import POD, ObjectKind, kind_of
from coterie.kube.reads import ObjectQuery
from coterie.operator.controller import ObjectKey
from coterie.operator.metrics import OperatorMetrics
from coterie.operator.status import Outcome
from coterie.operator.topologies.reconcile import invalid_outcome, outcome_of
from coterie.operator.topologies.replacement import (
    Creation,
    Exchange,
    Redirection,
    Removal,
    Repair,
    Step,
    WorkName,
    in_exchange,
    interim_name,
    next_step,
    owner_of,
)
from coterie.operator.watches import SharedWatch
from coterie.operator.writer import NotLeading, Writer

Object = dict[str, Any]

# The time that a scheduler gets to see one step of an exchange before the next one.
SETTLE_S = 1.0
# The next pass after a write that changes nothing but the resource itself; its watch is usually faster.
_NEXT_S = 0.5

# How many passes may point waiting work away before the exchange goes ahead.
_MOST_REDIRECTIONS = 3

_log = structlog.get_logger("coterie.operator")


@dataclass(frozen=True, slots=True)
class TopologySettings:
    """The schedulers in use, by the names that references write, and the pace of an exchange."""

    enabled: frozenset[str]
    settle_s: float = SETTLE_S


class TopologyReconciler:
    """Reconciliations of the topologies of both kinds, from shared watches."""

    def __init__(
        self,
        topologies: Iterable[SharedWatch],
        resources: SharedWatch,
        resource: TopologyResource,
        writer: Writer,
        metrics: OperatorMetrics,
        settings: TopologySettings,
        owns: Callable[[str], bool] = lambda _: True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topologies = {watch.kind.name: watch for watch in topologies}
        self._resources, self._resource = resources, resource
        self._kind: ObjectKind = resources.kind
        self._work = kind_of({"apiVersion": resource.work[0], "kind": resource.work[1]})
        self._writer, self._metrics, self._settings, self._now = writer, metrics, settings, now
        self._owns, self._clock = owns, clock
        # The time before which the scheduler may not have seen the last step of an exchange.
        self._settled_at: dict[ObjectKey, float] = {}
        self._redirections: dict[ObjectKey, int] = {}

    def __call__(self, key: ObjectKey) -> float | None:
        """Reconcile one topology, and return the delay of the next pass where one is needed."""
        kind, _, name = key
        about = self._topologies[kind].get(name)
        if about is None or about["metadata"].get("deletionTimestamp") or not self._owns(kind):
            # Resources of a deleted topology are deleted by the cluster's garbage collector; another operator repairs
            # those of a topology that it owns.
            with suppress(KeyError):
                self._metrics.drift.remove(kind, name)
            self._settled_at.pop(key, None)
            self._redirections.pop(key, None)
            return None
        about = {**about, "apiVersion": self._topologies[kind].kind.api_version, "kind": kind}
        try:
            found = read_cluster_topology(resource_of(about), enabled=None).for_scheduler(self._resource.scheduler)
        except SpecErrors as error:
            self._report(about, invalid_outcome(about, error.faults, self._now()))
            return None
        failure = ""
        objects = self._resources.objects()
        there = None if objects is None else {name: item for (_, name), item in objects.items()}
        try:
            if there is not None and (again := self._advance(key, found, there)) is not None:
                return again
        except (NotLeading, ObjectConflict, Unavailable):
            raise
        except CoterieError as error:
            failure = f"the topology resource could not be written: {_words(error)}"
        known = None if there is None else read_kai_topologies(_typed(there.values(), self._kind))[0]
        drift = drift_of(found, known, self._settings.enabled, failure)
        self._report(about, outcome_of(about, found, drift, self._now()))
        if failure:
            raise CoterieError(failure, "It keeps trying.")
        return None

    def keys_of(self, change: CacheChange[Object]) -> Iterable[ObjectKey]:
        """Return the topologies that a change of a resource concerns: owners, namesakes and referrers."""
        name = change.entry.meta.name
        owner = owner_of(change.entry.value)
        for kind, watch in self._topologies.items():
            for _, topology in watch.objects() or {}:
                named = name == self._resource.resource_name(topology) or (
                    owner is not None and (owner.kind, owner.name) == (kind, topology)
                )
                if named or name in _referred(watch.get(topology)):
                    yield kind, "", topology

    def all_keys(self) -> Iterable[ObjectKey]:
        """Return all topologies."""
        for kind, watch in self._topologies.items():
            for _, name in watch.objects() or {}:
                yield kind, "", name

    def _advance(self, key: ObjectKey, found: ClusterTopology, there: dict[str, Object]) -> float | None:
        """Carry out the next step; return the delay of the next pass, or None where nothing was to be done.

        `there` are the resources as the watch shows them; those of the topology are brought up to date where it is
        behind, so that nothing is told that is over already.
        """
        scheduler = self._resource.scheduler
        if scheduler not in self._settings.enabled or found.reference(scheduler) is not None:
            return None
        if next_step(found, self._resource, there) is None and not in_exchange(found, self._resource, there):
            return None
        if (left := self._settled_at.get(key, 0.0) - self._clock()) > 0:
            return left
        # A cache may be behind what this operator has written itself.
        self._refresh(found, there)
        exchanged = in_exchange(found, self._resource, there)
        step = next_step(found, self._resource, there, *(self._work_now() if exchanged else ()))
        if step is None:
            return None
        self._carry_out(found, step)
        if not exchanged:
            return _NEXT_S
        self._redirections[key] = self._redirections.get(key, 0) + 1 if isinstance(step, Redirection) else 0
        if (
            self._redirections[key] > _MOST_REDIRECTIONS
            and (step := next_step(found, self._resource, there)) is not None
        ):
            # New work arrives all the time; what arrives within these milliseconds is tried again by the scheduler.
            self._carry_out(found, step)
        self._settled_at[key] = self._clock() + self._settings.settle_s
        return self._settings.settle_s

    def _refresh(self, found: ClusterTopology, there: dict[str, Object]) -> None:
        name = self._resource.resource_name(found.name)
        for each in (name, interim_name(name, found.keys)):
            live = self._writer.find(self._kind, each)
            if live is None:
                there.pop(each, None)
            else:
                there[each] = live

    def _work_now(self) -> tuple[list[Object], frozenset[WorkName]]:
        """Return all objects of work, and the names of those with a pod that has no node yet."""
        pods = self._writer.list(ObjectQuery(POD, fields="spec.nodeName="))
        names = frozenset((pod["metadata"].get("namespace", ""), self._resource.work_of(pod)) for pod in pods)
        return self._writer.list(ObjectQuery(self._work)), names

    def _carry_out(self, found: ClusterTopology, step: Step) -> None:
        _log.info("topology step", kind=found.kind, name=found.name, step=type(step).__name__.lower())
        match step:
            case Creation(manifest):
                self._writer.create(manifest)
            case Repair(manifest):
                self._writer.replace(manifest)
            case Exchange(name, uid, manifest):
                # The scheduler's own rules are asked first: a refusal must not leave the name without a resource.
                trial = interim_name(name, (*found.keys, "trial"))
                self._writer.create({**manifest, "metadata": {**manifest["metadata"], "name": trial}}, dry_run=True)
                self._writer.delete(self._kind, name, uid)
                self._writer.create(manifest)
            case Removal(name, uid):
                self._writer.delete(self._kind, name, uid)
            case Redirection(work):
                for namespace, name, operations in work:
                    self._writer.patch(self._work, name, namespace, operations)

    def _report(self, about: Object, outcome: Outcome) -> None:
        condition = next((each for each in outcome.status["conditions"] if each["type"] == DRIFT), None)
        gauge = self._metrics.drift.labels(about["kind"], about["metadata"]["name"])
        gauge.set(condition is not None and condition["status"] != "False")
        if outcome.event is not None:
            self._writer.event(outcome.event)
        if outcome.status != (about.get("status") or {}):
            self._writer.status(about, outcome.status)


def _typed(objects: Iterable[Object], kind: ObjectKind) -> list[Object]:
    return [{**each, "apiVersion": kind.api_version, "kind": kind.name} for each in objects]


def _referred(topology: Object | None) -> set[str]:
    """Return the resources of schedulers that a topology of either kind refers to."""
    spec = (topology or {}).get("spec") or {}
    entries = [*(spec.get("schedulerReferences") or ()), *(spec.get("schedulerTopologyBindings") or ())]
    return {str(each.get("reference") or each.get("topologyReference")) for each in entries}


def _words(error: CoterieError) -> str:
    return "; ".join(fault.message for fault in error.faults) if isinstance(error, SpecErrors) else str(error)
