"""The KAI manifests of a workflow, in the order in which they are to be applied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coterie.backends.kai.manifests import objects, pods
from coterie.backends.kai.manifests.domain_values import domain_values, with_domains
from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.backends.kai.manifests.pod_template import template_mounts
from coterie.backends.kai.manifests.size_limits import limit_faults, limit_notices
from coterie.backends.kai.manifests.task_files import FileObjects
from coterie.backends.kai.manifests.workspace import AttemptFolders, missing_workspace_faults
from coterie.backends.kai.mixed_sizes import mix, priorities
from coterie.backends.kai.placement_warnings import cluster_notices, gang_notices, merge_faults
from coterie.backends.kai.pod_group import PodGroupPart, pod_group_of
from coterie.backends.shared import compute_domains
from coterie.backends.shared.manifest_text import Manifest
from coterie.backends.shared.task_environment import RESERVED, identity
from coterie.backends.shared.task_files import contents_of
from coterie.config.configuration import Pool
from coterie.errors import Fault, NotFound, Notice, SpecErrors
from coterie.frontends.grove.topology import ClusterTopology
from coterie.frontends.workflow.lower import LoweredWorkflow
from coterie.frontends.workflow.read import Workflow, located
from coterie.frontends.workflow.rules import WorkflowGroup, WorkflowTask
from coterie.frontends.workflow.tokens import OUTPUT, TokenReplacement, TokenValues, unread_faults, uuid_of
from coterie.frontends.workflow.values import suggestion
from coterie.gang.tree import Gang, Task
from coterie.topology.cluster import Cluster

# Coterie ends tasks at their time limit; the cluster does so a little later, in case there is no service.
_BACKSTOP_S = 60


@dataclass(frozen=True, slots=True)
class ServiceRun:
    """The run of a workflow by a service: its id, the store it is in, its priority, and the placement of the group.

    `claims` is whether the group has a ComputeDomain already, None where that is still to be decided. `attempts` has
    the last attempt of each task, whose output others read.
    """

    workflow: str
    store: str
    priority: str
    base: int = 1
    claims: bool | None = None
    attempts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """The inputs of rendering besides the workflow and its pool.

    `local` has the bytes of every `localpath`; `groups` are those to render, all if it is empty. A cluster gives the
    sizes of the nodes. `topologies` are the known ClusterTopologies, by name. `run` is that of a service, if one
    applies the manifests.
    """

    namespace: str
    cluster: Cluster | None = None
    local: Mapping[str, bytes] = field(default_factory=dict)
    groups: Sequence[str] = ()
    attempt: int = 1
    topologies: Mapping[str, ClusterTopology] = field(default_factory=dict)
    run: ServiceRun | None = None


@dataclass(frozen=True, slots=True)
class RenderedManifests:
    """Manifests in the order of their application, and notices for the user."""

    manifests: tuple[Manifest, ...]
    notices: tuple[Notice, ...]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The tasks of a group, ready for their pods, and the objects that hold their files.

    `called` are the tasks whose hosts they name, `folders` the paths where a task first names each of its folders.
    """

    works: Mapping[str, pods.Work]
    shelf: FileObjects
    faults: Sequence[Fault]
    called: Collection[str]
    folders: Sequence[tuple[WorkflowTask, str]]


def render(workflow: Workflow, lowered: LoweredWorkflow, pool: Pool, ask: RenderRequest) -> RenderedManifests:
    """Return the manifests of a workflow for a pool; raise `SpecErrors` with every fault."""
    declared = ask.topologies.get(pool.topology_name or "")
    scene = _scene(workflow, pool, ask, declared)
    chosen = _chosen(workflow, ask.groups)
    faults = compute_domains.label_faults(workflow, pool)
    prepared = {team.name: _prepare(workflow, team, scene, ask) for team in workflow.teams}
    faults.extend(fault for each in prepared.values() for fault in each.faults)
    if ask.run is not None and pool.workspace is None:
        used = [one for name, each in prepared.items() if name in chosen for one in each.folders]
        faults.extend(missing_workspace_faults(used, pool.name))
    called = {host for each in prepared.values() for host in each.called}
    notices = [*lowered.notices, *_general(workflow, lowered, pool, ask)]
    manifests = list(objects.shared(scene))
    for team, gang in zip(workflow.teams, lowered.gangs, strict=True):
        if team.name in chosen:
            label = compute_domains.label_value(workflow.spec.labels, team.name)
            linked = compute_domains.ComputeDomainDecision(wanted=bool(ask.run and ask.run.claims))
            if pool.nvlink and (ask.run is None or ask.run.claims is None):
                linked = compute_domains.decide(gang, label, ask.cluster, always=pool.nvlink_always)
            named = ask.run is not None or any(member.name in called for member in team.members)
            limit = lowered.exec_timeout
            limit = limit + _BACKSTOP_S if limit is not None and ask.run else limit
            seat = pods.PodPosition(gang.name, "", linked.wanted, named, ask.attempt, limit)
            mixed = mix(gang, pool.topology, ask.cluster)
            root = pod_group_of(mixed.gang, pool.topology)
            if ask.run is not None and pool.topology.levels:
                manifests.append(domain_values(scene, gang.name, ask.attempt, {}))
            manifests += _gang(scene, mixed.gang, root, seat, prepared[team.name])
            warnings = [notice for notice in (linked.notice, mixed.notice) if notice]
            warnings += gang_notices(mixed.gang, root)
            notices += [notice.at(lowered.group_places[team.name]) for notice in warnings]
            if ask.cluster is not None:
                faults.extend(merge_faults(gang.name, root, ask.cluster, pool.topology, (*team.path, "name")))
    owners = {scene.gang(team.name): (team.name, (*team.path, "name")) for team in workflow.teams}
    faults.extend(limit_faults(manifests, owners))
    if faults:
        raise SpecErrors(located(faults, workflow.document))
    return RenderedManifests(tuple(manifests), (*notices, *limit_notices(manifests)))


