"""The removal of objects in order, each kind gone before the next, for as long as it takes.

Pods go first: a ComputeDomain that goes before them kills what they run. A kind that cannot be deleted does not keep
the others; one whose finalizer is held is reported as stuck, and no longer waited for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from coterie.backends.base.driver import BackendEvent, TaskAttempt
from coterie.backends.kai.driver.objects import AnyObject, ObjectMeta, TaskPod, seconds
from coterie.backends.kai.manifests.metadata import STORE
from coterie.errors import CoterieError
from coterie.kube.api import Api
from coterie.kube.delete import delete
from coterie.kube.kinds import COMPUTE_DOMAIN, CONFIG_MAP, POD, POD_GROUP, SECRET, SERVICE, ObjectKind
from coterie.kube.reads import ObjectQuery, list_all, list_served
from coterie.kube.retry import backoff
from coterie.lifecycle import Observation
from coterie.sources.task_labels import GROUP, WORKFLOW

# The kinds of a group's objects, in the order in which they go.
STAGES: Sequence[Sequence[ObjectKind]] = ((POD,), (POD_GROUP,), (COMPUTE_DOMAIN,), (CONFIG_MAP, SECRET, SERVICE))
# After this time, an object that is being deleted and still there is stuck.
STUCK_S = 30.0
_FIRST_S, _LONGEST_S = 0.1, 5.0
# How long the pauses of a removal become that only stuck objects keep from its end.
_LONGEST_STUCK_S = 60.0


@dataclass(frozen=True, slots=True)
class RemovalScope:
    """Objects of a workflow: of one group or all, of placements from `first` to `last`, or one task's alone.

    With a `name`, only objects of that name.
    """

    workflow: str
    group: str = ""
    task: str = ""
    first: int = 0
    last: int | None = None
    name: str = ""

    def selector(self, store: str) -> str:
        """Return the label selector of the objects."""
        names = {STORE: store, WORKFLOW: self.workflow, **({GROUP: self.group} if self.group else {})}
        return ",".join(f"{key}={value}" for key, value in names.items())

    def covers(self, meta: ObjectMeta) -> bool:
        """Return whether an object is to be removed."""
        if meta.workflow != self.workflow or (self.group and meta.group != self.group):
            return False
        if (self.task and meta.task != self.task) or (self.name and meta.name != self.name):
            return False
        return self.first <= meta.attempt and (self.last is None or meta.attempt <= self.last)

    def contains(self, other: RemovalScope) -> bool:
        """Return whether it has all objects of another scope."""
        if other.workflow != self.workflow or (self.group and other.group != self.group):
            return False
        return other.first >= self.first and (self.last is None or (other.last or 0) <= self.last)


@dataclass(frozen=True, slots=True)
class ForcedPod:
    """A pod that was deleted by force; `waited_s` is the time since its grace period ended."""

    meta: ObjectMeta
    node: str
    waited_s: float


@dataclass(frozen=True, slots=True)
class StuckObject:
    """An object that is being deleted and does not go."""

    kind: ObjectKind
    meta: ObjectMeta

    def told(self, now: float) -> str:
        """Return its name, its age since the deletion, and the finalizers that hold it."""
        holders = ", ".join(self.meta.finalizers or ()) or "unknown"
        age = f"{_age(self.meta, now):.0f} s"
        return (
            f"{self.kind.name} {self.meta.name} of workflow {self.meta.workflow} has been stuck for {age} ({holders})"
        )


class Stage(StrEnum):
    """The state of one kind of objects."""

    GONE = "gone"
    LEAVING = "leaving"
    FAILED = "failed"


@dataclass(slots=True)
class ObjectRemoval:
    """A removal under way, due at `due`; `confirms` is the observation at its end.

    `logs` are the pods whose logs are kept. `passed` counts the stages of which nothing is left. `failure` and `stuck`
    are of the last step. `forced` are the pods that were deleted by force, by uid. `bound` is whether one of its pods
    had a node.
    """

    scope: RemovalScope
    grace_s: float
    confirms: Observation | None = None
    logs: Mapping[str, TaskAttempt] = field(default_factory=dict)
    due: float = 0.0
    rounds: int = 0
    passed: int = 0
    asked: set[str] = field(default_factory=set)
    failure: CoterieError | None = None
    stuck: tuple[StuckObject, ...] = ()
    forced: dict[str, ForcedPod] = field(default_factory=dict)
    bound: bool = False

    def told(self, now: float) -> list[str]:
        """Return what keeps it from its end, none for one that merely takes its time."""
        failure = [str(self.failure)] if self.failure is not None else []
        return [*failure, *(each.told(now) for each in self.stuck)]


class Remover:
    """The steps of removals in one namespace."""

    def __init__(self, api: Api, namespace: str, store: str, failed_node: Callable[[str], str], force_s: float) -> None:
        """Make one; `failed_node` names the node of a pod if it is gone or does not answer, so that it ends no pod.

        A pod there is deleted by force `force_s` after its grace period.
        """
        self._api, self._namespace, self._store, self._failed_node = api, namespace, store, failed_node
        self._force_s = force_s

    def step(self, removal: ObjectRemoval, now: float, clock: float) -> bool:
        """Advance a removal; return whether nothing is left but stuck objects. `clock` is that of `due`."""
        removal.failure, stuck, waiting = None, list[StuckObject](), False
        removal.rounds += 1
        stages = STAGES[:1] if removal.scope.task else STAGES
        for number in range(removal.passed, len(stages)):
            kinds = stages[number]
            states = [self._kind(removal, kind, now, stuck) for kind in kinds]
            if Stage.LEAVING in states or (kinds[0] is POD and Stage.FAILED in states):
                waiting = True
                break
            if number == removal.passed and not stuck and removal.failure is None:
                removal.passed, removal.rounds = number + 1, 1
        removal.stuck = tuple(stuck)
        longest = _LONGEST_STUCK_S if stuck and not waiting else _LONGEST_S
        removal.due = clock + backoff(removal.rounds, _FIRST_S, longest)
        return not waiting and removal.failure is None

    def objects(self, kind: ObjectKind, selector: str) -> list[ObjectMeta]:
        """Return the objects of a kind by their labels, none where the cluster lacks the kind."""
        found = list_served(self._api, ObjectQuery(kind, self._namespace, selector), AnyObject)
        return [each.metadata for each in found.items] if found else []

    def _found(self, removal: ObjectRemoval, kind: ObjectKind) -> list[ObjectMeta]:
        selector = removal.scope.selector(self._store)
        if kind is POD:
            query = ObjectQuery(kind, self._namespace, selector)
            pods = [each for each in list_all(self._api, query, TaskPod).items if _removes(removal, each.metadata)]
            removal.bound |= any(each.spec.node_name for each in pods)
            return [each.metadata for each in pods]
        return [each for each in self.objects(kind, selector) if _removes(removal, each)]

    def _kind(self, removal: ObjectRemoval, kind: ObjectKind, now: float, stuck: list[StuckObject]) -> Stage:
        try:
            found = self._found(removal, kind)
            # A deletion may have been refused although the object is still the same: then it is requested again.
            new = [each for each in found if each.uid not in removal.asked or each.deletion_timestamp is None]
            for each in new:
                # A whole number of seconds, and never 0, which would forget a pod that still runs.
                grace = max(1, math.ceil(removal.grace_s)) if kind is POD else None
                delete(self._api, kind, each.name, namespace=self._namespace, uid=each.uid, grace_s=grace)
                removal.asked.add(each.uid)
            for each in found if kind is POD else ():
                if _age(each, now) > self._force_s and (node := self._failed_node(each.name)):
                    delete(self._api, kind, each.name, namespace=self._namespace, uid=each.uid, grace_s=0)
                    removal.forced.setdefault(each.uid, ForcedPod(each, node, _age(each, now)))
            if new and kind is not POD:
                found = self._found(removal, kind)
        except CoterieError as error:
            removal.failure = error
            return Stage.FAILED
        held = [each for each in found if kind is not POD and _age(each, now) > STUCK_S]
        stuck.extend(StuckObject(kind, each) for each in held)
        return Stage.LEAVING if len(held) < len(found) else Stage.GONE


def hurry(removals: Iterable[ObjectRemoval], gone: Collection[ObjectMeta], left: Collection[ObjectMeta]) -> None:
    """Let removals look at once of whose pods some have `gone`, and none is among those that are `left`."""
    for each in removals:
        if any(map(each.scope.covers, gone)) and not any(map(each.scope.covers, left)):
            each.due = 0.0


def hurry_stuck(removals: Iterable[ObjectRemoval]) -> None:
    """Let removals look at once whether their stuck objects are gone."""
    for each in removals:
        if each.stuck:
            each.due = 0.0


def forced_event(removal: ObjectRemoval, forced: ForcedPod) -> BackendEvent:
    """Return the event of a pod that was deleted by force."""
    said = f"node {forced.node} did not end its pod, which was deleted by force"
    said = f"{said} {forced.waited_s:.0f} s after its grace period"
    key = removal.logs.get(forced.meta.name)
    names = (key.group, key.task) if key else (forced.meta.group, forced.meta.task)
    return BackendEvent("ForceDeleted", said, *names, forced.meta.attempt)


def _removes(removal: ObjectRemoval, meta: ObjectMeta) -> bool:
    return meta.own and removal.scope.covers(meta)


def _age(meta: ObjectMeta, now: float) -> float:
    since = seconds(meta.deletion_timestamp)
    return 0.0 if since is None else now - since
