"""KAI's Topology in a cluster: node labels from the coarsest level down, and the owner of the object.

An object that Coterie rendered for a ClusterTopology names it in an annotation. One that a controller made has an owner
reference, which takes precedence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.errors import Notice

KAI_VERSION = "kai.scheduler/v1alpha1"
# The ClusterTopology that a rendered Topology belongs to, and the manager of the object.
CLUSTER_TOPOLOGY = "coterie.dev/cluster-topology"
MANAGED_BY = "app.kubernetes.io/managed-by"
COTERIE = "coterie"


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of an object; one that Coterie rendered does not state the kind of its owner."""

    kind: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class KaiTopology:
    """A KAI Topology; `aliases` has a short name for each label, empty where there is none.

    `pooled` means that Coterie rendered it for a pool, so that it repeats levels which are declared elsewhere.
    """

    name: str
    keys: tuple[str, ...]
    generation: int = 0
    owner: Owner | None = None
    aliases: tuple[str, ...] = ()
    pooled: bool = False

    @property
    def named_levels(self) -> tuple[tuple[str, str], ...]:
        """Alias and label of each level, coarsest first."""
        aliases = self.aliases or ("",) * len(self.keys)
        return tuple(zip(aliases, self.keys, strict=True))


def read_kai_topology(data: Mapping[str, Any]) -> KaiTopology:
    """Return a KAI Topology from a cluster's object; raise ValueError with a plain sentence for an invalid one."""
    metadata, spec = data.get("metadata"), data.get("spec")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    levels = spec.get("levels") if isinstance(spec, dict) else None
    if not isinstance(name, str) or not isinstance(metadata, dict):
        raise ValueError("a KAI Topology has no name")  # noqa: TRY004 - what is wrong is the input, not the call
    if not isinstance(levels, list):
        raise ValueError(f'KAI Topology "{name}" has no list of levels')  # noqa: TRY004 - the same
    keys = [level.get("nodeLabel") if isinstance(level, dict) else None for level in levels]
    if not all(isinstance(key, str) for key in keys):
        raise ValueError(f'KAI Topology "{name}" has a level without a nodeLabel')
    aliases = [level.get("alias") for level in levels]
    generation = metadata.get("generation")
    owner = _owner(metadata)
    return KaiTopology(
        name,
        tuple(map(str, keys)),
        generation if isinstance(generation, int) else 0,
        owner,
        tuple(alias if isinstance(alias, str) else "" for alias in aliases) if any(aliases) else (),
        pooled=owner is None and _texts(metadata, "labels").get(MANAGED_BY) == COTERIE,
    )


def read_kai_topologies(objects: Sequence[Mapping[str, Any]]) -> tuple[dict[str, KaiTopology], list[Notice]]:
    """Return the KAI Topologies among objects of a cluster, by name; an invalid one becomes a notice."""
    found: dict[str, KaiTopology] = {}
    notices: list[Notice] = []
    for data in objects:
        if data.get("apiVersion") != KAI_VERSION or data.get("kind") != "Topology":
            continue
        try:
            topology = read_kai_topology(data)
        except ValueError as error:
            notices.append(Notice("TopologyWrong", f"{error}, and is ignored"))
        else:
            found[topology.name] = topology
    return found, notices


def _owner(metadata: Mapping[str, Any]) -> Owner | None:
    owners = metadata.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller") is True:
            return Owner(str(owner.get("kind", "")), str(owner.get("name", "")), str(owner.get("uid", "")))
    named = _texts(metadata, "annotations").get(CLUSTER_TOPOLOGY)
    return Owner("", named) if isinstance(named, str) and named else None


def _texts(metadata: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    found = metadata.get(field)
    return found if isinstance(found, dict) else {}
