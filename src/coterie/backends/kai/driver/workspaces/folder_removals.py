"""The removal of deleted workflows' folders from workspaces: by a pod for each, since only pods can reach the volume.

A pod that fails is removed, reported and made again, for as long as it takes. What a crash leaves of one is swept like
any object of a workflow that is no more, and the record of the folder, which is still there, makes the next one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from coterie.backends.kai.driver.creation import create
from coterie.backends.kai.driver.objects import AnyObject, TaskPod
from coterie.backends.kai.driver.observation.pod_report import report
from coterie.backends.kai.driver.removal import ObjectRemoval, RemovalScope, Remover
from coterie.backends.kai.driver.workspaces.records import WorkspaceRecord, WorkspaceRecords
from coterie.backends.kai.manifests.folder_removal import removal_objects, removed_folder
from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.backends.shared.names import label_value
from coterie.config.configuration import Pool
from coterie.errors import CoterieError
from coterie.kube.api import Api
from coterie.kube.kinds import POD
from coterie.kube.reads import find
from coterie.kube.retry import backoff
from coterie.lifecycle import Ended, Lost

# How many pods remove folders at a time.
_AT_ONCE = 4
# How long to wait before a pod that failed is made again.
_FIRST_S, _LONGEST_S = 2.0, 300.0
# After this time, a pod that no watch has shown is looked up.
_UNSEEN_S = 10.0
# After this time, a pod that has not ended is reported.
_LATE_S = 120.0


@dataclass(slots=True)
class FolderRemoval:
    """The removal of one folder: its pod since `since`, if there is one, and then the removal of that pod.

    `failure` is that of the last try, and `gone` is whether its pod has removed the folder.
    """

    workflow: str
    record: WorkspaceRecord
    due: float = 0.0
    tries: int = 0
    since: float | None = None
    seen: bool = False
    gone: bool = False
    failure: str = ""
    objects: ObjectRemoval | None = None

    @property
    def active(self) -> bool:
        """Whether there may be objects of it in the cluster."""
        return self.since is not None or self.objects is not None


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

    def begin(self, workflow: str) -> None:
        """Remove the folders of a deleted workflow, of which no pod is left; a removal under way goes on."""
        for record in self._records.of(workflow):
            self._removals.setdefault(record.name, FolderRemoval(workflow, record))

    @property
    def workflows(self) -> set[str]:
        """The workflows whose folders are being removed."""
        return {each.workflow for each in self._removals.values()}

    @property
    def scopes(self) -> list[RemovalScope]:
        """The scopes of objects that are made or removed at this moment."""
        return [_scope(each) for each in self._removals.values() if each.active]

    @property
    def due(self) -> float:
        """The time of the next step, as far as it is known."""
        return min((self._due(each) for each in list(self._removals.values())), default=math.inf)

    @property
    def troubles(self) -> list[str]:
        """The folders that could not be removed, and why; stuck objects of their pods."""
        found = []
        for each in self._removals.values():
            workflow, claim, folder = removed_folder(each.record.pod)
            if each.failure:
                words = f"folder {folder} of the deleted workflow {workflow} is still on the volume of {claim}"
                found.append(f"{words}: {each.failure}")
            if each.objects is not None:
                found += [*([str(each.objects.failure)] if each.objects.failure else []), *each.objects.stuck]
        return found

    def step(self, namespace: str, store: str, pools: Mapping[str, Pool], busy: Collection[str]) -> None:
        """Advance all removals that are due; `busy` are the labels of workflows whose objects are being removed."""
        self._busy = busy
        for name, each in list(self._removals.items()):
            if each.objects is not None:
                self._end(name, each, each.objects)
            elif each.since is not None:
                self._look(each)
            elif each.due <= self._clock() and self._may_begin(each):
                try:
                    self._make(each, namespace, store, pools)
                except CoterieError as error:
                    self._clear(each, str(error))

    def _may_begin(self, each: FolderRemoval) -> bool:
        """Return whether there is a place for one more pod; folders of one workflow go one after the other."""
        active = [one.workflow for one in self._removals.values() if one.active]
        free = len(active) < _AT_ONCE and each.workflow not in active
        return free and label_value(each.workflow) not in self._busy

    def _make(self, each: FolderRemoval, namespace: str, store: str, pools: Mapping[str, Pool]) -> None:
        # The queue of a pool that is no more is gone as well; any other has room for this.
        pool = pools.get(each.record.pool) or next(iter(pools.values()), None)
        if pool is None:
            self._again(each, "no pool of the backend is known here")
            return
        queue = ManifestContext(namespace, each.workflow, pool, store=store).queue_labels()
        image = pool.workspace.removal_image if pool.workspace is not None else ""
        each.since, each.seen = self._clock(), False
        for _ in create(self._api, removal_objects(each.record.pod, queue, image), lambda _: ""):
            pass

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
        elif waited > _LATE_S:
            each.failure = f"pod {each.record.name} has not removed it after {waited:.0f} s"

    def _missing(self, each: FolderRemoval) -> bool:
        namespace = str(each.record.pod["metadata"]["namespace"])
        return find(self._api, POD, each.record.name, AnyObject, namespace) is None

    def _clear(self, each: FolderRemoval, failure: str) -> None:
        each.since, each.failure, each.objects = None, failure, ObjectRemoval(_scope(each), 0.0)

    def _end(self, name: str, each: FolderRemoval, objects: ObjectRemoval) -> None:
        if objects.due > self._clock():
            return
        gone = self._remover.step(objects, time.time(), self._clock())
        if not gone or objects.stuck:
            return
        each.objects = None
        if not each.gone:
            self._again(each, each.failure)
            return
        del self._removals[name]
        if each.workflow not in self.workflows:
            self._records.forget(each.workflow)

    def _again(self, each: FolderRemoval, failure: str) -> None:
        each.tries += 1
        each.failure, each.due = failure, self._clock() + backoff(each.tries, _FIRST_S, _LONGEST_S)

    def _due(self, each: FolderRemoval) -> float:
        if each.objects is not None:
            return each.objects.due
        return each.due if each.since is None and self._may_begin(each) else math.inf


def _scope(each: FolderRemoval) -> RemovalScope:
    return RemovalScope(label_value(each.workflow))
