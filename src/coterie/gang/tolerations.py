"""The tolerations that Kubernetes adds to pods which ask for an extended resource.

Nodes with devices are commonly kept free for pods that use them by a taint whose key is the name of the resource. The
ExtendedResourceToleration admission plugin lets such pods in, and GPU operators and pod templates do the same.
"""

from __future__ import annotations

from dataclasses import replace

from coterie.gang.tree import Shape, Toleration
from coterie.topology.channels import CHANNEL

_EFFECT = "NoSchedule"


def with_resource_tolerations(shape: Shape) -> Shape:
    """Return the shape with a toleration for each extended resource it asks for, where it has none that does."""
    added = [
        Toleration(name, "Exists", effect=_EFFECT, assumed=True)
        for name, _ in shape.requests
        if _is_extended(name) and not any(_covers(each, name) for each in shape.tolerations)
    ]
    return replace(shape, tolerations=(*shape.tolerations, *added)) if added else shape


def without_assumed(shape: Shape) -> Shape:
    """Return the shape with only the tolerations that somebody wrote."""
    return replace(shape, tolerations=tuple(each for each in shape.tolerations if not each.assumed))


def _is_extended(name: str) -> bool:
    """Tell whether Kubernetes counts a resource as extended: one that is not its own, and no quota's name."""
    # A channel is asked for by a claim; as a resource only Coterie knows it.
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.") and name != CHANNEL


def _covers(found: Toleration, key: str) -> bool:
    """Tell whether a toleration holds for every NoSchedule taint of a key, whatever its value."""
    return found.operator == "Exists" and found.key in ("", key) and found.effect in ("", _EFFECT)
