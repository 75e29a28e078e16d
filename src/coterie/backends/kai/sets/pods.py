"""The pods of a set: the user's complete pod spec, with Grove's additions and KAI's requirements."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coterie.backends.kai.manifests.pods import quantity, toleration
from coterie.backends.kai.mixed_sizes import PRIORITY
from coterie.backends.kai.sets.names import SetContext, replica_name
from coterie.backends.kai.sets.objects import PART_OF, REPLICA_INDEX, claim_template
from coterie.backends.shared.manifest_text import Manifest
from coterie.backends.shared.names import digest, label_value
from coterie.frontends.grove.podcliqueset.lower import SetPod
from coterie.frontends.grove.podcliqueset.model import Clique, PodCliqueSet
from coterie.frontends.grove.podcliqueset.nvlink import asks_for_gpus
from coterie.frontends.grove.topology import KAI
from coterie.gang.tree import Gang, Task
from coterie.sources.task_labels import ATTEMPT, TASK
from coterie.topology.cluster import STORAGE

CLAIM = "mnnvl-claim"
POD_INDEX = "grove.io/podclique-pod-index"
_TOPOLOGY_NAME = "grove.io/topology-name"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class SetGang:
    """The gang whose pods are written.

    `domain` are the node labels of the domain that all pods must use. Tasks in `storing` have a storage request that
    their users did not write.
    """

    scene: SetContext
    pcs: PodCliqueSet
    gang: Gang
    domain: Sequence[tuple[str, str]] = ()
    storing: Collection[str] = ()
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class SetPodPosition:
    """The position of a pod in its gang: the subgroup, empty for none, KAI's priority, and its NVLink group."""

    seat: SetPod
    subgroup: str
    priority: int | None = None
    link: str | None = None


def pod(team: SetGang, task: Task, chair: SetPodPosition) -> Manifest:
    """Return the pod of a task."""
    scene, clique = team.scene, chair.seat.clique
    annotations = {key: text for key, text in clique.annotations.items() if key != _TOPOLOGY_NAME}
    own = {"pod-group-name": scene.gang(team.gang.name), "kai.scheduler/skip-podgrouper": "true"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": scene.pod(task.name, team.attempt),
            "namespace": scene.namespace,
            "labels": _labels(team, task, chair),
            "annotations": {**annotations, **own},
        },
        "spec": _spec(team, task, chair),
    }


def _labels(team: SetGang, task: Task, chair: SetPodPosition) -> dict[str, str]:
    scene, pcs, gang, seat = team.scene, team.pcs, team.gang, chair.seat
    grouped = {}
    if seat.group is not None:
        grouped = {
            "grove.io/podcliquescalinggroup": f"{replica_name(pcs, seat.replica)}-{seat.group.name}",
            "grove.io/podcliquescalinggroup-replica-index": str(seat.group_replica),
        }
    return {
        **replace(scene, own_labels=seat.clique.labels).labels(gang.name),
        TASK: label_value(task.name),
        ATTEMPT: str(team.attempt),
        PART_OF: pcs.name,
        REPLICA_INDEX: str(seat.replica),
        **grouped,
        "grove.io/podclique": task.clique,
        POD_INDEX: str(seat.index),
        "grove.io/podgang": gang.name,
        **({"grove.io/base-podgang": gang.follows} if gang.follows else {}),
        "grove.io/pod-template-hash": template_hash(seat.clique),
        **scene.queue_labels(),
        **({"kai.scheduler/subgroup-name": chair.subgroup} if chair.subgroup else {}),
        **({PRIORITY: str(chair.priority)} if chair.priority is not None else {}),
    }


def template_hash(clique: Clique) -> str:
    """Return a digest of everything that defines the pods of a clique."""
    return digest(json.dumps([clique.pod_spec, dict(clique.labels), dict(clique.annotations)]))


