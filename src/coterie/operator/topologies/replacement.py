"""The next step towards the topology resource that a ClusterTopology asks for.

KAI's Topologies cannot be changed: other levels need another object, and an API has no way to exchange two objects of
one name at once. Work that waits for a place would see no topology in between. It is therefore pointed at an interim
resource with the new levels first, and back when the resource of the right name has them:

    create interim → point waiting work at it → delete and create the resource → point the work back → delete interim

Each step follows from what is there, so that an operator that starts anywhere in the sequence continues it.

Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.backends.base.topology_resource import TopologyResource
from coterie.frontends.grove.drift import owns
from coterie.frontends.grove.kai_topology import Owner
from coterie.frontends.grove.topology import ClusterTopology

Object = Mapping[str, Any]

# Namespace and name.
WorkName = tuple[str, str]

INTERIM = "coterie.dev/interim-topology-of"
_NAME = 253


@dataclass(frozen=True, slots=True)
class Creation:
    """A resource to create."""

    manifest: Object


@dataclass(frozen=True, slots=True)
class Repair:
    """A resource of the right levels whose metadata was changed, to be replaced as a whole."""

    manifest: Object


@dataclass(frozen=True, slots=True)
class Exchange:
    """A resource to delete, and the one of the same name to create at once."""

    name: str
    uid: str
    manifest: Object


@dataclass(frozen=True, slots=True)
class Removal:
    """A resource that is no longer needed."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Redirection:
    """Work to point at another resource: for each object, its namespace, its name and its JSON patch."""

    work: tuple[tuple[str, str, tuple[Object, ...]], ...]


Step = Creation | Repair | Exchange | Removal | Redirection


def interim_name(name: str, labels: Sequence[str]) -> str:
    """Return the name of the interim resource for new levels."""
    digest = hashlib.sha256("\n".join(labels).encode()).hexdigest()[:8]
    return f"{name[: _NAME - 9]}-{digest}"


def in_exchange(found: ClusterTopology, resource: TopologyResource, there: Mapping[str, Object]) -> bool:
    """Return whether waiting work has to be known: the levels differ, or an interim resource exists."""
    name = resource.resource_name(found.name)
    own = there.get(name)
    differs = own is not None and _owned(found, own) and _labels(resource, own) != found.keys
    return differs or any(True for _ in _interims(found, there))


def next_step(
    found: ClusterTopology,
    resource: TopologyResource,
    there: Mapping[str, Object],
    work: Sequence[Object] = (),
    waiting: frozenset[WorkName] = frozenset(),
) -> Step | None:
    """Return the next step for a topology whose resource is not managed elsewhere; None where nothing is to be done.

    `there` are all resources of the scheduler by name. `work` are all objects that may refer to one, and `waiting` the
    names of those that wait for a place; during an exchange, only these are pointed away from the resource.
    """
    name = resource.resource_name(found.name)
    if resource.refusal(found.keys):
        return None
    own = there.get(name)
    if own is None:
        return Creation(_manifest(found, resource, name))
    if not _owned(found, own) or own["metadata"].get("deletionTimestamp"):
        return None
    interims = dict(_interims(found, there))
    if _labels(resource, own) == found.keys:
        repaired = _repaired(_manifest(found, resource, name), own)
        if repaired is not None:
            return Repair(repaired)
        if strays := _pointed(resource, work, frozenset(interims), name):
            return Redirection(strays)
        return next((Removal(each, item["metadata"].get("uid", "")) for each, item in interims.items()), None)
    target = interim_name(name, found.keys)
    restless = [each for each in work if _name_of(each) in waiting]
    former = frozenset(interims.keys() - {target})
    if moves := (*_pointed(resource, restless, frozenset({name}), target), *_pointed(resource, work, former, target)):
        if target not in interims:
            return Creation(_manifest(found, resource, target, interim=True))
        return Redirection(moves)
    return Exchange(name, own["metadata"].get("uid", ""), _manifest(found, resource, name))


def owner_of(found: Object) -> Owner | None:
    """Return the controller of an object, by its owner reference alone."""
    for owner in found["metadata"].get("ownerReferences") or ():
        if owner.get("controller") is True:
            return Owner(str(owner.get("kind", "")), str(owner.get("name", "")), str(owner.get("uid", "")))
    return None


def _owned(found: ClusterTopology, there: Object) -> bool:
    if (owner := owner_of(there)) is not None:
        return owns(found, owner)
    named = (there["metadata"].get("annotations") or {}).get("coterie.dev/cluster-topology")
    return named == found.name


def _labels(resource: TopologyResource, there: Object) -> tuple[str, ...]:
    try:
        return resource.labels(there)
    except ValueError:
        return ()


def _interims(found: ClusterTopology, there: Mapping[str, Object]) -> Iterator[tuple[str, Object]]:
    for name, item in there.items():
        annotations = item["metadata"].get("annotations") or {}
        if annotations.get(INTERIM) == found.name and _owned(found, item):
            yield name, item


def _manifest(
    found: ClusterTopology, resource: TopologyResource, name: str, *, interim: bool = False
) -> dict[str, Any]:
    made = resource.manifest(name, found.name, found.keys)
    metadata = made["metadata"]
    metadata["ownerReferences"] = [
        {
            "apiVersion": found.resource.api_version,
            "kind": found.kind,
            "name": found.name,
            "uid": found.resource.get("metadata", "uid") or "",
            "controller": True,
            "blockOwnerDeletion": False,
        }
    ]
    if interim:
        metadata["annotations"] = {**metadata["annotations"], INTERIM: found.name}
    return made


def _repaired(wanted: Object, own: Object) -> dict[str, Any] | None:
    """Return an object with the metadata that it should have, or None where it has it; more is left alone."""
    metadata, asked = own["metadata"], wanted["metadata"]
    labels = {**(metadata.get("labels") or {}), **asked["labels"]}
    annotations = {**(metadata.get("annotations") or {}), **asked["annotations"]}
    reference = asked["ownerReferences"][0]
    owners = [each for each in metadata.get("ownerReferences") or () if each.get("uid") != reference["uid"]]
    present = any(
        each.get("uid") == reference["uid"] and each.get("controller") is True
        for each in metadata.get("ownerReferences") or ()
    )
    if labels == metadata.get("labels") and annotations == metadata.get("annotations") and present:
        return None
    changed = {"labels": labels, "annotations": annotations, "ownerReferences": [*owners, reference]}
    return {**own, "metadata": {**metadata, **changed}}


def _pointed(
    resource: TopologyResource, work: Sequence[Object], sources: frozenset[str], target: str
) -> tuple[tuple[str, str, tuple[Object, ...]], ...]:
    """Return the patches that point work from some resources to another one."""
    found = []
    for each in work:
        operations: list[Object] = []
        for pointer, name in resource.references(each).items():
            if name in sources:
                operations.append({"op": "test", "path": pointer, "value": name})
                operations.append({"op": "replace", "path": pointer, "value": target})
        if operations:
            found.append((*_name_of(each), tuple(operations)))
    return tuple(found)


def _name_of(work: Object) -> WorkName:
    return work["metadata"].get("namespace", ""), work["metadata"]["name"]
