"""The pod configuration of a v1alpha1 service as a native pod template, and the way back.

What `extraPodSpec.mainContainer` says wins over the fields of the service; environment variables add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coterie.frontends.dynamo.model import MAIN
from coterie.frontends.text import Path

Data = Mapping[str, Any]
_GPU = "nvidia.com/gpu"


def pod_template(service: Data) -> tuple[dict[str, Any], dict[Path, Path]]:
    """Return the template of a service, and where its parts stand in the service, as paths below both."""
    extra = dict(service.get("extraPodSpec") or {})
    written = dict(extra.pop("mainContainer", None) or {})
    others = list(extra.pop("containers", None) or ())
    spec = ("podTemplate", "spec")
    origin: dict[Path, Path] = {("podTemplate",): (), spec: ("extraPodSpec",), (*spec, "containers"): ("extraPodSpec",)}
    first = (*spec, "containers", 0)
    origin[first] = ("extraPodSpec", "mainContainer") if written else ()
    for index in range(len(others)):
        origin[*spec, "containers", index + 1] = ("extraPodSpec", "containers", index)
    main, taken = _main(service, written)
    origin.update({(*first, name): (name,) for name in taken})
    volumes, mounts = _volumes(service, extra, main)
    if mounts:
        main["volumeMounts"] = [*(main.get("volumeMounts") or ()), *mounts]
    pod = {**extra, "containers": [main, *others]}
    if volumes:
        pod["volumes"] = [*(extra.get("volumes") or ()), *volumes]
    metadata = _metadata(service)
    for name in metadata:
        origin["podTemplate", "metadata", name] = ("extraPodMetadata", name)
    return {**({"metadata": metadata} if metadata else {}), "spec": pod}, origin


def _main(service: Data, written: Data) -> tuple[dict[str, Any], list[str]]:
    """Return the main container, and which of its fields stand in the service and not in `mainContainer`."""
    fields = {
        "resources": native_resources(service.get("resources") or {}),
        "livenessProbe": service.get("livenessProbe"),
        "readinessProbe": service.get("readinessProbe"),
    }
    taken = {name: value for name, value in fields.items() if value and name not in written}
    main = {"name": MAIN, **{key: value for key, value in written.items() if key != "name"}, **taken}
    own = [each.get("name") for each in written.get("env") or ()]
    env = [*(each for each in service.get("envs") or () if each.get("name") not in own), *(written.get("env") or ())]
    if env:
        main["env"] = env
    if secret := service.get("envFromSecret"):
        main["envFrom"] = [*(written.get("envFrom") or ()), {"secretRef": {"name": secret}}]
    return main, list(taken)


def native_resources(resources: Data) -> dict[str, Any]:
    """Return requests and limits of v1alpha1 as Kubernetes writes them."""
    found: dict[str, Any] = {}
    for kind in ("requests", "limits"):
        amounts = resources.get(kind) or {}
        native = {name: amounts[name] for name in ("cpu", "memory") if amounts.get(name)}
        if amounts.get("gpu"):
            native[amounts.get("gpuType") or _GPU] = amounts["gpu"]
        native.update(amounts.get("custom") or {})
        if native:
            found[kind] = native
    if resources.get("claims"):
        found["claims"] = list(resources["claims"])
    return found


def _volumes(service: Data, extra: Data, main: Data) -> tuple[list[Data], list[Data]]:
    """Return the volumes and mounts of the claims that a service names, where it says where to mount them."""
    have = {volume.get("name") for volume in extra.get("volumes") or ()}
    taken = {mount.get("mountPath") for mount in main.get("volumeMounts") or ()}
    volumes: dict[str, Data] = {}
    mounts: list[Data] = []
    for mount in service.get("volumeMounts") or ():
        name, path = mount["name"], mount.get("mountPoint")
        if path and path not in taken:
            mounts.append({"name": name, "mountPath": path})
            if name not in have:
                volumes[name] = {"name": name, "persistentVolumeClaim": {"claimName": name}}
    return list(volumes.values()), mounts


def _metadata(service: Data) -> dict[str, Any]:
    extra = service.get("extraPodMetadata") or {}
    found = {name: {**(service.get(name) or {}), **(extra.get(name) or {})} for name in ("labels", "annotations")}
    return {name: values for name, values in found.items() if values}
