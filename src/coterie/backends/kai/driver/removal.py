"""The removal of objects in order, each kind gone before the next, for as long as it takes.

Pods go first: a ComputeDomain that goes before them kills what they run. A kind that cannot be deleted does not keep
the others; one whose finalizer is held is reported as stuck, and no longer waited for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from coterie.backends.base.driver import TaskAttempt
from coterie.backends.kai.driver.objects import AnyObject, ObjectMeta, seconds
from coterie.backends.kai.manifests.metadata import STORE
from coterie.errors import CoterieError
from coterie.kube.api import Api
from coterie.kube.delete import delete
from coterie.kube.kinds import COMPUTE_DOMAIN, CONFIG_MAP, POD, POD_GROUP, SECRET, SERVICE, ObjectKind
from coterie.kube.reads import ObjectQuery, list_served
from coterie.kube.retry import backoff
from coterie.lifecycle import Observation
from coterie.sources.task_labels import GROUP, WORKFLOW

# The kinds of a group's objects, in the order in which they go.
STAGES: Sequence[Sequence[ObjectKind]] = ((POD,), (POD_GROUP,), (COMPUTE_DOMAIN,), (CONFIG_MAP, SECRET, SERVICE))
# After this time, an object that is being deleted and still there is stuck.
STUCK_S = 30.0
_FIRST_S, _LONGEST_S = 0.1, 5.0


@dataclass(frozen=True, slots=True)
class RemovalScope:
    """Objects of a workflow: of one group or all, of placements from `first` to `last`, or one task's alone."""

    workflow: str
    group: str = ""
    task: str = ""
    first: int = 0
    last: int | None = None

    def selector(self, store: str) -> str:
        """Return the label selector of the objects."""
        names = {STORE: store, WORKFLOW: self.workflow, **({GROUP: self.group} if self.group else {})}
        return ",".join(f"{key}={value}" for key, value in names.items())

    def covers(self, meta: ObjectMeta) -> bool:
        """Return whether an object is to be removed."""
        if meta.workflow != self.workflow or (self.group and meta.group != self.group):
            return False
        if self.task and meta.task != self.task:
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


class Stage(StrEnum):
    """The state of one kind of objects."""

    GONE = "gone"
    LEAVING = "leaving"
    FAILED = "failed"


@dataclass(slots=True)
class ObjectRemoval:
    """A removal under way, due at `due`; `confirms` is the observation at its end.

    `logs` are the pods whose logs are kept. `passed` counts the stages of which nothing is left. `failure` and `stuck`
    are of the last step. `forced` are the pods that were deleted by force, by uid.
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
    stuck: tuple[str, ...] = ()
    forced: dict[str, ForcedPod] = field(default_factory=dict)


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
        removal.failure, stuck, waiting = None, list[str](), False
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
        removal.due = clock + backoff(removal.rounds, _FIRST_S, _LONGEST_S)
        return not waiting and removal.failure is None

    def objects(self, kind: ObjectKind, selector: str) -> list[ObjectMeta]:
        """Return the objects of a kind by their labels, none where the cluster lacks the kind."""
        found = list_served(self._api, ObjectQuery(kind, self._namespace, selector), AnyObject)
        return [each.metadata for each in found.items] if found else []

    def _found(self, removal: ObjectRemoval, kind: ObjectKind) -> list[ObjectMeta]:
        listed = self.objects(kind, removal.scope.selector(self._store))
        return [each for each in listed if each.own and removal.scope.covers(each)]

    def _kind(self, removal: ObjectRemoval, kind: ObjectKind, now: float, stuck: list[str]) -> Stage:
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
        stuck.extend(_told(kind, each, now) for each in held)
        return Stage.LEAVING if len(held) < len(found) else Stage.GONE


def _age(meta: ObjectMeta, now: float) -> float:
    since = seconds(meta.deletion_timestamp)
    return 0.0 if since is None else now - since


def _told(kind: ObjectKind, meta: ObjectMeta, now: float) -> str:
    holders = ", ".join(meta.finalizers or ()) or "unknown"
    return f"{kind.name} {meta.name} of workflow {meta.workflow} has been stuck for {_age(meta, now):.0f} s ({holders})"
