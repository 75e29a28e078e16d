"""The objects around the pods of a set: PodGroups, and per replica a Service and ComputeDomains."""

from __future__ import annotations

from coterie.backends.kai.manifests import objects
from coterie.backends.kai.pod_group import PodGroupPart
from coterie.backends.kai.sets.names import SetContext, mirrored, replica_name
from coterie.backends.shared.manifest_text import Manifest
from coterie.frontends.grove.podcliqueset.model import MNNVL_GROUP, PodCliqueSet
from coterie.gang.tree import Gang

PART_OF = "app.kubernetes.io/part-of"
REPLICA_INDEX = "grove.io/podcliqueset-replica-index"


def pod_group(scene: SetContext, pcs: PodCliqueSet, gang: Gang, root: PodGroupPart) -> Manifest:
    """Return the PodGroup of a gang, with the set's own annotations and priority."""
    found = objects.pod_group(scene, gang, root)
    metadata, spec = found["metadata"], found["spec"]
    metadata["annotations"] = {**mirrored(pcs.annotations), **metadata["annotations"]}
    if pcs.priority_class:
        found["spec"] = {"queue": spec["queue"], "priorityClassName": pcs.priority_class, **spec}
    return found


def service(scene: SetContext, pcs: PodCliqueSet, replica: int) -> Manifest:
    """Return the headless Service through which the pods of one replica find each other."""
    name = replica_name(pcs, replica)
    return objects.headless(_metadata(scene, pcs, replica, name), _of(pcs, replica), publish=pcs.publish_not_ready)


def compute_domain(scene: SetContext, pcs: PodCliqueSet, replica: int, group: str) -> Manifest:
    """Return the ComputeDomain of an NVLink group in one replica."""
    metadata = _metadata(scene, pcs, replica, claim_template(pcs, replica, group), {MNNVL_GROUP: group})
    return objects.channel(metadata, claim_template(pcs, replica, group))


def claim_template(pcs: PodCliqueSet, replica: int, group: str) -> str:
    """Return the name of the claim template that the driver makes for a ComputeDomain, which has the same name."""
    return f"{replica_name(pcs, replica)}-{group}"


def _metadata(
    scene: SetContext, pcs: PodCliqueSet, replica: int, name: str, more: dict[str, str] | None = None
) -> Manifest:
    found = scene.metadata(name, replica_name(pcs, replica))
    found["labels"] = {**found["labels"], **_of(pcs, replica), **(more or {})}
    return found


def _of(pcs: PodCliqueSet, replica: int) -> dict[str, str]:
    return {PART_OF: pcs.name, REPLICA_INDEX: str(replica)}
