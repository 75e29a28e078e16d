"""Kubernetes objects with faulty fields, read as far as possible, so that all of their faults are reported at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from coterie.document.located import Path
from coterie.document.repair import Repaired, overlaps, read_repaired
from coterie.errors import Fault, FieldError, Reason, nearest
from coterie.frontends.kubernetes.objects import Resource

T = TypeVar("T")

# Rules compare the fields of a family with each other: where one was repaired, faults of the others are unreliable.
_NAMES = (
    *("name", "roleName", "cliques", "podCliqueScalingGroups", "cliqueNames", "startsAfter", "components", "services"),
    *("resourceClaimTemplates", "resourceSharing", "childCliqueNames", "childScalingGroupNames", "cliqueStartupType"),
)
_NUMBERS = (
    *("replicas", "minAvailable", "autoScalingConfig", "scaleConfig", "minReplicas", "maxReplicas"),
    *("multinode", "nodeCount"),
)
_CONSTRAINTS = (
    *("topologyConstraint", "topologyName", "clusterTopologyName", "topologyProfile"),
    *("pack", "packDomain", "required", "preferred"),
)
_CONTAINERS = ("podTemplate", "extraPodSpec", "podSpec", "mainContainer", "containers", "image")
_FAMILY = {word: family for family in (_NAMES, _NUMBERS, _CONSTRAINTS, _CONTAINERS) for word in family}


def draft(resource: Resource, read: Callable[[Resource], T]) -> tuple[tuple[Fault, ...], Repaired[T] | None]:
    """Return the faults in an object's shape, and the object without them; None where nothing readable is left."""

    def again(data: Any) -> T:  # noqa: ANN401 - objects hold data of any shape
        return read(replace(resource, data=data, document=replace(resource.document, data=data)))

    return read_repaired(resource.data, again)


def independent(faults: Iterable[Fault], gone: frozenset[Path]) -> list[Fault]:
    """Return the faults of an object that are not consequences of repaired values."""
    lost = {word for path in gone for word in _FAMILY.get(_meant(path), ())}
    beside = {path[:-1] for path in gone}
    return [
        fault
        for fault in faults
        if not overlaps(fault.path, gone)
        and (fault.code is Reason.UNKNOWN_LEVEL or _last(fault.path) not in lost)
        # A missing field may be the unknown one beside it.
        and not (fault.type is FieldError.REQUIRED and fault.path[:-1] in beside)
        and not any(_misspelt(path, fault.path) for path in gone)
    ]


def _misspelt(spot: Path, path: Path) -> bool:
    """Return whether a repaired field may be the one on a path, misspelt."""
    *above, word = spot
    rest = path[len(above) :]
    return path[: len(above)] == tuple(above) and bool(rest) and nearest(str(word), [str(rest[0])]) is not None


def _last(path: Path) -> str:
    return next((step for step in reversed(path) if isinstance(step, str)), "")


def _meant(path: Path) -> str:
    """Return the field at a path; for an unknown one, the field that was probably meant."""
    word = _last(path)
    return word if word in _FAMILY else nearest(word, _FAMILY) or word
