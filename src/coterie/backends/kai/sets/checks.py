"""The faults of a valid set that cannot be written for KAI, and the notices for its user."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from coterie.backends.kai.sets.names import CompiledSet, replica_name
from coterie.config.model import dns_label
from coterie.document.located import Path
from coterie.document.schema import said
from coterie.errors import Fault, FieldError, Notice
from coterie.frontends.grove.podcliqueset.model import (
    DEFAULT_TERMINATION_DELAY_NS,
    Clique,
    PodCliqueSet,
    ScalingGroup,
    Startup,
    UpdateStrategy,
)
from coterie.frontends.grove.topology import KAI
from coterie.frontends.kubernetes.objects import field_fault
from coterie.gang.tree import Gang

# The approximate size of all manifests of a set: more overloads pipes and API servers.
MOST_WRITTEN = 128 << 20


def render_faults(subject: CompiledSet, gangs: Sequence[Gang]) -> Iterator[Fault]:
    """Yield the faults that keep the pods of these gangs from being written."""
    pcs = subject.pcs
    yield from _name_faults(pcs)
    for clique in pcs.cliques:
        yield from _container_faults(clique)
    sizes = {clique.name: len(json.dumps(clique.pod_spec)) for clique in pcs.cliques}
    seats = (subject.lowered.seats[task.name] for gang in gangs for task in gang.all_tasks())
    total = sum(sizes[seat.clique.name] for seat in seats)
    if total > MOST_WRITTEN:
        message = f"the pods of the set have {total >> 20:,} MiB together, and at most {MOST_WRITTEN >> 20} are written"
        hint = "Move large texts into ConfigMaps, or render fewer gangs at a time with --group."
        yield field_fault(FieldError.INVALID, ("spec", "replicas"), message, hint)


def render_notices(subject: CompiledSet) -> Iterator[Notice]:
    """Yield what manifests alone cannot achieve, and the fields that differ from the user's."""
    pcs, pool = subject.pcs, subject.pool
    if pool.scheduler != "kai":
        message = f'pool "{pool.name}" belongs to a backend with the scheduler "{pool.scheduler}", not to KAI'
        yield Notice("OtherScheduler", message)
    if replaced := dict(_replaced(pcs)):
        message = f"pods of a set are written with other values in: {', '.join(replaced)}"
        yield _located(pcs, Notice("FieldReplaced", message, path=next(iter(replaced.values()))))
    if lost := dict(_lost(pcs)):
        message = f"manifests alone cannot carry out: {', '.join(lost)}"
        yield _located(pcs, Notice("NotCarriedOut", message, path=next(iter(lost.values()))))


def _located(pcs: PodCliqueSet, notice: Notice) -> Notice:
    return notice.at(pcs.resource.document.place(notice.path, key=True)) if pcs.resource else notice


def first_of_each(notices: Iterable[Notice]) -> Iterator[Notice]:
    """Yield the first notice of each code with the number of further ones, since replicas of a set are all alike."""
    found: dict[str, list[Notice]] = {}
    for notice in notices:
        found.setdefault(notice.code, []).append(notice)
    for code, (first, *rest) in found.items():
        more = f" (and {len(rest)} more like it)" if rest else ""
        yield Notice(code, f"{first.message}{more}", first.place, first.path)


def _name_faults(pcs: PodCliqueSet) -> Iterator[Fault]:
    """Yield the names that cannot become Service or host names; those of sets and cliques may have dots."""
    hint = 'Use lower-case letters, digits and "-", beginning with a letter.'
    if any(dns_label(pcs.name)) or not pcs.name[0].isalpha():
        message = f"{said(replica_name(pcs, 0))} cannot be the name of the Service that the pods of a replica need"
        yield field_fault(FieldError.INVALID, ("metadata", "name"), message, hint)
    parts: list[Clique | ScalingGroup] = [*pcs.cliques, *pcs.groups]
    for each in parts:
        if "." in each.name:
            message = f"the name {said(each.name)} cannot be part of a pod's host name, because it has dots"
            yield field_fault(FieldError.INVALID, (*each.path, "name"), message, hint)


def _container_faults(clique: Clique) -> Iterator[Fault]:
    """Yield the fields that must be lists, because something is added to them."""
    for field in ("containers", "initContainers"):
        for index, container in enumerate(clique.pod_spec.get(field) or ()):
            path = (*clique.pod_path, field, index)
            env = container.get("env")
            if env is not None and not (isinstance(env, list) and all(isinstance(each, Mapping) for each in env)):
                message = f"env must be a list of variables, not {said(env)}"
                yield field_fault(FieldError.INVALID, (*path, "env"), message, "Example: [{name: A, value: b}].")
            claims = (container.get("resources") or {}).get("claims")
            if claims is not None and not isinstance(claims, list):
                message = f"claims must be a list, not {said(claims)}"
                yield field_fault(FieldError.INVALID, (*path, "resources", "claims"), message, "Example: [{name: a}].")


def _replaced(pcs: PodCliqueSet) -> Iterator[tuple[str, Path]]:
    """Yield fields of pod specs that are overwritten; the rules of sets already report restartPolicy."""
    for clique in pcs.cliques:
        if clique.scheduler not in ("", KAI):
            yield f"schedulerName ({KAI})", (*clique.pod_path, "schedulerName")
        for field in ("hostname", "subdomain"):
            if clique.pod_spec.get(field):
                yield f"{field} (Grove's)", (*clique.pod_path, field)


def _lost(pcs: PodCliqueSet) -> Iterator[tuple[str, Path]]:
    template: Path = ("spec", "template")
    parts: list[Clique | ScalingGroup] = [*pcs.cliques, *pcs.groups]
    scaled = next((each.scale for each in parts if each.scale is not None), None)
    if scaled is not None:
        yield "autoscaling (replicas stay as they are written)", scaled.path
    if pcs.startup != Startup.ANY_ORDER:
        yield "cliqueStartupType (pods start in any order)", (*template, "cliqueStartupType")
    if pcs.update_strategy != UpdateStrategy.ROLLING_RECREATE:
        yield "updateStrategy (a changed pod is not replaced)", ("spec", "updateStrategy")
    if pcs.termination_delay_ns != DEFAULT_TERMINATION_DELAY_NS:
        yield "terminationDelay (a gang that lost pods goes on)", (*template, "terminationDelay")
    if pcs.claim_templates:
        yield "resourceClaimTemplates (none is made)", pcs.claim_templates[0].path
