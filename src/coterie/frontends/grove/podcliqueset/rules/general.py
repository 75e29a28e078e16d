"""The rules of a PodCliqueSet that do not concern topology, on create and on update."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coterie.document.located import Path
from coterie.document.schema import said
from coterie.errors import Fault, FieldError, did_you_mean, nearest
from coterie.frontends.grove.podcliqueset.model import (
    TEMPLATE,
    Clique,
    PodCliqueSet,
    ScalingGroup,
    Startup,
    UpdateStrategy,
)
from coterie.frontends.grove.podcliqueset.rules import shared_claims
from coterie.frontends.grove.podcliqueset.rules.names import (
    annotation_faults,
    budget_faults,
    label_faults,
    name_faults,
    repeated,
)
from coterie.frontends.grove.podcliqueset.settings import GroveSettings
from coterie.frontends.grove.topology import DEFAULT_SCHEDULER
from coterie.frontends.kubernetes.objects import field_fault


def general_faults(pcs: PodCliqueSet, settings: GroveSettings, *, create: bool) -> Iterator[Fault]:
    """Yield every breach; some fields are judged only when a set is created."""
    yield from label_faults(pcs.labels, ("metadata", "labels"))
    yield from annotation_faults(pcs.annotations, ("metadata", "annotations"))
    if pcs.replicas < 0:
        yield _invalid(("spec", "replicas"), f"replicas must not be negative, but is {pcs.replicas}", "Write 1.")
    yield from _chosen(pcs.update_strategy, UpdateStrategy, ("spec", "updateStrategy", "type"))
    yield from _chosen(pcs.startup, Startup, (*TEMPLATE, "cliqueStartupType"))
    yield from shared_claims.template_faults(pcs)
    yield from shared_claims.set_faults(pcs)
    yield from _cliques(pcs, settings, create=create)
    yield from _groups(pcs)
    yield from budget_faults(pcs)
    if pcs.termination_delay_ns <= 0:
        yield _invalid(
            (*TEMPLATE, "terminationDelay"), "terminationDelay must be more than zero", "Example: 30m, or 4h."
        )


def _chosen(value: str, known: type[Startup | UpdateStrategy], path: Path) -> Iterator[Fault]:
    words = [each.value for each in known]
    if value not in words:
        hint = f"Allowed are: {', '.join(words)}. {did_you_mean(value, words)}".rstrip()
        yield field_fault(FieldError.NOT_SUPPORTED, path, f"{path[-1]} {said(value)} is not known", hint)


def _cliques(pcs: PodCliqueSet, settings: GroveSettings, *, create: bool) -> Iterator[Fault]:
    path = (*TEMPLATE, "cliques")
    if not pcs.cliques:
        yield field_fault(FieldError.REQUIRED, path, "the set has no cliques", "List at least one.")
        return
    explicit = pcs.startup == Startup.EXPLICIT
    for clique in pcs.cliques:
        yield from name_faults(clique.name, (*clique.path, "name"), "clique")
        yield from label_faults(clique.labels, (*clique.path, "labels"))
        yield from annotation_faults(clique.annotations, (*clique.path, "annotations"))
        yield from shared_claims.sharing_faults(pcs, clique.sharing)
        yield from _clique(clique, in_group=clique.name in pcs.group_of)
        if explicit:
            yield from _starts_after(pcs, clique)
        if create:
            yield from _bound(clique)
    yield from repeated({(*each.path, "name"): each.name for each in pcs.cliques}, "clique")
    yield from repeated({(*each.spec_path, "roleName"): each.role for each in pcs.cliques}, "role")
    yield from _schedulers(pcs, settings)
    if explicit:
        yield from _circles(pcs)


def _clique(clique: Clique, *, in_group: bool) -> Iterator[Fault]:
    path = clique.spec_path
    if clique.replicas <= 0:
        yield _invalid((*path, "replicas"), f"replicas must be more than 0, but is {clique.replicas}", "Write 1.")
    least = clique.min_available
    if least == 0 and not clique.min_written:
        message = "minAvailable is taken from replicas, which is written as 0, and must be more than 0"
        yield _invalid((*path, "minAvailable"), message, "Write replicas: 1, or give minAvailable.")
    elif least <= 0 and clique.min_written:
        yield _invalid((*path, "minAvailable"), f"minAvailable must be more than 0, but is {least}", "Write 1.")
    elif least > clique.replicas > 0:
        message = f"minAvailable {least} is more than replicas {clique.replicas}"
        yield _invalid((*path, "minAvailable"), message, "Write at most the number of replicas.")
    scale = clique.scale
    if scale is None:
        return
    if in_group:
        message = f"clique {said(clique.name)} is in a scaling group and cannot be scaled by itself"
        yield _invalid(scale.path, message, "Give the scaling group a scaleConfig instead.")
    yield from _scale(scale.path, scale.least, scale.most, clique)


def _scale(path: Path, least: int, most: int, owner: Clique | ScalingGroup) -> Iterator[Fault]:
    if least < owner.min_available:
        message = f"minReplicas {least} is less than minAvailable {owner.min_available}"
        yield _invalid((*path, "minReplicas"), message, f"Write at least {owner.min_available}.")
    if most < (bound := max(least, owner.replicas)):
        what = "minReplicas" if least > owner.replicas else "replicas"
        message = f"maxReplicas {most} is less than {what} {bound}"
        yield _invalid((*path, "maxReplicas"), message, f"Write at least {bound}.")


def _bound(clique: Clique) -> Iterator[Fault]:
    for name, hint in (
        ("topologySpreadConstraints", "Use topologyConstraint to keep pods together."),
        ("nodeName", "The scheduler chooses nodes."),
    ):
        if clique.pod_spec.get(name):
            yield _invalid((*clique.pod_path, name), f"{name} must not be set on the pods of a clique", hint)


def _starts_after(pcs: PodCliqueSet, clique: Clique) -> Iterator[Fault]:
    path = (*clique.spec_path, "startsAfter")
    for index, name in enumerate(clique.starts_after):
        if not name:
            message = f"clique {said(clique.name)} starts after an empty name"
            yield field_fault(FieldError.REQUIRED, (*path, index), message, "Name a clique.")
        elif name == clique.name:
            message = f"clique {said(name)} cannot start after itself"
            yield _invalid((*path, index), message, "Name another clique.")
        elif name not in pcs.by_name:
            message = f"clique {said(clique.name)} starts after {said(name)}, which is not defined"
            yield _invalid((*path, index), message, known_names(name, pcs.by_name))
    yield from repeated({(*path, index): name for index, name in enumerate(clique.starts_after)}, "clique")


def _circles(pcs: PodCliqueSet) -> Iterator[Fault]:
    """Yield one fault when cliques wait for each other in a cycle; those that can start are removed first."""
    waits = {
        clique.name: {name for name in clique.starts_after if name in pcs.by_name and name != clique.name}
        for clique in pcs.cliques
    }
    waiters: dict[str, list[str]] = {name: [] for name in waits}
    for name, others in waits.items():
        for other in others:
            waiters[other].append(name)
    left = {name: len(others) for name, others in waits.items()}
    ready = [name for name, count in left.items() if not count]
    while ready:
        done = ready.pop()
        del left[done]
        for name in waiters[done]:
            left[name] -= 1
            if not left[name]:
                ready.append(name)
    if left:
        circle = _circle(next(iter(left)), {name: waits[name] & left.keys() for name in left})
        shown = " → ".join(name[:63] for name in circle[:6]) + (" → …" if len(circle) > 6 else "")
        path = (*pcs.by_name[circle[0]].spec_path, "startsAfter")
        message = f"cliques wait for each other in a cycle: {shown}"
        yield field_fault(FieldError.INVALID, path, message, "Remove one of them.", "spec.template.cliques")


def _circle(start: str, waits: Mapping[str, set[str]]) -> list[str]:
    """Follow the dependencies until one repeats; every clique here waits for another."""
    steps: dict[str, None] = {}
    while start not in steps:
        steps[start] = None
        start = min(waits[start])
    walked = list(steps)
    return [*walked[walked.index(start) :], start]


def _schedulers(pcs: PodCliqueSet, settings: GroveSettings) -> Iterator[Fault]:
    first = pcs.cliques[0]
    chosen = first.scheduler or settings.default_scheduler
    for clique in pcs.cliques[1:]:
        if (other := clique.scheduler or settings.default_scheduler) != chosen:
            message = f"the cliques name two schedulers, {said(chosen)} and {said(other)}"
            yield _invalid((*clique.pod_path, "schedulerName"), message, "Write the same schedulerName everywhere.")
            break
    if chosen != DEFAULT_SCHEDULER and chosen not in settings.enabled_schedulers:
        known = sorted(settings.enabled_schedulers | {DEFAULT_SCHEDULER})
        hint = f"Schedulers are: {', '.join(known)}. {did_you_mean(chosen, known)}".rstrip()
        yield _invalid((*first.pod_path, "schedulerName"), f"the scheduler {said(chosen)} is not enabled", hint)


def _groups(pcs: PodCliqueSet) -> Iterator[Fault]:
    for group in pcs.groups:
        yield from name_faults(group.name, (*group.path, "name"), "scaling group")
        yield from annotation_faults(group.annotations, (*group.path, "annotations"))
        for index, name in enumerate(group.clique_names):
            if name not in pcs.by_name:
                message = f"scaling group {said(group.name)} has the clique {said(name)}, which is not defined"
                yield _invalid((*group.path, "cliqueNames", index), message, known_names(name, pcs.by_name))
        for field, value in (("replicas", group.replicas), ("minAvailable", group.min_available)):
            if value <= 0:
                yield _invalid((*group.path, field), f"{field} must be more than 0, but is {value}", "Write 1.")
        if group.min_available > group.replicas:
            message = f"minAvailable {group.min_available} is more than replicas {group.replicas}"
            yield _invalid((*group.path, "minAvailable"), message, "Write at most the number of replicas.")
        if group.scale is not None:
            yield from _scale(group.scale.path, group.scale.least, group.scale.most, group)
        yield from shared_claims.group_faults(pcs, group)
    yield from repeated({(*each.path, "name"): each.name for each in pcs.groups}, "scaling group")
    members = {
        (*group.path, "cliqueNames", index): name
        for group in pcs.groups
        for index, name in enumerate(group.clique_names)
    }
    yield from repeated(members, "in scaling groups, clique")


def known_names(word: str, known: Mapping[str, object]) -> str:
    """Return the name that was probably meant, or a list of the existing ones."""
    # A search for similar names among very many takes too long.
    if len(known) <= 200 and (guess := nearest(word, known)):
        return f'Did you mean "{guess}"?'
    names = [name[:63] for name in known]
    return f"Known: {', '.join(names[:10])}{' …' if len(names) > 10 else ''}." if names else "None is defined."


def _invalid(path: Path, message: str, hint: str) -> Fault:
    return field_fault(FieldError.INVALID, path, message, hint)
