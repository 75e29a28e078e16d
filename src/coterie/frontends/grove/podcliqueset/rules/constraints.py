"""The rules of topology constraints when a PodCliqueSet is created.

They check the shape of each constraint, whether constraints are allowed at all, the topology that each refers to, its
existence, its domains, and that no child is broader than its parent. All are checked, and a constraint that breaks one
rule is left out of the later ones, which would only repeat the fault.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from coterie.document.located import Path
from coterie.document.schema import said
from coterie.errors import Fault, FieldError, Reason, Unavailable, field_path
from coterie.frontends.grove.podcliqueset.model import TEMPLATE, Clique, PodCliqueSet, ScalingGroup, TopologyConstraint
from coterie.frontends.grove.podcliqueset.rules.general import known_names
from coterie.frontends.grove.podcliqueset.settings import GroveSettings
from coterie.frontends.kubernetes.objects import field_fault
from coterie.topology.levels import Topology

Topologies = Mapping[str, Topology]

_SET_NAME = field_path((*TEMPLATE, "topologyConstraint", "topologyName"))


def constraint_faults(pcs: PodCliqueSet, topologies: Topologies | None, settings: GroveSettings) -> list[Fault]:
    """Return every breach; without `topologies`, the rules that depend on them are skipped."""
    shapes = list(shape_faults(pcs, settings, create=True))
    bad = {each.path for each in pcs.constraints() if any(_within(fault, each) for fault in shapes)}
    if not settings.topology_aware_scheduling:
        hint = "Remove it, or ask an administrator to enable topology-aware scheduling."
        message = "topology constraints are not allowed while topology-aware scheduling is off"
        refused = (each for each in pcs.constraints() if each.path not in bad)
        return [*shapes, *(field_fault(FieldError.INVALID, each.path, message, hint) for each in refused)]
    return [*shapes, *(fault for fault in meaning_faults(pcs, topologies) if not _below(fault, bad))]


def _within(fault: Fault, constraint: TopologyConstraint) -> bool:
    return _below(fault, {constraint.path})


def _below(fault: Fault, paths: Collection[Path]) -> bool:
    return any(fault.path[: len(path)] == path for path in paths)


def shape_faults(pcs: PodCliqueSet, settings: GroveSettings, *, create: bool) -> Iterator[Fault]:
    """Yield the faults of single constraints that do not depend on topologies."""
    if create and settings.strict:
        yield from _old_form(pcs)
    for each in pcs.constraints():
        if each.pack and not each.required and not each.preferred:
            message = "pack names neither a required nor a preferred domain"
            yield _required((*each.path, "pack"), message, "Example: pack: {required: rack}")
        elif not each.pack and not each.legacy and (settings.strict or not names_for_children(pcs, each)):
            message = "the topologyConstraint names no domain"
            yield _required((*each.path, "pack"), message, "Example: pack: {required: rack}")
        if each.legacy and each.required:
            message = "packDomain and pack.required are both given"
            yield field_fault(FieldError.INVALID, (*each.path, "pack", "required"), message, "Remove packDomain.")


def names_for_children(pcs: PodCliqueSet, constraint: TopologyConstraint) -> bool:
    """Return whether a constraint only names the topology for its children, which the proposal's form allows."""
    named = constraint is pcs.constraint and bool(constraint.topology)
    return named and any(each.domain or each.preferred for each in pcs.constraints() if each is not constraint)


def _old_form(pcs: PodCliqueSet) -> Iterator[Fault]:
    """Yield one fault per list, as the API does, at the first packDomain in it."""
    hint = "Write pack: {required: DOMAIN} instead."
    message = "packDomain cannot be used on a new PodCliqueSet"
    cliques, groups = [each.constraint for each in pcs.cliques], [each.constraint for each in pcs.groups]
    for found, field in (
        ([pcs.constraint], "spec.template.topologyConstraint.packDomain"),
        (cliques, "spec.template.cliques"),
        (groups, "spec.template.podCliqueScalingGroups"),
    ):
        if first := next((each for each in found if each is not None and each.legacy), None):
            yield field_fault(FieldError.FORBIDDEN, (*first.path, "packDomain"), message, hint, field)


def meaning_faults(pcs: PodCliqueSet, topologies: Topologies | None) -> list[Fault]:
    """Return the faults in the meaning of constraints: names, domains, hierarchy."""
    names = _TopologyNames(pcs)
    if len(names.found) != 1 or topologies is None:
        return names.faults  # with two topologies, it is unknown whose domains are meant
    ((name, written),) = names.found.items()
    try:
        topology = topologies.get(name)
    except Unavailable as error:
        message = f"the ClusterTopology {said(name)} cannot be read: {error}"
        return [*names.faults, field_fault(FieldError.INTERNAL, written, message, "Try again later.", _SET_NAME)]
    if topology is None:
        message = f"there is no ClusterTopology {said(name)}"
        hint = known_names(name, topologies)
        return [*names.faults, field_fault(FieldError.INVALID, written, message, hint, _SET_NAME)]
    # While a domain is unknown, Grove does not check which one is broader.
    return [*names.faults, *(list(_unknown_domains(pcs, topology, name)) or _hierarchy(pcs, topology))]