def _spec(team: SetGang, task: Task, chair: SetPodPosition) -> Manifest:
    seat = chair.seat
    written = seat.clique.pod_spec
    fixed = {
        "schedulerName": KAI,
        "restartPolicy": "Always",
        "hostname": task.name,
        "subdomain": replica_name(team.pcs, seat.replica),
    }
    spec: Manifest = {**fixed, **{key: value for key, value in written.items() if key not in fixed}}
    pool = team.scene.pool
    if pool.node_selector:
        spec["nodeSelector"] = {**dict(pool.node_selector), **(written.get("nodeSelector") or {})}
    if further := (*pool.tolerations, *(each for each in task.shape.tolerations if each.assumed)):
        own = written.get("tolerations") or []
        spec["tolerations"] = [*own, *(found for each in further if (found := toleration(each)) not in own)]
    if team.domain:
        spec["affinity"] = _within(written.get("affinity") or {}, team.domain)
    if chair.link is not None:
        claim = {"name": CLAIM, "resourceClaimTemplateName": claim_template(team.pcs, seat.replica, chair.link)}
        spec["resourceClaims"] = [*(written.get("resourceClaims") or ()), claim]
    env = _environment(team, task, seat)
    for field in ("initContainers", "containers"):
        if written.get(field):
            spec[field] = [
                _container(each, env, claims=chair.link is not None and _has_gpus(seat.clique, each))
                for each in written[field]
            ]
    if task.name in team.storing:
        first, *others = spec["containers"]
        spec["containers"] = [_storing(first, quantity(STORAGE, task.shape.amount(STORAGE))), *others]
    return spec


def _within(affinity: Mapping[str, Any], domain: Sequence[tuple[str, str]]) -> Manifest:
    """Return an affinity that also requires nodes with these labels."""
    asked = [{"key": label, "operator": "In", "values": [value]} for label, value in domain]
    node = affinity.get("nodeAffinity") or {}
    # One of the terms must hold, so each gets the labels. A term without conditions matches no node, and stays so.
    terms = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *asked]} if any(term.values()) else term
        for term in (node.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    ] or [{"matchExpressions": asked}]
    return {**affinity, "nodeAffinity": {**node, _REQUIRED: {"nodeSelectorTerms": terms}}}


def _environment(team: SetGang, task: Task, seat: SetPod) -> list[Manifest]:
    pcs, base = team.pcs, replica_name(team.pcs, seat.replica)
    texts = {
        "GROVE_PCS_NAME": pcs.name,
        "GROVE_PCS_INDEX": str(seat.replica),
        "GROVE_PCLQ_NAME": task.clique,
        "GROVE_HEADLESS_SERVICE": f"{base}.{team.scene.namespace}.svc.cluster.local",
    }
    if seat.group is not None:
        texts |= {
            "GROVE_PCSG_NAME": f"{base}-{seat.group.name}",
            "GROVE_PCSG_INDEX": str(seat.group_replica),
            "GROVE_PCSG_TEMPLATE_NUM_PODS": str(sum(each.replicas for each in pcs.members(seat.group))),
        }
    index = {"fieldRef": {"fieldPath": f"metadata.labels['{POD_INDEX}']"}}
    return [
        *({"name": name, "value": text} for name, text in texts.items()),
        {"name": "GROVE_PCLQ_POD_INDEX", "valueFrom": index},
    ]


def _container(written: Mapping[str, Any], env: Sequence[Manifest], *, claims: bool) -> Manifest:
    """Return a container with Grove's variables before its own, which may refer to them; its own take precedence."""
    own = list(written.get("env") or ())
    taken = {each.get("name") for each in own}
    found: Manifest = {**written, "env": [*(each for each in env if each["name"] not in taken), *own]}
    if claims:
        resources = written.get("resources") or {}
        found["resources"] = {**resources, "claims": [*(resources.get("claims") or ()), {"name": CLAIM}]}
    return found


def _storing(container: Mapping[str, Any], amount: str) -> Manifest:
    resources = container.get("resources") or {}
    requests = {**(resources.get("requests") or {}), STORAGE: amount}
    return {**container, "resources": {**resources, "requests": requests}}


def _has_gpus(clique: Clique, container: Mapping[str, Any]) -> bool:
    return asks_for_gpus(replace(clique, pod_spec={"containers": [container]}))
