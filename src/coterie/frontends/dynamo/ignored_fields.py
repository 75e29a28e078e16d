"""The fields of a graph deployment that Coterie ignores.

| field | consequence |
|---|---|
| scalingAdapter, autoscaling, ingress, modelRef, eppConfig, restart, checkpoint, namespaces of discovery | warning |
| pvcs, compilationCache, frontendSidecar, dynamoSidecar, kvTransferPolicy | warning |
| a container called main in extraPodSpec.containers | warning: mainContainer is the main container |
| gpuMemoryService, failover, componentGroups, lpx | other pods or other requests: no placement without them |

Resources, environment, probes, volume mounts and shared memory become part of the pods and are not listed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from coterie.document.located import Path
from coterie.frontends.dynamo.model import ALPHA, MAIN, Unused, Version
from coterie.frontends.kubernetes.objects import Resource

# Enabled by `enabled: true` in v1alpha1; the block alone means nothing there.
_SWITCHED = frozenset({"scalingAdapter", "autoscaling", "ingress", "checkpoint", "gpuMemoryService", "failover"})
_OF_COMPONENT = (
    "scalingAdapter",
    "autoscaling",
    "ingress",
    "modelRef",
    "eppConfig",
    "checkpoint",
    "globalDynamoNamespace",
    "dynamoNamespace",
    "frontendSidecar",
    "dynamoSidecar",
    "compilationCache",
)
_BLOCKING = {
    "gpuMemoryService": "it replaces the GPUs of the pods by claims on shared devices",
    "failover": "it adds engines that share the GPUs of others",
    "lpx": "it adds pods for other accelerators",
    "componentGroups": "it scales and places several components as one",
}


def unused_fields(resource: Resource, version: Version) -> Iterator[Unused]:
    """Yield every field that is set and has no effect, once, at its first use."""
    found: dict[str, Unused] = {}
    for name, path in _all(resource, version):
        found.setdefault(name, Unused(name, path, _BLOCKING.get(name, "")))
    return iter(found.values())


def _all(resource: Resource, version: Version) -> Iterator[tuple[str, Path]]:
    spec: Mapping[str, Any] = resource.get("spec") or {}
    for name in ("restart", "pvcs"):
        if spec.get(name):
            yield name, ("spec", name)
    experimental = spec.get("experimental") or {}
    for name in ("kvTransferPolicy", "componentGroups"):
        if experimental.get(name):
            yield name, ("spec", "experimental", name)
    for path, component in _components(spec, version):
        if version == ALPHA:
            yield from _second_mains(path, component)
        preview = component.get("experimental") or {}
        for name in (*_OF_COMPONENT, "gpuMemoryService", "failover", "lpx"):
            if _on(name, component.get(name), version):
                yield name, (*path, name)
            if _on(name, preview.get(name), version):
                yield name, (*path, "experimental", name)


def _second_mains(path: Path, service: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """Yield containers beside `mainContainer` that have its name: Dynamo's operator drops them."""
    for index, container in enumerate((service.get("extraPodSpec") or {}).get("containers") or ()):
        if container.get("name") == MAIN:
            yield f"the container {MAIN} in extraPodSpec.containers", (*path, "extraPodSpec", "containers", index)


def _components(spec: Mapping[str, Any], version: Version) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if version == ALPHA:
        services = spec.get("services") or {}
        yield from ((("spec", "services", name), services[name]) for name in sorted(services))
    else:
        yield from ((("spec", "components", index), each) for index, each in enumerate(spec.get("components") or ()))


def _on(name: str, value: object, version: Version) -> bool:
    if value is None or value is False:
        return False
    if name in _SWITCHED and isinstance(value, Mapping):
        return bool(value.get("enabled", version != ALPHA))
    return True
