"""The pod of each task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.backends.kai.manifests.objects import CLAIM, claim_template
from coterie.backends.kai.manifests.pod_template import merged
from coterie.backends.kai.mixed_sizes import PRIORITY
from coterie.backends.shared.manifest_text import Manifest
from coterie.backends.shared.names import label_value
from coterie.config.pod_template import TASK_CONTAINER
from coterie.frontends.workflow.values import normalized_name
from coterie.gang.tree import Shape, Task, Toleration
from coterie.sources.task_labels import ATTEMPT, TASK
from coterie.topology.cluster import CPU, GPU, MEMORY, STORAGE

# Kubernetes expands $(NAME) and halves $$; a command must run as it was written.
_REFERENCE = re.compile(r"\$(?=[$(])")


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a task's container, with all tokens replaced."""

    image: str
    command: Sequence[str]
    args: Sequence[str]
    environment: Sequence[tuple[str, str]]
    volumes: Sequence[Manifest]
    mounts: Sequence[Manifest]
    # Environment variables that are known only once the pod has a node, by their sources.
    later: Sequence[tuple[str, Manifest]] = ()


@dataclass(frozen=True, slots=True)
class PodPosition:
    """The position of a pod in its gang; `subgroup` is empty when the PodGroup has none.

    Pods of the highest `priority` are placed first; without one KAI takes them in any order.
    """

    group: str
    subgroup: str
    claims: bool
    found_by_name: bool
    attempt: int
    exec_timeout: int | None
    priority: int | None = None

    def within(self, subgroup: str, priority: int | None = None) -> PodPosition:
        """Return the position in a subgroup of the gang."""
        return replace(self, subgroup=subgroup, priority=priority)


def hostname(task: str) -> str:
    """Return the host name of a task's pod, the same for every attempt."""
    return normalized_name(task)


def pod(scene: ManifestContext, task: Task, seat: PodPosition, work: Work) -> Manifest:
    """Return the pod of a task, with what its pool gives to every pod."""
    labels = {
        **scene.labels(seat.group),
        TASK: label_value(task.name),
        ATTEMPT: str(seat.attempt),
        **scene.queue_labels(),
        **({"kai.scheduler/subgroup-name": seat.subgroup} if seat.subgroup else {}),
        **({PRIORITY: str(seat.priority)} if seat.priority is not None else {}),
    }
    own = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": scene.pod(task.name, seat.attempt),
            "namespace": scene.namespace,
            "labels": labels,
            "annotations": {"pod-group-name": scene.gang(seat.group), "kai.scheduler/skip-podgrouper": "true"},
        },
        "spec": _spec(scene, task, seat, work),
    }
    return merged(own, scene.pool.pod_template)


def _spec(scene: ManifestContext, task: Task, seat: PodPosition, work: Work) -> Manifest:
    shape, spec_of_pool = task.shape, scene.pool.pod_template.get("spec", {})
    claims = seat.claims and shape.amount(GPU) > 0
    named = {"hostname": hostname(task.name), "subdomain": scene.host_domain(seat.group)} if seat.found_by_name else {}
    optional = {
        "activeDeadlineSeconds": seat.exec_timeout,
        "nodeSelector": dict(shape.selector),
        "affinity": _affinity(shape),
        "tolerations": [toleration(found) for found in shape.tolerations],
        "resourceClaims": [{"name": CLAIM, "resourceClaimTemplateName": claim_template(scene, seat.group)}] * claims,
    }
    return {
        "schedulerName": "kai-scheduler",
        "restartPolicy": "Never",
        "automountServiceAccountToken": spec_of_pool.get("automountServiceAccountToken", False),
        **named,
        **{name: value for name, value in optional.items() if value},
        "containers": [_container(_without(shape, scene.pool.sidecar_requests), work, claims=claims)],
        **({"volumes": list(work.volumes)} if work.volumes else {}),
    }


def _without(shape: Shape, sidecars: Iterable[tuple[str, int]]) -> Shape:
    """Return the shape of the task's container alone."""
    taken = dict(sidecars)
    left = ((name, amount - taken.get(name, 0)) for name, amount in shape.requests)
    return replace(shape, requests=tuple((name, amount) for name, amount in left if amount > 0))


def _container(shape: Shape, work: Work, *, claims: bool) -> Manifest:
    gpus = {GPU: str(shape.amount(GPU))} if shape.amount(GPU) else {}
    resources = {
        "requests": {name: quantity(name, amount) for name, amount in shape.requests},
        "limits": gpus,
        "claims": [{"name": CLAIM}] * claims,
    }
    optional = {
        "args": [_literal(word) for word in work.args],
        "env": [
            *({"name": name, "value": _literal(value)} for name, value in work.environment),
            *({"name": name, "valueFrom": source} for name, source in work.later),
        ],
        "resources": {name: value for name, value in resources.items() if value},
        "volumeMounts": list(work.mounts),
    }
    return {
        "name": TASK_CONTAINER,
        "image": work.image,
        "command": [_literal(word) for word in work.command],
        # The last lines of a task that fails are then part of its pod's status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **{name: value for name, value in optional.items() if value},
    }


def folders(paths: Iterable[str]) -> tuple[list[Manifest], list[Manifest]]:
    """Return volumes and mounts for folders that live as long as the pod."""
    found = sorted(paths)
    volumes: list[Manifest] = [{"name": _volume(path), "emptyDir": {}} for path in found]
    return volumes, [{"name": _volume(path), "mountPath": path} for path in found]


def node_paths(mounts: Iterable[str]) -> tuple[list[Manifest], list[Manifest]]:
    """Return volumes and mounts for paths of the node, written `/a` or `/a:/b`."""
    volumes: list[Manifest] = []
    mounted: list[Manifest] = []
    for index, written in enumerate(mounts):
        source, _, target = written.partition(":")
        volumes.append({"name": f"node-{index}", "hostPath": {"path": source}})
        mounted.append({"name": f"node-{index}", "mountPath": target or source})
    return volumes, mounted


def quantity(resource: str, amount: int) -> str:
    """Return an amount as Kubernetes writes it: processors in thousandths where needed, sizes in exact units."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in {MEMORY, STORAGE}:
        for power, unit in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
            if amount and amount % 1024**power == 0:
                return f"{amount // 1024**power}{unit}"
    return str(amount)


def _volume(path: str) -> str:
    return path.strip("/").removeprefix("coterie/").replace("/", "-")


def _literal(text: str) -> str:
    return _REFERENCE.sub("$$", text)


def _affinity(shape: Shape) -> Manifest:
    # A field selector takes one value, so each excluded node has its own entry.
    fields = [{"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in sorted(shape.excluded)]
    terms = [
        {
            "matchExpressions": [
                {"key": each.key, "operator": each.operator, **({"values": list(each.values)} if each.values else {})}
                for each in term
            ],
            **({"matchFields": fields} if fields else {}),
        }
        for term in shape.affinity
    ]
    if not terms and fields:
        terms = [{"matchFields": fields}]
    if not terms:
        return {}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def toleration(found: Toleration) -> Manifest:
    """Return a toleration as pods have it."""
    return {
        **({"key": found.key} if found.key else {}),
        "operator": found.operator,
        **({"value": found.value} if found.operator == "Equal" else {}),
        **({"effect": found.effect} if found.effect else {}),
    }
