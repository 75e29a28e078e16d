"""The pod configuration of a v1alpha1 service as a native pod template, with source paths.

`extraPodSpec.mainContainer` is laid over the fields of the service as Dynamo's operator does it:

| part of the main container | where both set it |
|---|---|
| resources | requests and limits are merged by resource; of one resource, `mainContainer` counts, also for 0 |
| probes | merged field by field; a value of `mainContainer` counts unless it is empty |
| env | merged by name; of one name, `mainContainer` counts |
| volumeMounts | those of `mainContainer`, then those of the service |
| resources.claims, envFrom, and every other list | those of `mainContainer` alone, unless there are none |

The main container is called main whatever `mainContainer` calls it; another container of that name is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from coterie.document.located import Path
from coterie.frontends.dynamo.model import MAIN

Data = Mapping[str, Any]
_GPU = "nvidia.com/gpu"
_KINDS = ("requests", "limits")


def pod_template(service: Data) -> tuple[dict[str, Any], dict[Path, Path]]:
    """Return the template of a service, and the source paths of its parts, relative to both."""
    extra = dict(service.get("extraPodSpec") or {})
    written = dict(extra.pop("mainContainer", None) or {})
    others = list(extra.pop("containers", None) or ())
    kept = [index for index, each in enumerate(others) if each.get("name") != MAIN]
    spec = ("podTemplate", "spec")
    origin: dict[Path, Path] = {("podTemplate",): (), spec: ("extraPodSpec",), (*spec, "containers"): ("extraPodSpec",)}
    first = (*spec, "containers", 0)
    origin[first] = ("extraPodSpec", "mainContainer") if written else ()
    for number, index in enumerate(kept, start=1):
        origin[*spec, "containers", number] = ("extraPodSpec", "containers", index)
    main = _main(service, written)
    origin.update({(*first, *part): there for part, there in _taken(service, written)})
    if mounts := list(_mounts(service, main)):
        main["volumeMounts"] = [*(main.get("volumeMounts") or ()), *mounts]
    pod = {**extra, "containers": [main, *(others[index] for index in kept)]}
    metadata = _metadata(service)
    for name in metadata:
        origin["podTemplate", "metadata", name] = ("extraPodMetadata", name)
    return {**({"metadata": metadata} if metadata else {}), "spec": pod}, origin


def _main(service: Data, written: Data) -> dict[str, Any]:
    """Return the main container of a service."""
    fields = {
        "resources": native_resources(service.get("resources") or {}),
        "livenessProbe": service.get("livenessProbe"),
        "readinessProbe": service.get("readinessProbe"),
    }
    secret = service.get("envFromSecret")
    fields["envFrom"] = [{"secretRef": {"name": secret}}] if secret else None
    merged = overlaid({name: value for name, value in fields.items() if value}, written)
    main = {"name": MAIN, **dict.fromkeys(written), **(merged | {"name": MAIN})}  # in the order of the file
    own = [each.get("name") for each in written.get("env") or ()]
    env = [*(each for each in service.get("envs") or () if each.get("name") not in own), *(written.get("env") or ())]
    if env:
        main["env"] = env
    return main


def overlaid(base: Any, over: Any, *, amounts: bool = False) -> Any:  # noqa: ANN401 - parts of pods have any shape
    """Return a value overlaid with another: mappings are merged, and empty values override nothing.

    Amounts by resource override each other even where they are 0.
    """
    if not isinstance(base, Mapping) or not isinstance(over, Mapping):
        return over if over or (amounts and over is not None) else base
    found = {**base, **over}
    for name in base.keys() & over.keys():
        found[name] = overlaid(base[name], over[name], amounts=name in _KINDS or amounts)
    return found


def _taken(service: Data, written: Data) -> Iterator[tuple[Path, Path]]:
    """Yield the parts of the main container that come from the service, not `mainContainer`, with their places."""
    for name in ("resources", "livenessProbe", "readinessProbe"):
        if service.get(name) and name not in written:
            yield (name,), (name,)
    resources, over = service.get("resources") or {}, written.get("resources") or {}
    for kind in _KINDS:
        for name, there in _sources(resources.get(kind) or {}):
            if name not in (over.get(kind) or {}):
                yield ("resources", kind, name), ("resources", kind, *there)


def _sources(amounts: Data) -> Iterator[tuple[str, Path]]:
    """Yield the resources of v1alpha1 requests or limits by their native names, with their places."""
    yield from ((name, (name,)) for name in ("cpu", "memory") if amounts.get(name))
    if amounts.get("gpu"):
        yield amounts.get("gpuType") or _GPU, ("gpu",)
    yield from ((name, ("custom", name)) for name in amounts.get("custom") or ())


def native_resources(resources: Data) -> dict[str, Any]:
    """Return requests and limits of v1alpha1 as Kubernetes writes them."""
    found: dict[str, Any] = {}
    for kind in _KINDS:
        amounts = resources.get(kind) or {}
        if native := {name: _inner(amounts, there) for name, there in _sources(amounts)}:
            found[kind] = native
    if resources.get("claims"):
        found["claims"] = list(resources["claims"])
    return found


def _inner(data: Any, path: Path) -> Any:  # noqa: ANN401 - parts of pods have any shape
    for step in path:
        data = data[step]
    return data


def _mounts(service: Data, main: Data) -> Iterator[Data]:
    """Yield the mounts of the volumes that a service names, where it sets a mount path."""
    taken = {mount.get("mountPath") for mount in main.get("volumeMounts") or ()}
    for mount in service.get("volumeMounts") or ():
        if (path := mount.get("mountPoint")) and path not in taken:
            yield {"name": mount["name"], "mountPath": path}


def _metadata(service: Data) -> dict[str, Any]:
    extra = service.get("extraPodMetadata") or {}
    found = {name: {**(service.get(name) or {}), **(extra.get(name) or {})} for name in ("labels", "annotations")}
    return {name: values for name, values in found.items() if values}
