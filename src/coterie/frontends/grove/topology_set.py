"""Several topologies under their names: of a file, of the files of a call, or of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from coterie.errors import Fault, FieldError, NotFound, Notice, Place, SpecErrors, UsageError, did_you_mean
from coterie.frontends.grove.topology import KINDS, SCHEDULERS, ClusterTopology, read_cluster_topology
from coterie.frontends.kubernetes.objects import Resource, field_fault, read_resources, resource_of

HOW = "Pass --topology FILE, or take it into the snapshot: kubectl get nodes,pods,clustertopologies -A -o json"


@dataclass(frozen=True, slots=True)
class Topologies:
    """Topologies by name; the faults of a cluster's invalid ones are kept in `wrong` until one of these is used."""

    found: Mapping[str, ClusterTopology] = field(default_factory=lambda: MappingProxyType({}))
    wrong: Mapping[str, tuple[Fault, ...]] = field(default_factory=lambda: MappingProxyType({}))
    notices: tuple[Notice, ...] = ()

    def __or__(self, other: Topologies) -> Topologies:
        """Return both; where both have a name, this one's counts."""
        wrong = {name: faults for name, faults in other.wrong.items() if name not in self.found}
        return Topologies({**other.found, **self.found}, {**wrong, **self.wrong}, (*self.notices, *other.notices))

    @property
    def only(self) -> ClusterTopology | None:
        """The topology, if there is exactly one."""
        return next(iter(self.found.values())) if len(self.found) == 1 else None


def read_topologies(data: bytes, file: str) -> Topologies:
    """Return the topologies in a file, ignoring other objects; raise `SpecErrors` with every fault."""
    bundle = read_resources(data, file)
    if not bundle.of(*KINDS):
        hint = "A topology is a ClusterTopology or a ClusterTopologyBinding of grove.io/v1alpha1."
        raise SpecErrors([Fault("there is no topology in it", hint=hint, place=Place(file))])
    return topologies_of(bundle.of(*KINDS))


def topologies_of(resources: Iterable[Resource], enabled: frozenset[str] | None = SCHEDULERS) -> Topologies:
    """Return the topologies among some objects; raise `SpecErrors` with the faults of all."""
    found, faults = draft_topologies(resources, enabled)
    if faults:
        raise SpecErrors(faults)
    return found


def draft_topologies(
    resources: Iterable[Resource], enabled: frozenset[str] | None = SCHEDULERS
) -> tuple[Topologies, list[Fault]]:
    """Return the topologies among some objects, the names of the invalid ones, and the faults of all."""
    faults: list[Fault] = []
    found: dict[str, ClusterTopology] = {}
    wrong: dict[str, tuple[Fault, ...]] = {}
    for resource in resources:
        if resource.kind not in KINDS:
            continue
        try:
            topology = read_cluster_topology(resource, enabled)
        except SpecErrors as error:
            faults.extend(error.faults)
            wrong[resource.name] = error.faults
            continue
        first = found.setdefault(topology.name, topology)
        if first != topology:
            faults += resource.located([_twin(topology, first)])
    return Topologies(found, wrong, tuple(notice for each in found.values() for notice in each.notices)), faults


def known_topologies(objects: Iterable[Mapping[str, Any]], file: str) -> Topologies:
    """Return the topologies among the objects of a cluster; an invalid one is kept as a notice."""
    known = Topologies()
    for data in objects:
        if data.get("kind") not in KINDS:
            continue
        metadata = data.get("metadata")
        name = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
        try:
            one = topologies_of([resource_of(data, file)], enabled=None)
        except SpecErrors as error:
            title = f'{data["kind"]} "{name[:80]}"'
            faults = tuple(replace(fault, message=f"{title}: {fault.message}") for fault in error.faults)
            one = Topologies(wrong={name: faults}, notices=(_wrong(title, error.faults, file),))
        if (first := known.found.get(name)) is not None and one.found.get(name) not in {None, first}:
            message = f'{data["kind"]} "{name}" differs from the {first.kind} of the same name, which is used'
            one = Topologies(notices=(Notice("TopologyWrong", message, Place(file)),))
        known |= one
    return known


def no_topology(name: str, known: Iterable[str], asked: str) -> NotFound:
    """Return the error for an unknown name; `asked` describes who uses it, in words that follow "which"."""
    names = sorted(known)
    listed = f"Known are: {', '.join(names)}." if names else f"None is known. {HOW}"
    return NotFound(
        f'there is no ClusterTopology "{name}", which {asked}', f"{did_you_mean(name, names)} {listed}".strip()
    )


def only_topology(topologies: Topologies, file: str) -> ClusterTopology:
    """Return the only topology of a file; raise `UsageError` where a name must be given."""
    if (only := topologies.only) is None:
        names = ", ".join(sorted(topologies.found))
        first = min(topologies.found, default="NAME")
        raise UsageError(
            f"{file} has {len(topologies.found)} topologies, so one must be named",
            f"They are: {names}. Name one after a #: --topology {file}#{first}",
        )
    return only


def _twin(topology: ClusterTopology, first: ClusterTopology) -> Fault:
    message = f'{topology.kind} "{topology.name}" differs from the {first.kind} of the same name'
    hint = "They are one kind under two names: keep one of the two."
    return field_fault(FieldError.DUPLICATE, ("metadata", "name"), message, hint)


def _wrong(title: str, faults: tuple[Fault, ...], file: str) -> Notice:
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    message = f"{title} is invalid and cannot be used: {faults[0].message}{more}"
    return Notice("TopologyWrong", message, Place(file))
