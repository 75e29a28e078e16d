"""The removal of deleted workflows' folders from workspaces: by a pod for each, since only pods can reach the volume.

A pod that fails is removed, reported and made again, for as long as it takes. What a crash leaves of one is swept like
any object of a workflow that is no more, and the record of the folder, which is still there, makes the next one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from coterie.backends.kai.driver.creation import create
from coterie.backends.kai.driver.objects import AnyObject, TaskPod
from coterie.backends.kai.driver.observation.pod_report import report
from coterie.backends.kai.driver.removal import ObjectRemoval, RemovalScope, Remover
from coterie.backends.kai.driver.workspaces.records import WorkspaceRecord, WorkspaceRecords
from coterie.backends.kai.manifests.folder_removal import on_current_nodes, removal_objects, removed_folder
from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.backends.shared.names import label_value
from coterie.config.configuration import Pool
from coterie.errors import CoterieError, Unavailable
from coterie.kube.api import Api
from coterie.kube.errors import ApiForbidden
from coterie.kube.kinds import PERSISTENT_VOLUME_CLAIM, POD
from coterie.kube.reads import find
from coterie.kube.retry import backoff
from coterie.lifecycle import Ended, Lost

# How many pods remove folders at a time, besides those of which only stuck objects are left.
_AT_ONCE = 4
# How long to wait before a pod that failed is made again.
_FIRST_S, _LONGEST_S = 2.0, 300.0
# After this time, a pod that no watch has shown is looked up.
_UNSEEN_S = 10.0
# After this time, a pod that has not ended is reported.
_LATE_S = 120.0
# After this time, a pod without a node makes way for the next: its own time limit begins only on a node.
_UNBOUND_S = 600.0
# After this time, so does a pod whose node does not end it after its time limit.
_UNENDED_S = 4500.0
# After this time without its claim, a folder is given up: nobody can reach it any more.
_UNCLAIMED_S = 600.0
# How long to wait before records that cannot be read are read again.
_READ_S = 30.0
_LONGEST_WORDS = 300
# How many folders are named in one report.
_NAMED = 3


@dataclass(slots=True)
class FolderRemoval:
    """The removal of one folder: its pod since `since`, if there is one, and then the removal of that pod.

    `failure` is that of the last try, and `gone` is whether its pod has removed the folder. `unclaimed` is the time
    since which its claim does not exist.
    """

    workflow: str
    record: WorkspaceRecord
    scope: RemovalScope
    due: float = 0.0
    tries: int = 0
    since: float | None = None
    seen: bool = False
    gone: bool = False
    failure: str = ""
    objects: ObjectRemoval | None = None
    unclaimed: float | None = None

    @property
    def active(self) -> bool:
        """Whether there may be objects of it in the cluster."""
        return self.since is not None or self.objects is not None

    @property
    def stuck(self) -> bool:
        """Whether only objects are left of it that somebody else's finalizers hold."""
        return self.objects is not None and bool(self.objects.stuck)


