"""PodCliqueSets for tests: small documents, and functions that change them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

from coterie.errors import Fault, SpecErrors, field_path
from coterie.frontends.grove.podcliqueset.model import PodCliqueSet
from coterie.frontends.grove.podcliqueset.read import read_podcliqueset
from coterie.frontends.kubernetes.objects import read_resources
from coterie.topology.levels import Topology

Manifest = dict[str, Any]
Change = Callable[[Manifest], object]

LEVELS = Topology.of(
    ("zone", "topology.kubernetes.io/zone"),
    ("block", "fabric.example.com/block"),
    ("rack", "fabric.example.com/rack"),
    ("host", "kubernetes.io/hostname"),
)
TOPOLOGIES = {"t": LEVELS, "u": LEVELS}


def clique(name: str, gpus: int = 0, **spec: Any) -> Manifest:
    """Return a clique; keywords go to its spec."""
    container: Manifest = {"name": "main", "image": "registry.example.com/main:1"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    pod = {"schedulerName": "kai-scheduler", "containers": [container]}
    return {"name": name, "spec": {"roleName": name, "replicas": 2, "podSpec": pod} | spec}


def group(name: str, *cliques: str, **fields: Any) -> Manifest:
    """Return a scaling group."""
    return {"name": name, "cliqueNames": list(cliques)} | fields


def podcliqueset(*cliques: Manifest, groups: Sequence[Manifest] = (), **template: Any) -> Manifest:
    """Return a set; keywords go to its template."""
    spec: Manifest = {"cliques": list(cliques or (clique("a"), clique("b")))} | template
    if groups:
        spec["podCliqueScalingGroups"] = list(groups)
    metadata = {"name": "set", "namespace": "serving", "labels": {"kai.scheduler/queue": "inference"}}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": metadata,
        "spec": {"replicas": 1, "template": spec},
    }


def standard() -> Manifest:
    """Return a set with two standalone cliques and a scaling group of two more."""
    return podcliqueset(
        clique("a"), clique("b"), clique("lead"), clique("work", 4), groups=[group("shard", "lead", "work", replicas=3)]
    )


def constrained(where: str, constraint: Manifest | None) -> Change:
    """Return a change that sets, or with None removes, the constraint of `set`, a clique or a scaling group."""

    def change(manifest: Manifest) -> None:
        template = manifest["spec"]["template"]
        parts = [*template["cliques"], *template.get("podCliqueScalingGroups", ())]
        owner = template if where == "set" else next(each for each in parts if each["name"] == where)
        owner.pop("topologyConstraint", None)
        if constraint is not None:
            owner["topologyConstraint"] = copy.deepcopy(constraint)

    return change


def assigned(path: str, value: object) -> Change:
    """Return a change that sets one value; digits in the dotted path are indices, a slash stands for a dot in a key."""

    def change(manifest: Manifest) -> None:
        *front, last = [int(step) if step.isdigit() else step.replace("/", ".") for step in path.split(".")]
        found: Any = manifest
        for step in front:
            found = found.setdefault(step, {}) if isinstance(found, dict) else found[step]
        found[last] = copy.deepcopy(value)

    return change


def annotated(where: str, value: str | None, key: str = "grove.io/mnnvl-group") -> Change:
    """Return a change that sets, or with None removes, an annotation of `set`, a clique or a scaling group."""

    def change(manifest: Manifest) -> None:
        template = manifest["spec"]["template"]
        parts = [*template["cliques"], *template.get("podCliqueScalingGroups", ())]
        owner = manifest["metadata"] if where == "set" else next(each for each in parts if each["name"] == where)
        owner.setdefault("annotations", {}).pop(key, None)
        if value is not None:
            owner["annotations"][key] = value

    return change


def changed(manifest: Manifest, *changes: Change) -> Manifest:
    """Return a changed copy."""
    made = copy.deepcopy(manifest)
    for change in changes:
        change(made)
    return made


def read(manifest: Manifest) -> PodCliqueSet:
    """Read a document as if it were a file."""
    (resource,) = read_resources(json.dumps(manifest, indent=1).encode(), "set.yaml").resources
    return read_podcliqueset(resource)


def shown(faults: Sequence[Fault]) -> list[tuple[str, str]]:
    """Return type and field of each fault, as an API server would name them."""
    return [(str(each.type), each.field or field_path(each.path)) for each in faults]


def reading_faults(manifest: Manifest) -> list[Fault]:
    """Return what reading refuses."""
    try:
        read(manifest)
    except SpecErrors as error:
        return list(error.faults)
    return []