def start_faults(workflow: Workflow, pool: Pool, local: Mapping[str, bytes]) -> Iterator[Fault]:
    """Yield the faults of tasks that would appear only when a service creates their pods."""
    scene = ManifestContext("default", workflow.name, pool)
    for team in workflow.teams:
        missing = {
            file.localpath for member in team.members for file in member.spec.files if file.localpath is not None
        }
        given = {**dict.fromkeys(missing, b""), **local}
        found = _prepare(workflow, team, scene, RenderRequest("default", local=given))
        lost = () if pool.workspace else missing_workspace_faults(found.folders, pool.name)
        yield from located([*found.faults, *lost], workflow.document)


def _prepare(workflow: Workflow, team: WorkflowGroup, scene: ManifestContext, ask: RenderRequest) -> _Prepared:
    hosts = _hosts(workflow, scene)
    values = TokenValues(scene.workflow_id, uuid_of(ask.namespace, scene.workflow), hosts)
    shelf, works = FileObjects(scene, team.name), dict[str, pods.Work]()
    faults: list[Fault] = []
    called: set[str] = set()
    folders: list[tuple[WorkflowTask, str]] = []
    space = AttemptFolders(scene, _groups(workflow), ask.run.attempts if ask.run else {}, ask.attempt)
    for rank, member in enumerate(team.members):
        filling = TokenReplacement(values, member)
        work = _work(filling, shelf, ask.local, space if scene.pool.workspace else None)
        faults.extend(_overlaps(member, work.mounts, template_mounts(scene.pool.pod_template)))
        works[member.name] = _identified(work, scene, team, rank, hosts, ask.attempt) if ask.run else work
        faults.extend((*filling.faults, *unread_faults(filling)))
        called |= filling.hosts
        folders += [(member, folder) for folder in sorted(filling.folders)]
    return _Prepared(works, shelf, faults, called, folders)


def _gang(
    scene: ManifestContext, gang: Gang, root: PodGroupPart, seat: pods.PodPosition, prepared: _Prepared
) -> Iterator[Manifest]:
    if seat.claims:
        yield objects.compute_domain(scene, gang.name)
    yield from prepared.shelf.manifests.values()
    if seat.found_by_name:
        yield objects.service(scene, gang.name)
    yield objects.pod_group(scene, gang, root)
    homes = {task.name: part.name for part, _ in root.walk() for task in part.tasks}
    order = priorities(gang.all_tasks())
    for task in gang.all_tasks():
        own = seat.within(homes[task.name], order.get(task.name))
        work = prepared.works[task.name]
        yield pods.pod(scene, task, own, _with_gpus(work, task) if scene.store else work)


def _scene(workflow: Workflow, pool: Pool, ask: RenderRequest, declared: ClusterTopology | None) -> ManifestContext:
    scene = ManifestContext(ask.namespace, workflow.name, pool, workflow.spec.labels, declared)
    if (run := ask.run) is None:
        return scene
    return replace(scene, workflow=run.workflow, store=run.store, base=run.base, priority=run.priority)


