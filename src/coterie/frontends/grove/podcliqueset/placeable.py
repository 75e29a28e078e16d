"""What a plan can make of a PodCliqueSet: the shape of each clique's pods, and what it cannot honour.

These are no rules of the API: `create_faults` accepts all of it. A plan refuses by name what would make it wrong, and
names everything else that it does not act on in one warning, if it is the user who wrote it.

| field | changes where pods go | in a plan |
|---|---|---|
| resourceSharing | yes: devices are on some nodes only | refused |
| fields of podSpec | see `coterie.frontends.podspec` | refused, kept or warned of |
| autoScalingConfig, scaleConfig | only later, when something scales | warned of: planned as written |
| cliqueStartupType, startsAfter | no: only when containers start | warned of |
| priorityClassName | only by evicting others | warned of: a plan evicts nobody |
| updateStrategy | only later, when the template changes | warned of unless it is the default |
| terminationDelay | only later, when pods are lost | warned of unless it is the default |
| headlessServiceConfig | no | warned of unless it is the default |
| resourceClaimTemplates | no, unless something shares them | warned of |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from coterie.errors import Fault, FieldError, Notice
from coterie.frontends.grove.podcliqueset.model import (
    DEFAULT_TERMINATION_DELAY_NS,
    TEMPLATE,
    PodCliqueSet,
    Startup,
    UpdateStrategy,
)
from coterie.frontends.grove.podcliqueset.rules import located
from coterie.frontends.kubernetes import field_fault
from coterie.frontends.podspec import Ignored, ignored_notice, read_pod
from coterie.frontends.schema import said
from coterie.gang.tree import Shape


@dataclass(frozen=True, slots=True)
class Placeable:
    """The shapes of pods by clique, why there can be no plan, and at most one warning."""

    shapes: Mapping[str, Shape]
    faults: tuple[Fault, ...] = ()
    notices: tuple[Notice, ...] = ()


def placeable(pcs: PodCliqueSet) -> Placeable:
    """Read a set for planning."""
    readings = {clique.name: read_pod(clique.pod_spec, clique.pod_path) for clique in pcs.cliques}
    faults = [*_shared_devices(pcs), *(fault for each in readings.values() for fault in each.faults)]
    ignored = (*_ignored(pcs), *(one for each in readings.values() for one in each.ignored))
    added = pcs.resource.added if pcs.resource else frozenset()
    notices = ignored_notice(each for each in ignored if each.path not in added)
    if pcs.resource is not None:
        document = pcs.resource.document
        notices = [each.at(document.place(each.path, key=True)) for each in notices]
    return Placeable({name: each.shape for name, each in readings.items()}, tuple(located(pcs, faults)), tuple(notices))


def _shared_devices(pcs: PodCliqueSet) -> Iterator[Fault]:
    shared = (*pcs.sharing, *(one for each in pcs.cliques for one in each.sharing))
    for each in (*shared, *(one for group in pcs.groups for one in group.sharing)):
        message = f"the shared claim {said(each.name)} for devices cannot be planned"
        hint = (
            "Remove it. Coterie does not know which nodes have the devices, and a plan that ignored it would be wrong."
        )
        yield field_fault(FieldError.NOT_SUPPORTED, each.path, message, hint)


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
        yield Ignored("updateStrategy", "it tells how changes are made", ("spec", "updateStrategy"))
    if pcs.termination_delay_ns != DEFAULT_TERMINATION_DELAY_NS:
        yield Ignored("terminationDelay", "it counts when pods are lost", (*TEMPLATE, "terminationDelay"))
    if not pcs.publish_not_ready:
        yield Ignored("headlessServiceConfig", "it is about addresses", (*TEMPLATE, "headlessServiceConfig"))
    if pcs.claim_templates:
        yield Ignored("resourceClaimTemplates", "only those that are shared count", pcs.claim_templates[0].path)
