"""The pods of a graph deployment: the user's templates with additions for scheduler, environment and shared memory."""

from __future__ import annotations

import copy
from typing import Any

from coterie.frontends.dynamo.model import Component, GraphDeployment
from coterie.frontends.dynamo.names import LEADER, WORKER, fitted, unit_name
from coterie.frontends.dynamo.settings import DynamoSettings
from coterie.frontends.grove.topology import KAI
from coterie.topology.levels import is_label_value

QUEUE_LABEL = "kai.scheduler/queue"
QUEUE_ANNOTATION = "nvidia.com/kai-scheduler-queue"
_GRAPH = "nvidia.com/dynamo-graph-deployment-name"
_COMPONENT = "nvidia.com/dynamo-component"
_TYPE = "nvidia.com/dynamo-component-type"
_SHARED = "shared-memory"
_SHARED_PATH = "/dev/shm"  # noqa: S108 - where engines look for it


class PodGenerator:
    """The generator of one graph's pods."""

    def __init__(self, graph: GraphDeployment, settings: DynamoSettings) -> None:
        self._graph = graph
        self._settings = settings

    def metadata(self, component: Component) -> dict[str, Any]:
        """Return labels and annotations of a clique's pods; the component's own override the graph's."""
        own = component.template.get("metadata") or {}
        labels = {**self._graph.labels, **(own.get("labels") or {})}
        if self._kai(component):
            labels.setdefault(QUEUE_LABEL, self._queue())
        labels[_GRAPH] = fitted(self._graph.name, 63)
        labels[_COMPONENT] = component.name
        if is_label_value(component.type):
            labels[_TYPE] = component.type
        annotations = {**self._graph.annotations, **(own.get("annotations") or {})}
        return {"labels": labels, **({"annotations": annotations} if annotations else {})}

    def spec(self, component: Component, clique: str) -> dict[str, Any]:
        """Return the pod spec of one of a component's cliques."""
        spec: dict[str, Any] = copy.deepcopy(dict(component.pod_spec))
        if self._kai(component):
            spec["schedulerName"] = KAI
        if component.main is not None:
            main = spec["containers"][component.main]
            if env := self._env(component, clique, main.get("env") or []):
                main["env"] = env
            _share_memory(spec, main, component.shared_memory)
            _claim_volumes(spec, main)
        return spec

    def _kai(self, component: Component) -> bool:
        # A scheduler that the user chose is kept, and needs no queue.
        return self._settings.kai and component.pod_spec.get("schedulerName") in (None, "", KAI)

    def _queue(self) -> str:
        asked = self._graph.own_annotations.get(QUEUE_ANNOTATION, "").strip()
        return asked or self._settings.default_queue

    def _env(self, component: Component, clique: str, own: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the main container's environment; leader variables come first, since others may refer to them."""
        found = _multinode(component, clique) if component.nodes > 1 else []
        found += copy.deepcopy([dict(each) for each in self._graph.env])
        names = {each.get("name") for each in own}
        return [*(each for each in found if each["name"] not in names), *own]


def _multinode(component: Component, clique: str) -> list[dict[str, Any]]:
    """Return the variables by which a pod finds the others of its replica; Grove defines the ones used here first.

    A pod's rank is the base plus its index in its clique: the leader has 0, the workers begin at 1.
    """
    leader = f"$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-{unit_name(component)}-{LEADER}-0.$(GROVE_HEADLESS_SERVICE)"
    return [
        {"name": "COTERIE_LEADER_HOST", "value": leader},
        {"name": "COTERIE_NODE_COUNT", "value": str(component.nodes)},
        {"name": "COTERIE_NODE_RANK_BASE", "value": "1" if clique.endswith(f"-{WORKER}") else "0"},
    ]


def _share_memory(spec: dict[str, Any], main: dict[str, Any], size: str) -> None:
    """Mount shared memory in the main container, unless the user mounted or disabled it."""
    mounts = main.get("volumeMounts") or []
    volumes = spec.get("volumes") or []
    taken = {volume.get("name") for volume in volumes} | {mount.get("mountPath") for mount in mounts}
    if not size.strip("0") or taken & {_SHARED, _SHARED_PATH}:
        return
    spec["volumes"] = [*volumes, {"name": _SHARED, "emptyDir": {"medium": "Memory", "sizeLimit": size}}]
    main["volumeMounts"] = [*mounts, {"name": _SHARED, "mountPath": _SHARED_PATH}]


def _claim_volumes(spec: dict[str, Any], main: dict[str, Any]) -> None:
    """Add a volume from the claim of the same name for every mount of the main container without a volume."""
    volumes = list(spec.get("volumes") or ())
    have = {volume.get("name") for volume in volumes}
    missing = dict.fromkeys(mount.get("name") for mount in main.get("volumeMounts") or ())
    volumes += (
        {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in missing if name and name not in have
    )
    if volumes:
        spec["volumes"] = volumes
