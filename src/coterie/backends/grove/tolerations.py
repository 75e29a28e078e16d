"""Tolerations of a PodCliqueSet's pods for the taints of resources they request."""

from __future__ import annotations

from coterie.backends.shared.manifest_text import Manifest
from coterie.gang.tolerations import with_resource_tolerations
from coterie.gang.tree import Shape, Toleration


def tolerant(manifest: Manifest) -> Manifest:
    """Return a PodCliqueSet whose pods tolerate the taints of resources they request; any other object unchanged."""
    if manifest["kind"] != "PodCliqueSet":
        return manifest
    template = manifest["spec"]["template"]
    cliques = [{**each, "spec": _clique(each["spec"])} for each in template["cliques"]]
    return {**manifest, "spec": {**manifest["spec"], "template": {**template, "cliques": cliques}}}


def _clique(spec: Manifest) -> Manifest:
    pod = spec["podSpec"]
    own = pod.get("tolerations") or []
    known = (
        Toleration(each.get("key", ""), each.get("operator") or "Equal", each.get("value", ""), each.get("effect", ""))
        for each in own
    )
    shape = with_resource_tolerations(Shape(tuple((name, 1) for name in _asked(pod)), tolerations=tuple(known)))
    added = [
        {"key": each.key, "operator": each.operator, "effect": each.effect}
        for each in shape.tolerations
        if each.assumed
    ]
    return {**spec, "podSpec": {**pod, "tolerations": [*own, *added]}} if added else spec


def _asked(pod: Manifest) -> list[str]:
    """Return the names of all resources that containers request; a limit is a request as well."""
    containers = (*(pod.get("initContainers") or ()), *(pod.get("containers") or ()))
    resources = [each.get("resources") or {} for each in containers]
    return sorted({name for each in resources for part in ("requests", "limits") for name in each.get(part) or {}})
