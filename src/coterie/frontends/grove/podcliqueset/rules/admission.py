"""The rules of PodCliqueSets as pure functions: faults of a new set, faults of a change, and warnings.

The order is that in which an API server would report the faults. Every fault has the API's type and field, and the
place in the user's text. `topologies` is None where they are not known: then nothing is judged by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from coterie.document.located import Path
from coterie.document.schema import MOST_FAULTS, said
from coterie.errors import Fault, Notice
from coterie.frontends.grove.podcliqueset import nvlink
from coterie.frontends.grove.podcliqueset.model import Clique, PodCliqueSet, ScalingGroup, Startup
from coterie.frontends.grove.podcliqueset.queue import no_queue, resolve_queue, scheduler_faults, scheduler_of
from coterie.frontends.grove.podcliqueset.rules import update
from coterie.frontends.grove.podcliqueset.rules.constraints import (
    Topologies,
    constraint_faults,
    names_for_children,
    shape_faults,
)
from coterie.frontends.grove.podcliqueset.rules.general import general_faults
from coterie.frontends.grove.podcliqueset.settings import GroveSettings
from coterie.frontends.grove.topology import DEFAULT_SCHEDULER, KAI
from coterie.frontends.kubernetes.pod_fields import unknown_fields

DEFAULTS = GroveSettings()


def create_faults(pcs: PodCliqueSet, topologies: Topologies | None, settings: GroveSettings = DEFAULTS) -> list[Fault]:
    """Return every breach of the rules for a new PodCliqueSet."""
    return located(
        pcs,
        chain(
            general_faults(pcs, settings, create=True),
            nvlink.group_faults(pcs, settings),
            constraint_faults(pcs, topologies, settings),
            scheduler_faults(pcs, settings),
        ),
    )


def update_faults(
    old: PodCliqueSet, new: PodCliqueSet, topologies: Topologies | None, settings: GroveSettings = DEFAULTS
) -> list[Fault]:
    """Return every breach of the rules for changing one PodCliqueSet into another.

    Immutable fields are judged only where the new set is valid by itself. The existence of topologies and domains is
    not checked again, except where a constraint from before topologies had names gets one.
    """
    if faults := list(update.identity_changes(old, new)):
        return located(new, faults)
    whole = update.completed(old, new)
    own = chain(shape_faults(whole, settings, create=False), general_faults(whole, settings, create=False))
    if faults := located(new, own):
        return faults
    return located(
        new,
        chain(
            nvlink.group_changes(old, whole),
            update.fixed_changes(old, whole),
            update.constraint_changes(old, whole, topologies, settings),
        ),
    )


def warnings(
    pcs: PodCliqueSet,
    topologies: Topologies | None,
    settings: GroveSettings = DEFAULTS,
    old: PodCliqueSet | None = None,
) -> list[Notice]:
    """Return the warnings about a valid set; with `old`, about an update."""
    found = chain(
        _old_form(pcs, settings, create=old is None),
        _topology(pcs, topologies, settings) if old is None else (),
        _queue(pcs, settings) if old is None else (),
        _ineffective(pcs),
    )
    slips = unknown_fields((each.pod_spec, each.pod_path) for each in pcs.cliques)
    if (resource := pcs.resource) is None:
        return [*found, *slips]
    place = resource.document.place
    return [*(each.at(place(each.path)) for each in found), *(each.at(place(each.path, key=True)) for each in slips)]


def located(pcs: PodCliqueSet, faults: Iterable[Fault]) -> list[Fault]:
    """Return faults with their places, in the given order and limited in number."""
    resource, source = pcs.resource, iter(faults)
    found = list(islice(source, MOST_FAULTS))
    if next(source, None) is not None:
        last, message = found[-1], f"only the first {MOST_FAULTS} faults are shown"
        found.append(Fault(message, hint="Fix these to see the others.", path=last.path, type=last.type))
    return [each.at(resource.document.place(each.path)) if resource else each for each in found]


def _old_form(pcs: PodCliqueSet, settings: GroveSettings, *, create: bool) -> Iterator[Notice]:
    old = [each for each in pcs.constraints() if each.legacy]
    if old and not (create and settings.strict):
        count = f" (in {len(old)} places)" if len(old) > 1 else ""
        message = (
            f"packDomain{count} is the older form: since v0.1.0-alpha.10 Grove takes it on existing sets only; "
            f"write pack: {{required: {old[0].legacy}}}"
        )
        yield Notice("Deprecated", message, path=(*old[0].path, "packDomain"))
    top = pcs.constraint
    bare = top is not None and not (top.domain or top.preferred)
    if create and top is not None and bare and not settings.strict and names_for_children(pcs, top):
        message = (
            "a topologyConstraint that only names the topology is the older form, which Grove refuses today; "
            f"write topologyName: {top.topology} in the constraints below, or give it a pack"
        )
        yield Notice("Deprecated", message, path=top.path)


def _topology(pcs: PodCliqueSet, topologies: Topologies | None, settings: GroveSettings) -> Iterator[Notice]:
    constraints = [each for each in pcs.constraints() if each.domain or each.preferred]
    if not constraints or not settings.topology_aware_scheduling:
        return
    first = constraints[0]
    if scheduler_of(pcs, settings) == DEFAULT_SCHEDULER:
        message = f"topology constraints have no effect with {DEFAULT_SCHEDULER}; name {KAI} as schedulerName"
        yield Notice("OtherScheduler", message, path=first.path)
    if topologies is None:
        message = "no ClusterTopology is known here: names, domains and their order are not checked"
        yield Notice("TopologyNotChecked", message, path=first.path)
        return
    owners: list[PodCliqueSet | ScalingGroup | Clique] = [pcs, *pcs.groups, *pcs.cliques]
    for owner in owners:
        found = pcs.effective(None if isinstance(owner, PodCliqueSet) else owner)
        order = topologies[found.topology].names if found and found.topology in topologies else ()
        if found is None or found.required not in order or found.preferred not in order or owner.constraint is None:
            continue
        if order.index(found.preferred) < order.index(found.required):
            message = (
                f"preferred {said(found.preferred)} is broader than required {said(found.required)} "
                "and therefore has no effect"
            )
            yield Notice("PreferredBroader", message, path=owner.constraint.preferred_path)


def _queue(pcs: PodCliqueSet, settings: GroveSettings) -> Iterator[Notice]:
    if settings.strict or scheduler_of(pcs, settings) != KAI or resolve_queue(pcs):
        return
    if not any(True for _ in scheduler_faults(pcs, settings)):
        yield Notice("NoQueue", ". ".join(no_queue()), path=("metadata", "name"))


def _ineffective(pcs: PodCliqueSet) -> Iterator[Notice]:
    restarts = [each for each in pcs.cliques if each.pod_spec.get("restartPolicy") not in (None, "", "Always")]
    if restarts:
        path: Path = (*restarts[0].pod_path, "restartPolicy")
        message = "restartPolicy is always Always in a clique; the value in the file is replaced"
        yield Notice("FieldIgnored", message, path=path)
    waiting = [each for each in pcs.cliques if each.starts_after]
    if waiting and pcs.startup != Startup.EXPLICIT:
        message = f"startsAfter has no effect unless cliqueStartupType is {Startup.EXPLICIT.value}"
        yield Notice("FieldIgnored", message, path=(*waiting[0].spec_path, "startsAfter"))