class _TopologyNames:
    """The topologies that constraints refer to, each with its first occurrence, and the faults of these names."""

    def __init__(self, pcs: PodCliqueSet) -> None:
        self.faults: list[Fault] = []
        self.found: dict[str, Path] = {}
        own = self._resolve(pcs.constraint, "")
        by_group = {id(group): self._resolve(group.constraint, own) for group in pcs.groups}
        for clique in pcs.cliques:
            group = pcs.group_of.get(clique.name)
            self._resolve(clique.constraint, (by_group[id(group)] if group else "") or own)
        if len(self.found) > 1:
            self._disagree(pcs)

    def _resolve(self, constraint: TopologyConstraint | None, inherited: str) -> str:
        """Return the name of a constraint's topology, or an empty string where it has none or a wrong one."""
        if constraint is None:
            return ""
        name = constraint.topology or inherited
        if not name:
            message = "topologyName is missing, and nothing above names a topology"
            self.faults.append(_required(constraint.name_path, message, "Write the name of a ClusterTopology."))
        elif inherited and name != inherited:
            message = f"topologyName {said(name)} is not {said(inherited)}, which is named above"
            self.faults.append(_one_topology(constraint.name_path, message))
        else:
            self.found.setdefault(name, constraint.name_path)
            return name
        return ""

    def _disagree(self, pcs: PodCliqueSet) -> None:
        names = " and ".join(said(name) for name in list(self.found)[:2])
        owners: list[PodCliqueSet | ScalingGroup | Clique] = [pcs, *pcs.groups, *pcs.cliques]
        for each in (owner.constraint for owner in owners):
            if each is not None and each.topology:
                self.faults.append(_one_topology(each.name_path, f"the set names two topologies, {names}"))


def _one_topology(path: Path, message: str) -> Fault:
    return field_fault(
        FieldError.INVALID, path, message, "All constraints of a set must name the same ClusterTopology."
    )


def _unknown_domains(pcs: PodCliqueSet, topology: Topology, name: str) -> Iterator[Fault]:
    known = dict.fromkeys(topology.names)
    for each in pcs.constraints():
        for domain, path in ((each.domain, each.domain_path), (each.preferred, each.preferred_path)):
            if domain and domain not in known:
                message = f"the ClusterTopology {said(name)} has no domain {said(domain)}"
                hint = known_names(domain, known)
                yield field_fault(FieldError.INVALID, path, message, hint, code=Reason.UNKNOWN_LEVEL)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A constraint, the description of its owner, and a constraint below it."""

    parent: TopologyConstraint
    whose: str
    child: TopologyConstraint
    below: str


def _pairs(pcs: PodCliqueSet) -> Iterator[_Pair]:
    cliques = [(each.constraint, f"clique {said(each.name)}") for each in pcs.cliques]
    groups = [(each.constraint, f"scaling group {said(each.name)}") for each in pcs.groups]
    if (top := pcs.constraint) is not None:
        for child, below in (*cliques, *groups):
            if child is not None:
                yield _Pair(top, "the set", child, below)
    for group, (parent, whose) in zip(pcs.groups, groups, strict=True):
        for member in pcs.members(group) if parent is not None else ():
            if parent is not None and member.constraint is not None:
                yield _Pair(parent, whose, member.constraint, f"clique {said(member.name)}")


def _hierarchy(pcs: PodCliqueSet, topology: Topology) -> Iterator[Fault]:
    """Yield a fault for every child that is broader than its parent; the API names the parent."""
    position = {name: index for index, name in enumerate(topology.names)}
    for pair in _pairs(pcs):
        parent, child = pair.parent, pair.child
        for kind, above, below, path, field in (
            ("required", parent.domain, child.domain, child.domain_path, parent.path),
            ("preferred", parent.preferred, child.preferred, child.preferred_path, parent.preferred_path),
        ):
            if above and below and position[above] > position[below]:
                message = (
                    f"{pair.below} has {kind} domain {said(below)}, which is broader than {said(above)} of {pair.whose}"
                )
                order = ", ".join(topology.names)
                hint = f"From broad to narrow: {order}. A part needs the same domain or a narrower one."
                yield field_fault(FieldError.INVALID, path, message, hint, field_path(field))


def _required(path: Path, message: str, hint: str) -> Fault:
    return field_fault(FieldError.REQUIRED, path, message, hint)
