"""The tolerations that Kubernetes adds to pods which request an extended resource.

Nodes with devices are commonly reserved for pods that use them by a taint whose key is the name of the resource. The
ExtendedResourceToleration admission plugin adds the toleration to such pods; GPU operators and pod templates do the
same.
"""

from __future__ import annotations

from dataclasses import replace

from coterie.gang.tree import Shape, Toleration
from coterie.topology.channels import CHANNEL

_EFFECT = "NoSchedule"


def with_resource_tolerations(shape: Shape) -> Shape:
    """Return the shape with a toleration for the taint of each extended resource it requests, where it lacks one."""
    added = [
        Toleration(name, "Exists", effect=_EFFECT, assumed=True)
        for name, _ in shape.requests
        if _is_extended(name) and not any(_covers(each, name) for each in shape.tolerations)
    ]
    return replace(shape, tolerations=(*shape.tolerations, *added)) if added else shape


def without_assumed(shape: Shape) -> Shape:
    """Return the shape with only the tolerations that are written in its manifest."""
    return replace(shape, tolerations=tuple(each for each in shape.tolerations if not each.assumed))


def _is_extended(name: str) -> bool:
    """Return whether Kubernetes treats a resource as extended: neither its own nor a quota name."""
    # A channel is requested by a claim; only Coterie counts it as a resource.
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.") and name != CHANNEL


def _covers(found: Toleration, key: str) -> bool:
    """Return whether a toleration covers every NoSchedule taint of a key, of any value."""
    return found.operator == "Exists" and found.key in ("", key) and found.effect in ("", _EFFECT)
