"""The creation of a group's objects: those that others depend on first, each only where it is missing.

The ComputeDomain owns the PodGroup, and that owns the pods, so that a person who deletes one of them ends the gang in
the right order: the garbage collector removes owners in the foreground after what they own. Files and the Service have
no owner, since they must outlast the pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from coterie.backends.base.driver import DrivenWorkflow
from coterie.backends.kai.driver.own_objects import create_own
from coterie.backends.kai.manifests.render import RenderRequest, ServiceRun, render
from coterie.backends.shared.constraint_annotation import ANNOTATION, write
from coterie.backends.shared.manifest_text import Manifest
from coterie.backends.shared.names import label_value
from coterie.config.configuration import Pool
from coterie.frontends.workflow.lower import lower
from coterie.frontends.workflow.read import Workflow
from coterie.gang.edits import pinned, without_nodes
from coterie.kube.api import Api
from coterie.kube.kinds import POD_GROUP
from coterie.lifecycle import Create, GroupState, by_task
from coterie.placement.whatif import changed_gang
from coterie.sources.task_labels import TASK
from coterie.topology.cluster import Cluster

_SHARED = frozenset({"Queue", "Topology"})
SUBGROUP = "kai.scheduler/subgroup-name"
_OWNERS = {"PodGroup": "ComputeDomain", "Pod": "PodGroup"}


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """The inputs of a group's objects besides its workflow: its pool, the nodes, and the files of the workflow."""

    pool: Pool
    namespace: str
    store: str
    cluster: Cluster | None
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class GroupManifests:
    """The objects of a group that are to be created, and the number of its unfinished tasks by subgroup."""

    manifests: Sequence[Manifest]
    unfinished: Mapping[str, int]


def manifests_of(
    workflow: DrivenWorkflow, text: Workflow, asked: Create, request: GroupRequest, *, claims: bool | None
) -> GroupManifests:
    """Return the objects of the tasks to be created and of their group; raise `SpecErrors` with every fault.

    `claims` is whether the group has a ComputeDomain already, None for a group without objects.
    """
    lowered = lower(text, request.pool)
    group = workflow.state.groups[workflow.spec.order[asked.group]]
    gangs = lowered.gangs
    for change in text.changes:
        gangs = tuple(changed_gang(change, gang, request.pool.topology) or gang for gang in gangs)
    gangs = tuple(without_nodes(gang, set(group.excluded)) if gang.name == asked.group else gang for gang in gangs)
    whole = next(gang for gang in gangs if gang.name == asked.group)
    if group.pins:
        gangs = tuple(pinned(gang, by_task(group.pins)) if gang is whole else gang for gang in gangs)
    attempts = {task.name: task.attempt for each in workflow.state.groups for task in each.tasks if task.attempt}
    run = ServiceRun(workflow.id, request.store, workflow.spec.priority.value, asked.base, claims, attempts)
    found = render(
        text,
        replace(lowered, gangs=gangs),
        request.pool,
        RenderRequest(
            request.namespace,
            request.cluster,
            request.files,
            (asked.group,),
            asked.attempt,
            run=run,
        ),
    )
    if group.pins:
        _audited(found.manifests, write(whole, request.pool.topology))
    wanted = {label_value(task) for task, _ in asked.tasks}
    return GroupManifests(
        [
            each
            for each in found.manifests
            if each["kind"] not in _SHARED and (each["kind"] != "Pod" or each["metadata"]["labels"][TASK] in wanted)
        ],
        _unfinished(found.manifests, group),
    )


def _audited(manifests: Iterable[Manifest], constraints: str) -> None:
    """Keep the constraints of the user with a PodGroup whose pods are pinned instead."""
    for each in manifests:
        if each["kind"] == POD_GROUP.name:
            each["metadata"]["annotations"][ANNOTATION] = constraints


def _unfinished(manifests: Iterable[Manifest], group: GroupState) -> dict[str, int]:
    ended = {label_value(task.name) for task in group.tasks if task.status.final}
    labels = (each["metadata"]["labels"] for each in manifests if each["kind"] == "Pod")
    return dict(Counter(each.get(SUBGROUP, "") for each in labels if each[TASK] not in ended))


def create(api: Api, manifests: Sequence[Manifest], known: Callable[[Manifest], str]) -> Iterator[Manifest]:
    """Create objects in order, and yield each that was created; `known` gives the uid of an existing object, or "".

    An existing object of the group is left as it is: it may have been created before a pool changed. One of the same
    name that is not the store's is a conflict.
    """
    owners: dict[str, Manifest] = {}
    for manifest in manifests:
        kind = manifest["kind"]
        owned = manifest
        if (owner := owners.get(_OWNERS.get(kind, ""))) is not None:
            metadata = {**manifest["metadata"], "ownerReferences": [owner]}
            owned = {**manifest, "metadata": metadata}
        uid = known(manifest)
        if not uid:
            uid = create_own(api, owned)
            yield manifest
        owners[kind] = _reference(manifest, uid)


def _reference(manifest: Manifest, uid: str) -> Manifest:
    return {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "name": manifest["metadata"]["name"],
        "uid": uid,
        "blockOwnerDeletion": True,
    }
