"""The rules of device claims that the parts of a PodCliqueSet share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from coterie.document.located import Path
from coterie.document.schema import said
from coterie.errors import Fault, FieldError
from coterie.frontends.grove.podcliqueset.model import PodCliqueSet, ScalingGroup, SharedClaim, SharingScope
from coterie.frontends.grove.podcliqueset.rules.names import repeated
from coterie.frontends.kubernetes.objects import field_fault

_REQUESTS = ("spec", "devices", "requests")


def template_faults(pcs: PodCliqueSet) -> Iterator[Fault]:
    """Yield the faults of the claim templates."""
    for template in pcs.claim_templates:
        if not template.name:
            path = (*template.path, "name")
            yield field_fault(FieldError.REQUIRED, path, "the claim template has no name", "Give it one.")
        if not _inner(template.spec, _REQUESTS):
            path = (*template.path, "templateSpec", *_REQUESTS)
            message = f"claim template {said(template.name)} asks for no devices"
            yield field_fault(FieldError.REQUIRED, path, message, "List at least one device request.")
    yield from repeated({(*each.path, "name"): each.name for each in pcs.claim_templates}, "claim template")


def set_faults(pcs: PodCliqueSet) -> Iterator[Fault]:
    """Yield the faults of the claims of the set."""
    yield from sharing_faults(pcs, pcs.sharing)
    groups = {group.name for group in pcs.groups}
    for each in pcs.sharing:
        if each.cliques is None and each.groups is None:
            continue
        if not each.cliques and not each.groups:
            yield _empty_filter(each, "childCliqueNames or childScalingGroupNames")
        yield from _unknown(each.cliques, pcs.by_name.keys(), (*each.path, "filter", "childCliqueNames"))
        yield from _unknown(each.groups, groups, (*each.path, "filter", "childScalingGroupNames"))


def group_faults(pcs: PodCliqueSet, group: ScalingGroup) -> Iterator[Fault]:
    """Yield the faults of the claims of a scaling group."""
    yield from sharing_faults(pcs, group.sharing)
    for each in group.sharing:
        if each.cliques is None:
            continue
        if not each.cliques:
            yield _empty_filter(each, "childCliqueNames")
        yield from _unknown(each.cliques, set(group.clique_names), (*each.path, "filter", "childCliqueNames"))


def sharing_faults(pcs: PodCliqueSet, shared: Sequence[SharedClaim]) -> Iterator[Fault]:
    """Yield the faults of claims at any level."""
    own = {template.name for template in pcs.claim_templates}
    for each in shared:
        if not each.name:
            path = (*each.path, "name")
            yield field_fault(FieldError.REQUIRED, path, "the shared claim has no name", "Name a claim template.")
        if each.namespace and each.name in own:
            path = (*each.path, "namespace")
            message = f"{said(each.name)} is a template of this set and has no namespace"
            yield field_fault(FieldError.INVALID, path, message, "Remove the line.")
        if each.scope not in list(SharingScope):
            path = (*each.path, "scope")
            hint = f"Allowed are: {', '.join(SharingScope)}."
            yield field_fault(FieldError.NOT_SUPPORTED, path, f"scope {said(each.scope)} is not known", hint)
    yield from repeated({(*each.path, "name"): each.name for each in shared if each.name}, "shared claim")


def _unknown(names: Sequence[str] | None, known: Collection[str], path: Path) -> Iterator[Fault]:
    for index, name in enumerate(names or ()):
        if name not in known:
            hint = "Use names of this object."
            yield field_fault(FieldError.NOT_FOUND, (*path, index), f"there is no {said(name)} here", hint)


def _empty_filter(each: SharedClaim, fields: str) -> Fault:
    path = (*each.path, "filter")
    return field_fault(FieldError.REQUIRED, path, "the filter names nothing", f"Give it {fields}, or remove it.")


def _inner(data: Mapping[str, Any], path: Sequence[str]) -> object:
    found: object = data
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found if isinstance(found, list) else None
