"""The conversion of older forms of Grove's objects to today's API.

`packDomain` became `pack.required`. A set that named its topology without a level for itself gave the name to all its
parts; today a constraint without a level is refused, so the name goes to each constrained group and clique.
ClusterTopology became ClusterTopologyBinding, `schedulerReferences` became `schedulerTopologyBindings`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from coterie.backends.shared.manifest_text import Manifest

_CONSTRAINT = "topologyConstraint"
# Fields that an API server writes, and refuses or ignores when they are applied.
_SERVED = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")


def upgraded(podcliqueset: Mapping[str, Any]) -> Manifest:
    """Return a valid PodCliqueSet in today's form; one already in it is returned unchanged."""
    found = _applied(podcliqueset)
    template = (found.get("spec") or {}).get("template") or {}
    name = (template.get(_CONSTRAINT) or {}).get("topologyName")
    for owner in (template, *_parts(template)):
        if owner.get(_CONSTRAINT):
            owner[_CONSTRAINT] = _packed(owner[_CONSTRAINT])
    if template.get(_CONSTRAINT) and "pack" not in template[_CONSTRAINT]:
        del template[_CONSTRAINT]
        for owner in _parts(template):
            if name and owner.get(_CONSTRAINT):
                owner[_CONSTRAINT] = {"topologyName": name, **owner[_CONSTRAINT]}
    return found


def binding_of(topology: Mapping[str, Any]) -> Manifest:
    """Return a valid ClusterTopology as a ClusterTopologyBinding; a binding is returned unchanged."""
    found = _applied(topology)
    found["kind"] = "ClusterTopologyBinding"
    spec = found.get("spec") or {}
    for older in ("schedulerReferences", "schedulerTopologyReferences"):
        if (references := spec.pop(older, None)) is not None:
            spec["schedulerTopologyBindings"] = [_reference(each) for each in references]
    return found


def _applied(data: Mapping[str, Any]) -> Manifest:
    found: Manifest = {key: copy.deepcopy(value) for key, value in data.items() if key != "status"}
    metadata = found.get("metadata") or {}
    for name in _SERVED:
        metadata.pop(name, None)
    return found


def _parts(template: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for listed in ("podCliqueScalingGroups", "cliques"):
        yield from template.get(listed) or ()


def _packed(constraint: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in constraint.items() if key != "packDomain"}
    if (level := constraint.get("packDomain")) is not None:
        found["pack"] = {"required": level, **(constraint.get("pack") or {})}
    return found


def _reference(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"topologyReference" if key == "reference" else key: value for key, value in entry.items()}