class FolderRemovals:
    """The removals of one backend; `pod` returns a pod as watches show it."""

    def __init__(
        self,
        api: Api,
        remover: Remover,
        records: WorkspaceRecords,
        pod: Callable[[str], TaskPod | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._remover, self._records, self._pod, self._clock = api, remover, records, pod, clock
        self._removals: dict[str, FolderRemoval] = {}
        self._busy: Collection[str] = ()
        # The workflows whose records could not be read or removed, and why.
        self._unread: dict[str, str] = {}
        self._read_at = math.inf
        # The claims that were looked up in this step: many folders may be on one.
        self._claims: dict[str, AnyObject | None] = {}

    def begin(self, workflow: str) -> None:
        """Remove the folders of a deleted workflow, of which no pod is left; a removal under way goes on.

        The pod of a removal would make a folder that is not there, so one that nobody has made is only forgotten.
        """
        try:
            found = [record for record in self._records.of(workflow) if record.bound]
            if not found:
                self._records.forget(workflow)
        except Unavailable as error:
            self._read_later(workflow, str(error))
            return
        self._unread.pop(workflow, None)
        for record in found:
            scope = RemovalScope(label_value(workflow), name=record.name)
            self._removals.setdefault(record.name, FolderRemoval(workflow, record, scope))

    @property
    def workflows(self) -> set[str]:
        """The workflows whose folders are being removed."""
        return {*self._unread, *(each.workflow for each in self._removals.values())}

    @property
    def removals(self) -> list[ObjectRemoval]:
        """The removals of its pods that are under way."""
        return [each.objects for each in self._active() if each.objects is not None]

    @property
    def scopes(self) -> list[RemovalScope]:
        """The scopes of objects that are made or removed at this moment."""
        return [each.scope for each in self._active()]

    @property
    def due(self) -> float:
        """The time of the next step, as far as it is known."""
        active = self._active()
        removed = (each.objects.due for each in active if each.objects is not None)
        return min(self._read_at, *removed, *(each.due for each in self._waiting(active)), math.inf)

    @property
    def problems(self) -> list[str]:
        """The folders that could not be removed, and why, of which a few are named; stuck objects of their pods."""
        failed = [each for each in list(self._removals.values()) if each.failure]
        found = [_told(each) for each in failed[:_NAMED]]
        if len(failed) > _NAMED:
            found.append(f"and {len(failed) - _NAMED} more folders of deleted workflows")
        unread = list(self._unread.values())
        found += unread[:_NAMED]
        if len(unread) > _NAMED:
            found.append(f"and {len(unread) - _NAMED} more records of folders")
        stuck = [said for each in self.removals for said in each.told(time.time())]
        found += stuck[:_NAMED]
        if len(stuck) > _NAMED:
            found.append(f"and {len(stuck) - _NAMED} more objects of pods that remove folders")
        return found

    def step(
        self, namespace: str, store: str, pools: Mapping[str, Pool], removals: Iterable[ObjectRemoval] = ()
    ) -> None:
        """Advance all removals that are due; `removals` are those of other objects, which must not meet its own.

        A removal that is stuck goes on to delete what its scope has, so only one of a group's objects is harmless.
        """
        self._busy = {each.scope.workflow for each in removals if not each.stuck or not each.scope.group}
        self._claims.clear()
        self._read()
        for each in self._active():
            if each.objects is not None:
                self._end(each, each.objects)
            else:
                self._look(each)
        active, now = self._active(), self._clock()
        waiting = [each for each in self._waiting(active) if each.due <= now]
        places = _AT_ONCE - len(_in_place(active))
        # Folders that were not tried yet go first.
        for each in sorted(waiting, key=lambda one: one.due):
            if places <= 0:
                break
            try:
                self._make(each, namespace, store, pools)
            except CoterieError as error:
                self._clear(each, str(error))
            places -= each.active

    def _active(self) -> list[FolderRemoval]:
        return [each for each in list(self._removals.values()) if each.active]

    def _waiting(self, active: Collection[FolderRemoval]) -> list[FolderRemoval]:
        """Return the removals that have no pod and may get one."""
        if len(_in_place(active)) >= _AT_ONCE:
            return []
        known = list(self._removals.values())
        return [each for each in known if not each.active and each.scope.workflow not in self._busy]

    def _read(self) -> None:
        """Read again the records that could not be read."""
        if self._clock() >= self._read_at:
            self._read_at = math.inf
            for each in list(self._unread):
                self.begin(each)

    def _read_later(self, workflow: str, failure: str) -> None:
        self._unread[workflow] = failure
        self._read_at = min(self._read_at, self._clock() + _READ_S)

    def _make(self, each: FolderRemoval, namespace: str, store: str, pools: Mapping[str, Pool]) -> None:
        # The queue of a pool that is no more is gone as well; any other has room for this.
        own = pools.get(each.record.pool)
        pool = own or next(iter(pools.values()), None)
        if pool is None:
            self._again(each, "no pool of the backend is known here")
            return
        if not self._claimed(each, namespace):
            return
        queue = ManifestContext(namespace, each.workflow, pool, store=store).queue_labels()
        image = pool.workspace.removal_image if pool.workspace is not None else ""
        each.since, each.seen = self._clock(), False
        pod = on_current_nodes(each.record.pod, pool, each.record.platform) if own is not None else each.record.pod
        for _ in create(self._api, removal_objects(pod, queue, image), lambda _: ""):
            pass

    def _claimed(self, each: FolderRemoval, namespace: str) -> bool:
        """Return whether the claim of a folder exists; a folder whose claim stays away is given up."""
        _, name, _ = removed_folder(each.record.pod)
        try:
            if name not in self._claims:
                self._claims[name] = find(self._api, PERSISTENT_VOLUME_CLAIM, name, AnyObject, namespace)
        except ApiForbidden:
            return True
        claim = self._claims[name]
        if claim is not None:
            each.unclaimed = None
            if claim.metadata.deletion_timestamp is None:
                return True
            self._again(each, f"PersistentVolumeClaim {name} is being deleted")
            return False
        each.unclaimed = self._clock() if each.unclaimed is None else each.unclaimed
        if self._clock() - each.unclaimed < _UNCLAIMED_S:
            self._again(each, f"PersistentVolumeClaim {name} does not exist")
        else:
            self._forget(each)
        return False

    def _look(self, each: FolderRemoval) -> None:
        pod, waited = self._pod(each.record.name), self._clock() - (each.since or 0.0)
        if pod is None:
            if each.seen or (waited > _UNSEEN_S and self._missing(each)):
                self._clear(each, "its pod was deleted by somebody else")
            return
        each.seen = True
        told = list(report(pod, each.record.name, 0))
        end = next((one for one in told if isinstance(one, Ended | Lost)), None)
        if isinstance(end, Ended) and end.exit_code == 0:
            each.gone = True
            self._clear(each, "")
        elif end is not None:
            code = f"exit code {end.exit_code}" if isinstance(end, Ended) else end.cause.value
            self._clear(each, f"{end.message or code} (pod {each.record.name})")
        elif waited > _UNBOUND_S and not pod.spec.node_name:
            self._clear(each, f"pod {each.record.name} got no node in {waited:.0f} s{_unschedulable(pod)}")
        elif waited > _UNENDED_S:
            self._clear(each, f"pod {each.record.name} did not end in {waited:.0f} s")
        elif waited > _LATE_S:
            each.failure = f"pod {each.record.name} has not removed it after {waited:.0f} s"

    def _missing(self, each: FolderRemoval) -> bool:
        namespace = str(each.record.pod["metadata"]["namespace"])
        return find(self._api, POD, each.record.name, AnyObject, namespace) is None

    def _clear(self, each: FolderRemoval, failure: str) -> None:
        each.since, each.failure, each.objects = None, failure, ObjectRemoval(each.scope, 0.0)

    def _end(self, each: FolderRemoval, objects: ObjectRemoval) -> None:
        if objects.due > self._clock():
            return
        if not self._remover.step(objects, time.time(), self._clock()):
            return
        if not objects.stuck:
            each.objects = None
            if not each.gone:
                self._again(each, each.failure)
        if each.gone:
            self._forget(each)

    def _forget(self, each: FolderRemoval) -> None:
        """Forget a folder that is gone; what is stuck of its pod is followed further."""
        if not each.active:
            del self._removals[each.record.name]
        if all(one.gone for one in self._removals.values() if one.workflow == each.workflow):
            try:
                self._records.forget(each.workflow)
            except Unavailable as error:
                self._read_later(each.workflow, str(error))

    def _again(self, each: FolderRemoval, failure: str) -> None:
        each.tries += 1
        each.failure, each.due = failure, self._clock() + backoff(each.tries, _FIRST_S, _LONGEST_S)


def _in_place(active: Iterable[FolderRemoval]) -> list[FolderRemoval]:
    """Return the removals that keep others waiting."""
    return [each for each in active if not each.stuck]


def _told(each: FolderRemoval) -> str:
    workflow, claim, folder = removed_folder(each.record.pod)
    words = f"folder {folder} of the deleted workflow {workflow} is still on the volume of {claim}"
    return f"{words}: {each.failure}"


def _unschedulable(pod: TaskPod) -> str:
    """Return the words of the scheduler about a pod that has no node, if there are any."""
    said = (each.message for each in pod.status.conditions or () if each.type == "PodScheduled")
    return next((f": {each[:_LONGEST_WORDS]}" for each in said if each), "")