def _identified(
    work: pods.Work, scene: ManifestContext, team: WorkflowGroup, rank: int, hosts: Mapping[str, str], attempt: int
) -> pods.Work:
    """Return the work of a task with the variables that identify it; the user's own cannot replace them."""
    listed = ",".join(hosts[member.name] for member in team.members)
    own = {
        **identity(scene.workflow, team, rank, listed),
        "COTERIE_ATTEMPT": str(attempt),
        # Files are at their own paths in a container.
        "COTERIE_FILES": "/",
        **({"COTERIE_OUTPUT": OUTPUT} if scene.pool.workspace else {}),
    }
    given = [(name, value) for name, value in work.environment if not name.startswith(RESERVED)]
    node = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    found = replace(work, environment=[*given, *own.items()], later=[("COTERIE_NODE", node)])
    return with_domains(found, scene, team.name, team.members[rank].name, attempt)


def _with_gpus(work: pods.Work, task: Task) -> pods.Work:
    """Return the work of a task with the numbers of its GPUs, which a container counts from 0, whichever they are."""
    return replace(work, environment=[*work.environment, ("COTERIE_GPUS", ",".join(map(str, range(task.shape.gpus))))])


def _chosen(workflow: Workflow, groups: Sequence[str]) -> set[str]:
    known = [team.name for team in workflow.teams]
    for name in groups:
        if name not in known:
            raise NotFound(f'the workflow has no group "{name}"', suggestion(name, known))
    return set(groups or known)


def _hosts(workflow: Workflow, scene: ManifestContext) -> dict[str, str]:
    return {
        member.name: f"{pods.hostname(member.name)}.{scene.host_domain(team.name)}"
        for team in workflow.teams
        for member in team.members
    }


def _groups(workflow: Workflow) -> dict[str, str]:
    return {member.name: team.name for team in workflow.teams for member in team.members}


def _work(
    filling: TokenReplacement, shelf: FileObjects, local: Mapping[str, bytes], space: AttemptFolders | None
) -> pods.Work:
    spec = filling.member.spec
    command = [filling.fill(word, "command", index) for index, word in enumerate(spec.command)]
    args = [filling.fill(word, "args", index) for index, word in enumerate(spec.args)]
    environment = [(name, filling.fill(value, "environment", name)) for name, value in spec.environment.items()]
    files = shelf.put(contents_of(spec.files, local, filling), filling)
    own = pods.folders(filling.folders) if space is None else space.volumes(filling.member)
    sources = (files, pods.node_paths(spec.volume_mounts), own)
    volumes = [volume for found, _ in sources for volume in found]
    mounts = [mount for _, found in sources for mount in found]
    return pods.Work(spec.image, command, args, environment, volumes, mounts)


def _overlaps(member: WorkflowTask, mounts: Sequence[Manifest], pools: Collection[str]) -> Iterator[Fault]:
    for path, count in Counter(mount["mountPath"] for mount in mounts).items():
        if path in pools:
            message = f'{path} of task "{member.name}" is taken by the pod_template of the pool'
            yield Fault(message, path=(*member.path, "name"), hint="Choose another path.")
        if count > 1:
            message = f'{path} is used twice in task "{member.name}", by files, volumeMounts or the task\'s own folders'
            yield Fault(message, path=(*member.path, "name"), hint="Choose another path for one of them.")


def _general(workflow: Workflow, lowered: LoweredWorkflow, pool: Pool, ask: RenderRequest) -> Iterator[Notice]:
    if pool.scheduler != "kai":
        message = f'pool "{pool.name}" belongs to a backend with the scheduler "{pool.scheduler}", not to KAI'
        yield Notice("OtherScheduler", message)
    if ask.cluster is not None and pool.topology.levels:
        yield from cluster_notices(ask.cluster, pool.topology)
    waiting = [name for name, needs in lowered.needs.items() if needs]
    if waiting and not ask.groups:
        listed = ", ".join(waiting[:3]) + (f" and {len(waiting) - 3} more" if len(waiting) > 3 else "")
        yield Notice(
            "ApplyInOrder",
            f"groups wait for others ({listed}): nothing in the manifests holds them back, so render each with --group "
            "and apply it when those before it have finished",
            lowered.group_places[waiting[0]],
        )
    lost = list(_lost(workflow.teams, shared=pool.workspace is not None))
    if workflow.spec.timeout.queue_timeout is not None:
        lost.append("queue_timeout (pods wait as long as it takes)")
    if lost:
        yield Notice("NotCarriedOut", f"manifests alone cannot carry out: {', '.join(lost)}")


def _lost(teams: Sequence[WorkflowGroup], *, shared: bool) -> Iterator[str]:
    specs = [member.spec for team in teams for member in team.members]
    if not shared and any(entry.task for spec in specs for entry in spec.inputs):
        yield "inputs (no files are brought from the tasks they come from)"
    if any(spec.exit_actions.model_fields_set for spec in specs):
        yield "exitActions (a pod that has ended is not started again)"
