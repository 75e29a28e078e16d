"""The KAI manifests of a PodCliqueSet, in the order in which they are to be applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from coterie.backends.kai.manifests import objects as kai_objects
from coterie.backends.kai.manifests.render import RenderedManifests, RenderRequest
from coterie.backends.kai.manifests.size_limits import limit_faults, limit_notices
from coterie.backends.kai.mixed_sizes import mix, priorities
from coterie.backends.kai.placement_warnings import cluster_notices, gang_notices, merge_faults
from coterie.backends.kai.pod_group import PodGroupPart, pod_group_of
from coterie.backends.kai.sets import objects
from coterie.backends.kai.sets.checks import first_of_each, render_faults, render_notices
from coterie.backends.kai.sets.followers import follow
from coterie.backends.kai.sets.names import CompiledSet, SetContext
from coterie.backends.kai.sets.pods import SetGang, SetPodPosition, pod
from coterie.backends.shared.compute_domains import claim_notices
from coterie.backends.shared.manifest_text import Manifest
from coterie.backends.shared.ownership import RunningTasks
from coterie.document.located import Path
from coterie.errors import Fault, Notice, SpecErrors
from coterie.frontends.grove.podcliqueset.nvlink import enrolled
from coterie.frontends.grove.podcliqueset.rules.admission import located
from coterie.gang.tree import Gang

_NAME: Path = ("metadata", "name")


def render_set(subject: CompiledSet, ask: RenderRequest) -> RenderedManifests:
    """Return the manifests of a set; raise `SpecErrors` with every fault. Unknown gangs in `ask.groups` are ignored."""
    pcs, pool = subject.pcs, subject.pool
    chosen = [gang for gang in subject.lowered.gangs if not ask.groups or gang.name in ask.groups]
    if faults := list(render_faults(subject, chosen)):
        raise SpecErrors(located(pcs, faults))
    scene = SetContext.of(subject, ask.namespace, ask.topologies.get(subject.topology))
    # A graph deployment may have another name than its set; pods that Grove made are labelled with the set's.
    names = {subject.name, pcs.name}
    sight = RunningTasks.of(ask.cluster, names, ask.namespace) if ask.cluster is not None else None
    followed = follow(subject.lowered.gangs, chosen, pool.topology, sight)
    written = [gang for gang in chosen if gang.name not in followed.held]
    mixed = [mix(gang, pool.topology, ask.cluster) for gang in written]
    written = [each.gang for each in mixed]
    roots = {gang.name: pod_group_of(gang, pool.topology) for gang in written}
    manifests = [*_shared(scene, subject), *_around(scene, subject, written)]
    for gang, storing in ((each.gang, each.storing) for each in mixed):
        domain = followed.bound.get(gang.name, ())
        manifests += _gang(scene, subject, roots[gang.name], SetGang(scene, pcs, gang, domain, storing, ask.attempt))
    owners = {scene.gang(gang.name): (gang.name, _NAME) for gang in written}
    faults = [*limit_faults(manifests, owners), *_merge_faults(roots, subject, ask)]
    if faults:
        raise SpecErrors(located(pcs, faults))
    notices = [
        *render_notices(subject),
        *_cluster_notices(subject, ask, written),
        *first_of_each(each.notice for each in mixed if each.notice),
        *first_of_each(notice for gang in written for notice in gang_notices(gang, roots[gang.name])),
        *followed.notices,
        *limit_notices(manifests),
    ]
    return RenderedManifests(tuple(manifests), tuple(notices))


def _shared(scene: SetContext, subject: CompiledSet) -> Iterator[Manifest]:
    """Yield the objects that sets share: queues unless the set names one, and a missing topology that it names."""
    if not scene.named_queue:
        yield from kai_objects.queues(scene)
    if subject.topology:
        yield from kai_objects.topologies(scene, owner=subject.topology)


def _around(scene: SetContext, subject: CompiledSet, gangs: Sequence[Gang]) -> Iterator[Manifest]:
    """Yield the objects that the set's replicas need for these gangs: ComputeDomains, then Services."""
    links = enrolled(subject.pcs)
    seats = [subject.lowered.seats[task.name] for gang in gangs for task in gang.all_tasks()]
    used = dict.fromkeys((seat.replica, links[seat.clique.name]) for seat in seats if seat.clique.name in links)
    for replica, group in used:
        yield objects.compute_domain(scene, subject.pcs, replica, group)
    for replica in dict.fromkeys(seat.replica for seat in seats):
        yield objects.service(scene, subject.pcs, replica)


def _gang(scene: SetContext, subject: CompiledSet, root: PodGroupPart, team: SetGang) -> Iterator[Manifest]:
    yield objects.pod_group(scene, subject.pcs, team.gang, root)
    homes = {task.name: part.name for part, _ in root.walk() for task in part.tasks}
    order = priorities(team.gang.all_tasks())
    links = enrolled(subject.pcs)
    for task in team.gang.all_tasks():
        seat = subject.lowered.seats[task.name]
        yield pod(team, task, SetPodPosition(seat, homes[task.name], order.get(task.name), links.get(seat.clique.name)))


def _merge_faults(roots: Mapping[str, PodGroupPart], subject: CompiledSet, ask: RenderRequest) -> Iterator[Fault]:
    """Yield the first gang whose constraints KAI might break, since those of all replicas are alike."""
    if ask.cluster is not None and subject.topology:
        for name, root in roots.items():
            if faults := list(merge_faults(name, root, ask.cluster, subject.pool.topology, _NAME)):
                yield from faults
                return


def _cluster_notices(subject: CompiledSet, ask: RenderRequest, gangs: Sequence[Gang]) -> Iterator[Notice]:
    if ask.cluster is None:
        return
    if subject.topology:
        yield from cluster_notices(ask.cluster, subject.pool.topology)
    links = enrolled(subject.pcs)
    linked = {
        subject.lowered.seats[task.name].clique.name: task.shape
        for gang in gangs
        for task in gang.all_tasks()
        if subject.lowered.seats[task.name].clique.name in links
    }
    yield from claim_notices(linked, ask.cluster)
