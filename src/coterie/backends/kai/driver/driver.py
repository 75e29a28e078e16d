"""The driver of a backend with KAI: gangs become objects of its cluster, and what happens to them observations."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from coterie.backends.base.driver import (
    DrivenWorkflow,
    News,
    TaskAttempt,
    TaskPlacement,
    WorkflowTexts,
    attempts_of,
)
from coterie.backends.base.settings import DriverSettings
from coterie.backends.kai.driver.bound_domains import BoundDomains
from coterie.backends.kai.driver.creation import GroupManifests, GroupRequest, create, manifests_of
from coterie.backends.kai.driver.external_topologies import has_known_levels, with_external_topologies
from coterie.backends.kai.driver.logs import ClusterLogs, KeptLogs, keep_all, namespace_of, pod_name
from coterie.backends.kai.driver.members import member_changes
from coterie.backends.kai.driver.objects import AnyObject, ObjectMeta
from coterie.backends.kai.driver.observation.compute_domains import ComputeDomains
from coterie.backends.kai.driver.observation.evictions import Evictions
from coterie.backends.kai.driver.observation.followed_pods import FollowedPods
from coterie.backends.kai.driver.observation.wait_reasons import GangWaitReasons
from coterie.backends.kai.driver.observation.watches import BackendWatches
from coterie.backends.kai.driver.orphans import leftovers, sweep
from coterie.backends.kai.driver.pools import PoolObjects
from coterie.backends.kai.driver.removal import (
    STAGES,
    ObjectRemoval,
    RemovalScope,
    Remover,
    forced_event,
    hurry,
    hurry_stuck,
)
from coterie.backends.kai.driver.workspaces.folder_removals import FolderRemovals
from coterie.backends.kai.driver.workspaces.records import WorkspaceRecords
from coterie.backends.kai.manifests.metadata import BACKEND, STORE, ManifestContext
from coterie.backends.shared.manifest_text import Manifest
from coterie.backends.shared.names import label_value
from coterie.config.configuration import Pool
from coterie.errors import CoterieError, NotFound, Reason, SpecErrors, Unavailable, UsageError
from coterie.kube.api import connect
from coterie.kube.errors import ApiForbidden, ObjectConflict
from coterie.kube.kinds import COMPUTE_DOMAIN, POD, POD_GROUP, ObjectKind
from coterie.kube.reads import find
from coterie.kube.retry import RetryLimits
from coterie.kube.write import json_patch
from coterie.lifecycle import (
    Create,
    Created,
    Delete,
    Go,
    Gone,
    LossCause,
    Lost,
    Observation,
    Presence,
    Refused,
    Stop,
    Stopped,
)

# Short, since whatever fails is repeated by the caller.
_PATIENCE = RetryLimits(attempts=3, total_s=5.0)
# How often created pods that no watch has shown are looked up, and errors of watches are noticed.
_CHECK_S = 5.0
_FOLLOWED = (Presence.CREATED,)
_MAY_HAVE_RUN = (Presence.CREATED, Presence.STOPPING, Presence.DELETING)
# The name of the removal of all that a deleted workflow has left begins with this.
_FORGET = "forget/"
# Failures that a repetition does not cure: the cluster refuses the objects as they are.
_REFUSALS = (SpecErrors, UsageError, NotFound, ApiForbidden, ObjectConflict)


class KaiDriver:
    """The driver of workflows on one cluster, in one namespace, for one store."""

    def __init__(self, settings: DriverSettings, texts: WorkflowTexts) -> None:
        self._settings, self._texts = settings, texts
        self._namespace, self._store = namespace_of(settings), settings.store
        self._wake = threading.Event()
        self._api = connect(settings.context or "", patience=_PATIENCE)
        try:
            self._watches = BackendWatches(self._api, self._namespace, self._store, self._wake)
        except BaseException:
            self._api.close()
            raise
        self._remover = Remover(self._api, self._namespace, self._store, self._watches.failed_node, settings.force_s)
        self._objects = PoolObjects(self._api, self._namespace, self._store, settings.backend)
        self._bound = BoundDomains(self._api, self._namespace, self._store)
        self._domains = ComputeDomains(self._api, self._namespace, self._store, self._wake)
        self._logs, self._kept = ClusterLogs(self._api, self._namespace, settings), KeptLogs(settings)
        self._records = WorkspaceRecords(settings)
        self._folders = FolderRemovals(self._api, self._remover, self._records, self._watches.pod)
        self._pools: dict[str, Pool] = {}
        self._evictions = Evictions(self._api, self._namespace)
        self._followed = FollowedPods(evicted=self._evictions.reason)
        self._removals: dict[tuple[str, str], ObjectRemoval] = {}
        self._created: dict[RemovalScope, None] = {}
        self._reasons = GangWaitReasons()
        self._shortages: list[tuple[str, News]] = []
        self._archived: set[str] = set()
        self._not_removed: tuple[str, ...] = ()
        self._check_at = 0.0

    @property
    def running(self) -> int:
        """The number of tasks that run or are about to."""
        return len(self._followed)

    @property
    def problems(self) -> list[str]:
        """Objects and folders that cannot be removed, leftovers, and what cannot be followed; gangs do without."""
        said = [one for each in list(self._removals.values()) for one in each.told(time.time())]
        said += [str(each) for each in (self._evictions.problem, self._domains.error) if each]
        said += [*self._folders.problems, *self._bound.problems, *self._domains.problems]
        return list(dict.fromkeys([*said, *self._not_removed]))

    def sync(self, pools: Collection[Any]) -> None:
        """Write the queues and topologies of the pools; one whose objects are refused keeps none of the others back."""
        found = with_external_topologies(self._api, pools)
        refused = self._objects.sync(found)
        self._pools = {pool.name: pool for pool in found if has_known_levels(pool) and pool.name not in refused}
        if any(pool.nvlink for pool in found):
            self._domains.check()
        for error in refused.values():
            raise error

    def create(
        self,
        workflow: DrivenWorkflow,
        asked: Create,
        seats: Mapping[str, TaskPlacement],  # noqa: ARG002 - KAI chooses the nodes
    ) -> Iterator[Observation]:
        """Create the objects of tasks, and those of their group that are missing.

        Where the cluster refuses one, all tasks are lost, so that nothing half-created stays.
        """
        scope = RemovalScope(label_value(workflow.id), label_value(asked.group), "", asked.base, asked.attempt)
        self._created[scope] = None
        whole = asked.attempt == asked.base
        try:
            text, files = self._texts.get(workflow.id)
            pool = self._pools.get(workflow.pool)
            if pool is None:
                raise Unavailable(
                    f'pool "{workflow.pool}" or its ClusterTopology is not known here', "The service keeps trying."
                )
            request = GroupRequest(pool, self._namespace, self._store, self._watches.cluster(), files)
            # Tasks that join others, or are created again after a crash, do as the first ones did.
            claims = (pool.nvlink or not whole) and self._has_domain(scope)
            found = manifests_of(workflow, text, asked, request, claims=claims or (None if whole else False))
            scene = ManifestContext(self._namespace, workflow.id, pool, store=self._store)
            self._records.note(scene, found.manifests)
            if not whole:
                self._ask_for_members(found)
            for _ in create(self._api, found.manifests, self._known):
                pass
        except _REFUSALS as error:
            if isinstance(error, ObjectConflict) and not error.managers:
                # Two writers at the same moment: the next try meets the outcome.
                raise Unavailable(str(error), error.hint) from error
            said = f"{error} {getattr(error, 'hint', '')}".strip()
            for task, _ in asked.tasks:
                yield Lost(task, asked.attempt, LossCause.BACKEND_ERROR, said)
            return
        except CoterieError as error:
            # Replacements are not told as missing: no other domain would help, and their group would move.
            if whole:
                self._incomplete(workflow.id, asked, str(error))
            raise
        for task, _ in asked.tasks:
            self._follow(TaskAttempt(workflow.id, asked.group, task, asked.attempt), workflow.pool)
        self._wake.set()
        yield Created(asked.group, asked.attempt)

    def _incomplete(self, workflow: str, asked: Create, why: str) -> None:
        """Tell that a gang waits for pods which cannot be created now."""
        keys = [TaskAttempt(workflow, asked.group, task, asked.attempt) for task, _ in asked.tasks]
        there = sum(self._watches.pod(pod_name(self._settings, key)) is not None for key in keys)
        said = f"{there} of {len(keys)} pods of the gang exist: {why}"
        found = Refused(asked.group, asked.attempt, Reason.GANG_INCOMPLETE.value, said)
        self._shortages.append((workflow, found))

    def go(self, workflow: DrivenWorkflow, asked: Go) -> Iterator[Observation]:  # noqa: ARG002 - the same for all
        """Yield nothing: a gang's pods are bound together, and their commands start at once."""
        return iter(())

    def stop(self, workflow: DrivenWorkflow, asked: Stop) -> None:
        """Delete the pod of one task."""
        group = workflow.spec.groups[workflow.spec.places[asked.task][0]].name
        key = TaskAttempt(workflow.id, group, asked.task, asked.attempt)
        self._followed.drop(lambda each: each == key)
        scope = RemovalScope(
            label_value(workflow.id), label_value(group), label_value(asked.task), asked.attempt, asked.attempt
        )
        removal = ObjectRemoval(scope, asked.grace_s, Stopped(asked.task, asked.attempt), self._logs_of([key]))
        self._remove(workflow.id, asked.id, removal)

    def delete(self, workflow: DrivenWorkflow, asked: Delete) -> None:
        """Delete the objects of a group, in order."""
        self._followed.drop(
            lambda each: (
                each.workflow == workflow.id
                and each.group == asked.group
                and asked.attempt <= each.attempt <= asked.last
            )
        )
        scope = RemovalScope(label_value(workflow.id), label_value(asked.group), "", asked.attempt, asked.last)
        found = attempts_of(workflow, asked.group, asked.attempt, asked.last)
        logs = self._logs_of([TaskAttempt(workflow.id, asked.group, *each) for each in found])
        self._remove(workflow.id, asked.id, ObjectRemoval(scope, asked.grace_s, Gone(asked.group, asked.attempt), logs))

    def adopt(self, workflow: DrivenWorkflow) -> None:
        """Follow the pods of a workflow; one that is gone is reported as lost."""
        for group in workflow.state.groups:
            for task in group.tasks:
                key = TaskAttempt(workflow.id, group.name, task.name, task.attempt)
                if task.presence in _FOLLOWED:
                    self._follow(key, workflow.pool, adopted=True)
                # Nobody knows whether a pod had a node that went while no service has seen it.
                if task.presence in _MAY_HAVE_RUN and self._watches.pod(pod_name(self._settings, key)) is None:
                    self._records.note_bound(label_value(workflow.id))
        self._wake.set()

    def release(self, workflow: str) -> None:
        """Stop following the tasks of a workflow; they keep running."""
        self._followed.drop(lambda each: each.workflow == workflow)
        self._removals = {name: one for name, one in self._removals.items() if name[0] != workflow}

    def news(self) -> Iterator[tuple[str, News]]:
        """Yield observations of pods, reasons of KAI, and confirmed removals; then raise what keeps it from working."""
        shortages, self._shortages = self._shortages, []
        yield from shortages
        yield from self._pod_news()
        self._bound.write(self._pools, self._followed.attempts(), self._watches.pod, self._watches.labels)
        yield from self._wait_reasons()
        yield from self._removal_news()
        self._folders.step(self._namespace, self._store, self._pools, self._removals.values())
        if error := self._watches.error:
            raise error if isinstance(error, Unavailable) else Unavailable(str(error), error.hint)

    def wait(self, timeout_s: float) -> bool:
        """Block until an object changes or a removal is due, or for the timeout."""
        due = min((each.due for each in list(self._removals.values())), default=self._check_at)
        due = min(due, self._check_at, self._bound.due, self._folders.due, self._followed.due)
        left = due - time.monotonic()
        changed = self._wake.wait(max(0.0, min(timeout_s, left)))
        self._wake.clear()
        return changed or left <= timeout_s

    def end_strays(self, workflows: Mapping[str, DrivenWorkflow], spared: Collection[str]) -> None:
        """Remove objects of this store that no workflow has any more."""
        kinds = [kind for kinds in STAGES for kind in kinds]
        listed = ((kind, meta) for kind in kinds for meta in self._remover.objects(kind, f"{STORE}={self._store}"))
        # Another backend of the service may be the same namespace of the same cluster.
        own, found, others = label_value(self._settings.backend), [], list[tuple[ObjectKind, ObjectMeta]]()
        for kind, meta in listed:
            if meta.label(BACKEND) in ("", own):
                found.append((kind, meta))
            else:
                others.append((kind, meta))
        busy = [*self._created, *(each.scope for each in self._removals.values()), *self._folders.scopes]
        result = sweep(found, workflows, spared, busy)
        for scope in result.scopes:
            self._remove("", f"sweep/{scope}", ObjectRemoval(scope, 0.0))
        self._objects.sweep(self._watches.groups())
        other = leftovers([*others, *self._objects.others], self._settings.backends)
        self._not_removed = (*result.foreign, *other)
        if any(pool.nvlink for pool in self._pools.values()):
            self._domains.check()

    def archive(self, workflow: str) -> None:
        """Note that a workflow has ended: only its logs are kept."""
        self._archived.add(workflow)
        self._records.archive(workflow)
        self._created = {scope: None for scope in self._created if scope.workflow != label_value(workflow)}

    def unarchived(self) -> set[str]:
        """Return the workflows with logs or folders that were not archived by this process."""
        return self._remains() - self._archived

    def archived(self) -> set[str]:
        """Return the workflows whose logs or folders are kept."""
        return self._remains() & self._archived

    def _remains(self) -> set[str]:
        return (self._kept.workflows() | self._records.workflows()) - self._folders.workflows

    def forget(self, workflow: str) -> None:
        """Remove all objects, logs and folders of a workflow."""
        self._kept.forget(workflow)
        self._archived.discard(workflow)
        # The pod that removes its folder must not go; all else of it has gone before.
        if workflow in self._folders.workflows:
            return
        # Only the sweep has no limit of placements: a deleted workflow has no later ones.
        self._remove("", f"{_FORGET}{workflow}", ObjectRemoval(RemovalScope(label_value(workflow)), 0.0))

    def close(self) -> None:
        """Stop all watches; tasks keep running."""
        self._domains.close()
        self._watches.close()
        self._api.close()

    def _pod_news(self) -> Iterator[tuple[str, News]]:
        changed = self._watches.take_changed_pods()
        if gone := [last.metadata for last in changed.values() if last is not None]:
            hurry(self._removals.values(), gone, [each.metadata for each in self._watches.pods()])
        for name in (*self._followed.take_fresh(), *self._followed.unexplained()):
            changed.setdefault(name, None)
        for name, last in changed.items():
            pod = self._watches.pod(name)
            if pod is None and last is None and not self._followed.existed(name):
                continue  # created, and not seen yet
            if (shown := pod or last) is not None and shown.spec.node_name:
                self._records.note_bound(shown.metadata.workflow)
            yield from self._followed.news(name, pod, last)
        if time.monotonic() >= self._check_at:
            self._check_at = time.monotonic() + _CHECK_S
            for name in self._followed.overdue():
                pod = self._watches.pod(name)
                if pod is not None or find(self._api, POD, name, AnyObject, self._namespace) is None:
                    yield from self._followed.news(name, pod)

    def _wait_reasons(self) -> Iterator[tuple[str, News]]:
        unbound = self._unbound()
        yield from self._reasons.domains(self._domains.unready(), self._followed.attempts().values(), unbound)
        changed = self._watches.take_changed_groups()
        if self._domains.take_deleted() or any(self._watches.group(name) is None for name in changed):
            hurry_stuck([*self._removals.values(), *self._folders.removals])
        yield from self._reasons.refusals(changed, self._watches.group, unbound)

    def _unbound(self) -> list[TaskAttempt]:
        pods = ((key, self._watches.pod(name)) for name, key in self._followed.attempts().items())
        return [key for key, pod in pods if pod is None or not pod.spec.node_name]

    def _removal_news(self) -> Iterator[tuple[str, News]]:
        for name, removal in list(self._removals.items()):
            if removal.due > time.monotonic():
                continue
            self._keep_logs(removal)
            known = len(removal.forced)
            gone = self._remover.step(removal, time.time(), time.monotonic())
            yield from ((name[0], forced_event(removal, each)) for each in list(removal.forced.values())[known:])
            if removal.bound:
                self._records.note_bound(removal.scope.workflow)
            if not gone:
                continue
            if not removal.stuck:
                del self._removals[name]
                if name[1].startswith(_FORGET):
                    self._folders.begin(name[1].removeprefix(_FORGET))
            if not removal.scope.task:
                self._created = {each: None for each in self._created if not removal.scope.contains(each)}
            if removal.confirms is not None:
                confirms, removal.confirms = removal.confirms, None
                yield name[0], confirms

    def _keep_logs(self, removal: ObjectRemoval) -> None:
        """Keep the logs of pods that have run, before they go."""
        if removal.rounds:
            return
        known = {name: self._watches.pod(name) for name in removal.logs}
        begun = [name for name, pod in known.items() if pod is not None and pod.status.container_statuses]
        keep_all(self._logs, self._kept, [(name, removal.logs[name]) for name in begun])

    def _logs_of(self, attempts: Iterable[TaskAttempt]) -> dict[str, TaskAttempt]:
        return {pod_name(self._settings, each): each for each in attempts}

    def _remove(self, workflow: str, name: str, removal: ObjectRemoval) -> None:
        """Begin a removal; one that is under way goes on."""
        self._removals.setdefault((workflow, name), removal)
        self._wake.set()

    def _follow(self, key: TaskAttempt, pool: str, *, adopted: bool = False) -> None:
        name = pod_name(self._settings, key)
        self._followed.follow(name, key, adopted=adopted)
        self._bound.expect(name, key, pool)
        scope = RemovalScope(label_value(key.workflow), label_value(key.group), "", key.attempt, key.attempt)
        self._created[scope] = None

    def _known(self, manifest: Manifest) -> str:
        """Return the uid of an object that exists already, as far as watches show it."""
        name = manifest["metadata"]["name"]
        found = {"Pod": self._watches.pod, "PodGroup": self._watches.group}.get(manifest["kind"], lambda _: None)(name)
        return found.metadata.uid if found is not None and found.metadata.deletion_timestamp is None else ""

    def _ask_for_members(self, found: GroupManifests) -> None:
        """Let the PodGroup of a group that runs already ask for its unfinished tasks."""
        names = [each["metadata"]["name"] for each in found.manifests if each["kind"] == POD_GROUP.name]
        for group in filter(None, map(self._watches.group, names)):
            if changes := member_changes(group, found.unfinished):
                json_patch(self._api, POD_GROUP, group.metadata.name, changes, self._namespace)

    def _has_domain(self, scope: RemovalScope) -> bool:
        return any(scope.covers(each) for each in self._remover.objects(COMPUTE_DOMAIN, scope.selector(self._store)))
