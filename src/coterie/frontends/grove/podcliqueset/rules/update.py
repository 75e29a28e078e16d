"""The immutable fields of a PodCliqueSet; cliques and scaling groups are matched by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from coterie.document.located import Path
from coterie.document.schema import said
from coterie.errors import Fault, FieldError, field_path
from coterie.frontends.grove.podcliqueset.model import (
    TEMPLATE,
    Clique,
    PodCliqueSet,
    ScalingGroup,
    Startup,
    TopologyConstraint,
)
from coterie.frontends.grove.podcliqueset.rules.constraints import Topologies, meaning_faults
from coterie.frontends.grove.podcliqueset.settings import GroveSettings
from coterie.frontends.kubernetes.objects import field_fault

_ANEW = "Delete the PodCliqueSet and create it again."


def completed(old: PodCliqueSet, new: PodCliqueSet) -> PodCliqueSet:
    """Return the new set with each unset minAvailable taken from the old set.

    That is the effect of `kubectl apply`: a default that was once filled in stays, though replicas may change.
    """
    cliques = {each.name: each.min_available for each in old.cliques}
    groups = {each.name: each.min_available for each in old.groups}
    return replace(
        new,
        cliques=tuple(
            each if each.min_written else replace(each, min_available=cliques.get(each.name, each.min_available))
            for each in new.cliques
        ),
        groups=tuple(
            each if each.min_written else replace(each, min_available=groups.get(each.name, each.min_available))
            for each in new.groups
        ),
    )


def identity_changes(old: PodCliqueSet, new: PodCliqueSet) -> Iterator[Fault]:
    """Yield a fault where the update is for another object."""
    for field, before, after in (("name", old.name, new.name), ("namespace", old.namespace, new.namespace)):
        if before != after:
            yield _fixed(("metadata", field), f"{field} of the PodCliqueSet", before, after)


def fixed_changes(old: PodCliqueSet, new: PodCliqueSet) -> Iterator[Fault]:
    """Yield every change of an immutable field, apart from topology and NVLink groups."""
    yield from _cliques(old, new)
    if old.startup != new.startup:
        yield _fixed((*TEMPLATE, "cliqueStartupType"), "cliqueStartupType", old.startup, new.startup)
    yield from _groups(old, new)
    if old.claim_templates != new.claim_templates:
        yield _fixed((*TEMPLATE, "resourceClaimTemplates"), "resourceClaimTemplates")
    if old.sharing != new.sharing:
        yield _fixed((*TEMPLATE, "resourceSharing"), "resourceSharing of the set")


def _cliques(old: PodCliqueSet, new: PodCliqueSet) -> Iterator[Fault]:
    yield from _composition(old.cliques, new.cliques, (*TEMPLATE, "cliques"), "clique")
    position = {each.name: index for index, each in enumerate(old.cliques)}
    ordered = new.startup in (Startup.IN_ORDER, Startup.EXPLICIT)
    for index, clique in enumerate(new.cliques):
        before = old.by_name.get(clique.name)
        if before is None:
            continue
        if ordered and position[clique.name] != index:
            message = f"clique {said(clique.name)} was at position {position[clique.name] + 1} and cannot be moved"
            field = field_path((*TEMPLATE, "cliques"))
            hint = f"Keep the order of the cliques: they start in the order of {new.startup}."
            yield field_fault(FieldError.INVALID, (*clique.path, "name"), message, hint, field)
        what, path = f"of clique {said(clique.name)}", clique.spec_path
        if before.role != clique.role:
            yield _fixed((*path, "roleName"), f"roleName {what}", before.role, clique.role)
        if before.min_available != clique.min_available:
            yield _fixed((*path, "minAvailable"), f"minAvailable {what}", before.min_available, clique.min_available)
        if before.starts_after != clique.starts_after:
            yield _fixed((*path, "startsAfter"), f"startsAfter {what}")
        if before.scheduler != clique.scheduler:
            at = (*clique.pod_path, "schedulerName")
            yield _fixed(at, f"schedulerName {what}", before.scheduler, clique.scheduler)
        if before.sharing != clique.sharing:
            yield _fixed((*clique.path, "resourceSharing"), f"resourceSharing {what}")


def _groups(old: PodCliqueSet, new: PodCliqueSet) -> Iterator[Fault]:
    yield from _composition(old.groups, new.groups, (*TEMPLATE, "podCliqueScalingGroups"), "scaling group")
    known = {each.name: each for each in old.groups}
    for group in new.groups:
        before = known.get(group.name)
        if before is None:
            continue
        what, path = f"of scaling group {said(group.name)}", group.path
        if before.clique_names != group.clique_names:
            yield _fixed((*path, "cliqueNames"), f"cliqueNames {what}")
        if before.min_available != group.min_available:
            yield _fixed((*path, "minAvailable"), f"minAvailable {what}", before.min_available, group.min_available)
        if before.sharing != group.sharing:
            yield _fixed((*path, "resourceSharing"), f"resourceSharing {what}")


def _composition(
    old: Sequence[Clique] | Sequence[ScalingGroup],
    new: Sequence[Clique] | Sequence[ScalingGroup],
    path: Path,
    what: str,
) -> Iterator[Fault]:
    before, after = {each.name for each in old}, {each.name for each in new}
    for each in new:
        if each.name not in before:
            message = f"{what} {said(each.name)} cannot be added to a PodCliqueSet"
            yield field_fault(FieldError.FORBIDDEN, (*each.path, "name"), message, _ANEW)
    if gone := sorted(before - after):
        message = f"{what} {said(gone[0])} cannot be removed from a PodCliqueSet"
        yield field_fault(FieldError.FORBIDDEN, path, message, _ANEW)


def _fixed(path: Path, what: str, before: object = None, after: object = None) -> Fault:
    change = f" from {said(before)} to {said(after)}" if before is not None else ""
    return field_fault(FieldError.INVALID, path, f"{what} cannot be changed{change}", _ANEW)


def constraint_changes(
    old: PodCliqueSet, new: PodCliqueSet, topologies: Topologies | None, settings: GroveSettings
) -> list[Fault]:
    """Return every change of a topology constraint that is not allowed.

    Two changes are allowed: `packDomain: x` becomes `pack: {required: x}`; and a constraint from before topologies had
    names gets one, after which the whole set must pass the rules for new ones. They cannot be combined in one update.
    """
    owners: tuple[Clique | ScalingGroup | None, ...] = (None, *old.cliques, *old.groups)
    repair = any(_nameless(old, owner) for owner in owners)
    faults = [
        *_set_change(old.constraint, new.constraint, repair=repair),
        *_part_changes(old.cliques, new.cliques, "clique", repair=repair),
        *_part_changes(old.groups, new.groups, "scaling group", repair=repair),
    ]
    if faults or not repair:
        return faults
    return meaning_faults(new, topologies if settings.topology_aware_scheduling else None)


def _nameless(pcs: PodCliqueSet, owner: Clique | ScalingGroup | None) -> bool:
    """Return whether a constraint is from before topologies had names."""
    constraint = pcs.constraint if owner is None else owner.constraint
    found = pcs.effective(owner)
    return constraint is not None and bool(constraint.legacy) and found is not None and not found.topology


def _set_change(old: TopologyConstraint | None, new: TopologyConstraint | None, *, repair: bool) -> Iterator[Fault]:
    path = (*TEMPLATE, "topologyConstraint")
    if _same(old, new) or (repair and _repaired(old, new)):
        return
    before, after = old.topology if old else "", new.topology if new else ""
    named = repair and old is not None and new is not None and bool(old.legacy) and not before
    if before != after and not named:
        message = f"topologyName of the set cannot be {_change(before, after)}"
        yield field_fault(FieldError.FORBIDDEN, (*path, "topologyName"), message, _ANEW)
    else:
        yield field_fault(FieldError.FORBIDDEN, path, _changed("set", old, new), _ANEW)


def _part_changes(
    old: Sequence[Clique] | Sequence[ScalingGroup],
    new: Sequence[Clique] | Sequence[ScalingGroup],
    what: str,
    *,
    repair: bool,
) -> Iterator[Fault]:
    known: Mapping[str, TopologyConstraint | None] = {each.name: each.constraint for each in old}
    for each in new:
        if each.name not in known:
            continue
        before, after = known[each.name], each.constraint
        if not _same(before, after) and not (repair and _repaired(before, after)):
            message = _changed(f"{what} {said(each.name)}", before, after)
            yield field_fault(FieldError.FORBIDDEN, (*each.path, "topologyConstraint"), message, _ANEW)


def _same(old: TopologyConstraint | None, new: TopologyConstraint | None) -> bool:
    """Return whether two constraints are equal, or the new one is the old one in today's form."""
    if old == new or old is None or new is None:
        return old == new
    return bool(old.legacy) and replace(old, required=old.legacy, legacy="", pack=True) == new


def _repaired(old: TopologyConstraint | None, new: TopologyConstraint | None) -> bool:
    if old is None or new is None or not old.legacy or old.topology:
        return False
    return replace(new, topology="") == old


def _changed(whose: str, old: TopologyConstraint | None, new: TopologyConstraint | None) -> str:
    change = "added" if old is None else "removed" if new is None else "changed"
    return f"the topologyConstraint of the {whose} cannot be {change}"


def _change(before: str, after: str) -> str:
    if before and after:
        return f"changed from {said(before)} to {said(after)}"
    return f"added ({said(after)})" if after else f"removed ({said(before)})"
