"""Multi-node NVLink groups of cliques: the annotation, its rules, and the ComputeDomains it requires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from coterie.config.model import dns_label
from coterie.document.located import Path
from coterie.document.schema import said
from coterie.errors import Fault, FieldError
from coterie.frontends.grove.podcliqueset.model import MNNVL_GROUP, MNNVL_NONE, Clique, PodCliqueSet
from coterie.frontends.grove.podcliqueset.settings import GroveSettings
from coterie.frontends.kubernetes.objects import field_fault
from coterie.topology.cluster import GPU


def annotated(pcs: PodCliqueSet) -> Iterator[tuple[tuple[str, str], Path, str | None]]:
    """Yield, for the set and all its parts, its description, the path of its annotation, and the value if set."""
    yield ("set", ""), ("metadata", "annotations", MNNVL_GROUP), pcs.annotations.get(MNNVL_GROUP)
    for kind, owners in (("clique", pcs.cliques), ("scaling group", pcs.groups)):
        for each in owners:
            yield (kind, each.name), (*each.path, "annotations", MNNVL_GROUP), each.annotations.get(MNNVL_GROUP)


def group_faults(pcs: PodCliqueSet, settings: GroveSettings) -> Iterator[Fault]:
    """Yield the faults of the annotation on a new set."""
    for _, path, value in annotated(pcs):
        if value is None or value == MNNVL_NONE:
            continue
        if problem := next(iter(dns_label(value)), None):
            message = f"{said(value)} cannot be the name of an NVLink group"
            yield field_fault(FieldError.INVALID, path, message, f'{problem.hint} Write "none" for no group.')
        elif not settings.auto_mnnvl:
            message = f"the NVLink group {said(value)} is not available: multi-node NVLink is off in this cluster"
            yield field_fault(FieldError.INVALID, path, message, 'Remove the annotation, or write "none".')


def group_changes(old: PodCliqueSet, new: PodCliqueSet) -> Iterator[Fault]:
    """Yield the changes of the annotation in an update, which is immutable; parts are matched by name."""
    before = {owner: value for owner, _, value in annotated(old)}
    for owner, path, value in annotated(new):
        if owner not in before or before[owner] == value:
            continue
        what = " ".join(part for part in (owner[0], said(owner[1]) if owner[1] else "") if part)
        hint = "Delete the PodCliqueSet and create it again."
        if value is None or before[owner] is None:
            change = "added to" if before[owner] is None else "removed from"
            yield field_fault(FieldError.FORBIDDEN, path, f"{MNNVL_GROUP} cannot be {change} the {what}", hint)
        else:
            message = f"{MNNVL_GROUP} of the {what} cannot be changed from {said(before[owner])} to {said(value)}"
            yield field_fault(FieldError.INVALID, path, message, hint)


def enrolled(pcs: PodCliqueSet) -> Mapping[str, str]:
    """Return the NVLink group of every clique that has one and requests GPUs; the most specific annotation wins."""
    found = {}
    for clique in pcs.cliques:
        group = pcs.group_of.get(clique.name)
        owners = (clique.annotations, group.annotations if group else {}, pcs.annotations)
        value = next((each[MNNVL_GROUP] for each in owners if MNNVL_GROUP in each), MNNVL_NONE)
        if value != MNNVL_NONE and asks_for_gpus(clique):
            found[clique.name] = value
    return found


def asks_for_gpus(clique: Clique) -> bool:
    """Return whether a container of the clique's pods requests GPUs by their resource name."""
    containers = [*(clique.pod_spec.get("containers") or ()), *(clique.pod_spec.get("initContainers") or ())]
    return any(_gpus(each) for each in containers)


def _gpus(container: Mapping[str, Any]) -> bool:
    resources = container.get("resources") or {}
    return any(str((resources.get(kind) or {}).get(GPU, "0")) != "0" for kind in ("limits", "requests"))
