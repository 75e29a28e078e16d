"""A live cluster as a `Snapshot`, equal to the output of `kubectl get nodes,pods -A -o json` at that moment.

Objects that declare levels (ClusterTopology, KAI's Topology) are read too, where the cluster has them; gangs, which are
KAI's PodGroups and all pods that name one, are read on request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from coterie.errors import Fault, Notice, Place
from coterie.kube.api import Api, connect
from coterie.kube.errors import ApiForbidden
from coterie.kube.kinds import CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_BINDING, NODE, POD, POD_GROUP, TOPOLOGY
from coterie.kube.reads import ObjectQuery, list_all, list_served
from coterie.kube.retry import RetryLimits
from coterie.sources import Snapshot
from coterie.sources.assemble import assemble, refuse
from coterie.sources.kubernetes_objects import (
    TOPOLOGIES,
    BareNode,
    BarePod,
    BarePodGroup,
    gang_pod_of,
    node_of,
    pod_group_object,
    pod_of,
    topology_object,
)

PREFIX = "context:"
# Finished pods hold no capacity, so the server filters them out.
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
_LEVELS = (CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_BINDING, TOPOLOGY)
# Short, because a user waits at a terminal.
_PATIENCE = RetryLimits(attempts=3, total_s=12.0)

# Objects that declare levels, and notices of those that could not be read.
LiveObjects = tuple[tuple[dict[str, Any], ...], list[Notice]]
S = TypeVar("S", BareNode, BarePod)
T = TypeVar("T")


def read_live(source: str, *, gangs: bool = False) -> Snapshot:
    """Return the cluster that `context:NAME` names, `context:` being the current one, with its gangs if requested."""
    with connect(source.removeprefix(PREFIX), patience=_PATIENCE) as api:
        return snapshot_of(api, gangs=gangs)


def snapshot_of(api: Api, *, gangs: bool = False) -> Snapshot:
    """Return the nodes and pods of a cluster, decoded page by page; with its gangs, raise MissingKind without KAI."""
    # Nodes come first, as in kubectl's output.
    nodes = list_all(api, ObjectQuery(NODE), BareNode).items
    # Pods are listed after their gangs, so that the pods of every listed gang are included.
    groups = list_all(api, ObjectQuery(POD_GROUP), BarePodGroup).items if gangs else []
    listed = list_all(api, ObjectQuery(POD, fields="" if gangs else UNFINISHED), BarePod).items
    snapshot = snapshot_from(api, nodes, listed, level_objects(api))
    if not gangs:
        return snapshot
    return replace(
        snapshot,
        pod_groups=tuple(found for item in groups if (found := pod_group_object(item)) is not None),
        gang_pods=tuple(pod for item in listed if (pod := gang_pod_of(item)) is not None),
    )


def snapshot_from(api: Api, nodes: Iterable[BareNode], pods: Iterable[BarePod], levels: LiveObjects) -> Snapshot:
    """Return the snapshot of nodes and pods that were read before."""
    where = Place(f"{PREFIX}{api.context}")
    faults: list[Fault] = []
    made = _made(nodes, node_of, faults, where)
    running = _made(pods, pod_of, faults, where)
    refuse(faults)
    assembly = assemble(made, [pod for pod in running if pod is not None], where)
    objects, unread = levels
    return Snapshot(assembly.cluster, None, (*assembly.notices, *unread), objects)


def level_objects(api: Api) -> LiveObjects:
    """Return the objects that declare levels, as far as the cluster has such kinds and the user may read them."""
    where = Place(f"{PREFIX}{api.context}")
    objects: list[dict[str, Any]] = []
    unread: list[Notice] = []
    for kind in _LEVELS:
        try:
            found = list_served(api, ObjectQuery(kind), TOPOLOGIES[kind.name])
        except ApiForbidden as error:
            unread.append(Notice("TopologiesUnread", f"{error}, so the levels that they define are not known", where))
            continue
        listed = found.items if found else ()
        objects += [{"apiVersion": kind.api_version, **topology_object(item)} for item in listed]
    return tuple(objects), unread


def _made(items: Iterable[S], make: Callable[[S], T], faults: list[Fault], where: Place) -> list[T]:
    made: list[T] = []
    for item in items:
        try:
            made.append(make(item))
        except ValueError as error:
            faults.append(
                Fault(
                    f"{_title(item)}: {error}",
                    hint="Correct the object in the cluster, or leave it out of the snapshot.",
                    place=where,
                )
            )
    return made


def _title(item: BareNode | BarePod) -> str:
    if isinstance(item, BareNode):
        return f'node "{item.metadata.name}"'
    return f'pod "{item.metadata.namespace}/{item.metadata.name}"'
