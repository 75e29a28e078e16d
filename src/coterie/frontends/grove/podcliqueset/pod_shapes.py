"""The planning view of a PodCliqueSet: the shape of each clique's pods, and the fields that a plan cannot honour.

These are not rules of the API: `create_faults` accepts all of it. A plan refuses each field that would make it wrong,
and names every other field that it ignores in one warning, if the user wrote it.

| field | changes where pods go | in a plan |
|---|---|---|
| resourceSharing | yes: devices are on some nodes only | not supported |
| resourceClaims | yes | channels are counted; GPUs and existing claims not supported; others warned of |
| other fields of podSpec | see `coterie.frontends.kubernetes.pod_spec` | kept, warned of or not supported |
| autoScalingConfig, scaleConfig | only later, when something scales | warned of: planned as written |
| cliqueStartupType, startsAfter | no: only when containers start | warned of |
| priorityClassName | only by evicting others | warned of: a plan evicts nobody |
| updateStrategy | only later, when the template changes | warned of unless it is the default |
| terminationDelay | only later, when pods are lost | warned of unless it is the default |
| headlessServiceConfig | no | warned of unless it is the default |
| resourceClaimTemplates | no, unless something shares them | warned of |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from coterie.document.schema import said
from coterie.errors import Fault, Notice
from coterie.frontends.grove.podcliqueset.model import (
    DEFAULT_TERMINATION_DELAY_NS,
    TEMPLATE,
    PodCliqueSet,
    Startup,
    UpdateStrategy,
)
from coterie.frontends.grove.podcliqueset.rules.admission import located
from coterie.frontends.kubernetes.pod_affinity import DeviceClaim, PodConstraints, unsupported
from coterie.frontends.kubernetes.pod_spec import Ignored, PlannablePod, ignored_notice, read_pod
from coterie.gang.tree import Shape
from coterie.topology.channels import CHANNEL
from coterie.topology.devices import NO_TEMPLATES, ClaimTemplates, Device


@dataclass(frozen=True, slots=True)
class Placeable:
    """The shapes and inter-pod constraints of pods by clique, the faults that prevent a plan, and warnings."""

    shapes: Mapping[str, Shape]
    faults: tuple[Fault, ...] = ()
    notices: tuple[Notice, ...] = ()
    neighbours: Mapping[str, PodConstraints] = field(default_factory=dict)


def placeable(pcs: PodCliqueSet, templates: ClaimTemplates = NO_TEMPLATES) -> Placeable:
    """Return the planning view of a set; `templates` are the devices of known claim templates."""
    readings = {clique.name: read_pod(clique.pod_spec, clique.pod_path) for clique in pcs.cliques}
    space = pcs.resource.namespace if pcs.resource else ""
    claims = [
        (name, claim, templates.device(claim.name, claim.template, space))
        for name, each in readings.items()
        for claim in each.claims
    ]
    channels = {name for name, _, device in claims if device is Device.CHANNEL}
    faults = [*_shared_devices(pcs), *_claim_faults(claims)]
    faults += (fault for each in readings.values() for fault in each.faults)
    ignored = (*_ignored(pcs), *(one for each in readings.values() for one in each.ignored))
    added = pcs.resource.added if pcs.resource else frozenset()
    notices = [*ignored_notice(each for each in ignored if each.path not in added), *_claim_notices(claims)]
    if pcs.resource is not None:
        document = pcs.resource.document
        notices = [each.at(document.place(each.path, key=True)) for each in notices]
    return Placeable(
        {name: _shape(each, channel=name in channels) for name, each in readings.items()},
        tuple(located(pcs, faults)),
        tuple(notices),
        {name: each.neighbours for name, each in readings.items()},
    )


def _shape(reading: PlannablePod, *, channel: bool) -> Shape:
    """Return the shape of a pod, with its node's channel if it has a claim to one."""
    requests = {**dict(reading.shape.requests), **({CHANNEL: 1} if channel else {})}
    return replace(reading.shape, requests=tuple(sorted(requests.items())))


def _claim_faults(claims: Iterable[tuple[str, DeviceClaim, Device]]) -> Iterator[Fault]:
    for _, claim, device in claims:
        if device is Device.GPU:
            yield unsupported(claim.path, f"the claim {said(claim.name)} for GPUs")
        elif claim.existing:
            yield unsupported(claim.path, f"the claim {said(claim.existing)}, which binds pods to its devices,")


def _claim_notices(claims: Iterable[tuple[str, DeviceClaim, Device]]) -> Iterator[Notice]:
    """Yield one warning about all device claims for which the plan does not know the nodes."""
    unknown: dict[str, DeviceClaim] = {}
    for _, claim, device in claims:
        if device in (Device.OTHER, Device.UNKNOWN) and not claim.existing:
            unknown.setdefault(claim.template or claim.name, claim)
    if unknown:
        names = ", ".join(map(said, unknown))
        what = f"the devices of the claim template {names} are" if len(unknown) == 1 else f"devices of {names} are"
        message = f"{what} not known: the plan assumes that every node has them, and counts no GPUs for them"
        yield Notice("ClaimsNotPlanned", message, path=next(iter(unknown.values())).path)


def _shared_devices(pcs: PodCliqueSet) -> Iterator[Fault]:
    shared = (*pcs.sharing, *(one for each in pcs.cliques for one in each.sharing))
    for each in (*shared, *(one for group in pcs.groups for one in group.sharing)):
        yield unsupported(each.path, f"the shared claim {said(each.name)} for devices")


def _ignored(pcs: PodCliqueSet) -> Iterator[Ignored]:
    for clique in pcs.cliques:
        if clique.scale is not None:
            yield Ignored("autoScalingConfig", "nothing is scaled", clique.scale.path)
    for group in pcs.groups:
        if group.scale is not None:
            yield Ignored("scaleConfig", "nothing is scaled", group.scale.path)
    if pcs.startup != Startup.ANY_ORDER:
        yield Ignored("cliqueStartupType", "pods are placed together", (*TEMPLATE, "cliqueStartupType"))
    for clique in pcs.cliques:
        if clique.starts_after:
            yield Ignored("startsAfter", "pods are placed together", (*clique.spec_path, "startsAfter"))
    if pcs.priority_class:
        yield Ignored("priorityClassName", "no other pods are evicted", (*TEMPLATE, "priorityClassName"))
    if pcs.update_strategy != UpdateStrategy.ROLLING_RECREATE:
        yield Ignored("updateStrategy", "it affects updates only", ("spec", "updateStrategy"))
    if pcs.termination_delay_ns != DEFAULT_TERMINATION_DELAY_NS:
        yield Ignored("terminationDelay", "it matters only once pods are lost", (*TEMPLATE, "terminationDelay"))
    if not pcs.publish_not_ready:
        yield Ignored("headlessServiceConfig", "it affects addresses only", (*TEMPLATE, "headlessServiceConfig"))
    if pcs.claim_templates:
        yield Ignored("resourceClaimTemplates", "only those that are shared count", pcs.claim_templates[0].path)
