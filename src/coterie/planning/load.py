"""The content of a file of any kind: workflows, PodCliqueSets, graph deployments, and topologies beside them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from coterie.backends.shared import compute_domains
from coterie.config.configuration import Pool, UnknownPool
from coterie.document.located import Path
from coterie.document.repair import overlaps
from coterie.document.schema import by_file
from coterie.errors import CoterieError, Fault, Notice, Place, SpecErrors, UsageError
from coterie.frontends.dynamo.model import GraphDeployment
from coterie.frontends.dynamo.read import read_graph
from coterie.frontends.grove.podcliqueset.model import PodCliqueSet
from coterie.frontends.grove.podcliqueset.nvlink import enrolled
from coterie.frontends.grove.podcliqueset.read import read_podcliqueset
from coterie.frontends.grove.topology import KINDS as TOPOLOGY_KINDS
from coterie.frontends.grove.topology_set import Topologies, draft_topologies
from coterie.frontends.kubernetes.draft import draft, independent
from coterie.frontends.kubernetes.objects import Resource, draft_resources, is_kubernetes
from coterie.frontends.workflow.lower import LoweredWorkflow, lower, pool_faults
from coterie.frontends.workflow.read import Workflow, draft_workflow, located
from coterie.inspection.labels import guessed_notices
from coterie.planning.inputs import TopologyChoice
from coterie.planning.pod_clique_sets import PreparedSet, named_topology, prepare_graph, prepare_set, rule_faults
from coterie.planning.workload import Workload
from coterie.topology.channels import CHANNEL
from coterie.topology.devices import NO_TEMPLATES, ClaimTemplates, claim_templates
from coterie.topology.levels import Topology

WORKFLOW = "Workflow"
POD_CLIQUE_SET = "PodCliqueSet"
GRAPH = "DynamoGraphDeployment"
POOL: Path = ("workflow", "pool")

Content = Workflow | PodCliqueSet | GraphDeployment


@dataclass(frozen=True, slots=True)
class WrittenWorkload:
    """One workload of a file, read and not yet checked against a pool; `pool` is the one it names, if any.

    A workload with `faults` of its own is repaired; its values at the paths `gone` are placeholders. `templates` are
    the devices of the claim templates known beside it.
    """

    kind: str
    name: str
    content: Content
    pool: str | None = None
    faults: tuple[Fault, ...] = ()
    gone: frozenset[Path] = frozenset()
    templates: ClaimTemplates = NO_TEMPLATES


@dataclass(frozen=True, slots=True)
class Documents:
    """The content of a file; `faults` are those of no workload."""

    workloads: tuple[WrittenWorkload, ...]
    topologies: Topologies = field(default_factory=Topologies)
    notices: tuple[Notice, ...] = ()
    faults: tuple[Fault, ...] = ()


def read_documents(data: bytes, file: str, *, sets: Sequence[str] = (), set_strings: Sequence[str] = ()) -> Documents:
    """Return the content of a file of any kind; raise `SpecErrors` with every fault of all its documents."""
    found = draft_documents(data, file, sets=sets, set_strings=set_strings)
    if faults := [*found.faults, *(fault for each in found.workloads for fault in each.faults)]:
        raise SpecErrors(by_file(faults))
    return found


def draft_documents(data: bytes, file: str, *, sets: Sequence[str] = (), set_strings: Sequence[str] = ()) -> Documents:
    """Return the content of a file as far as it can be read; raise `SpecErrors` where nothing in it can be."""
    if not is_kubernetes(data):
        found = draft_workflow(data, file, sets=sets, set_strings=set_strings)
        if (workflow := found.workflow) is None:
            return Documents((), faults=found.faults)
        return Documents((WrittenWorkload(WORKFLOW, workflow.name, workflow, workflow.pool, found.faults, found.gone),))
    bundle = draft_resources(data, file)
    if not bundle.resources and not bundle.faults:
        for other in bundle.others:
            if other.kind == "Status":
                problem = f"this is an error that kubectl printed: {other.data.get('message') or 'it has no message'}"
                hint = "Fix its cause, then run the kubectl command again."
                raise SpecErrors([Fault(problem, hint=hint, place=Place(file))])
        kinds = ", ".join(dict.fromkeys(other.kind for other in bundle.others)) or "an empty list"
        hint = (
            f"Workloads are workflows, {POD_CLIQUE_SET}s and {GRAPH}s. "
            "A snapshot of a cluster is passed with --cluster instead."
        )
        raise SpecErrors([Fault(f"there is no workload in it, only {kinds}", hint=hint, place=Place(file))])
    topologies, wrong = draft_topologies(bundle.of(*TOPOLOGY_KINDS))
    faults = [*bundle.faults, *wrong]
    workloads: list[WrittenWorkload] = []
    templates = claim_templates(each.data for each in bundle.others)
    for resource in bundle.of(POD_CLIQUE_SET, GRAPH):
        read: Callable[[Resource], PodCliqueSet | GraphDeployment] = (
            read_podcliqueset if resource.kind == POD_CLIQUE_SET else read_graph
        )
        own, repaired = draft(resource, read)
        if repaired is None:
            faults += own
        else:
            content = repaired.content
            workloads.append(
                WrittenWorkload(
                    resource.kind, resource.name, content, faults=own, gone=repaired.gone, templates=templates
                )
            )
    return Documents(tuple(workloads), topologies, (*bundle.notices, *topologies.notices), tuple(faults))


def documents_of(workflow: Workflow) -> Documents:
    """Return a workflow as the only document of its file."""
    return Documents((WrittenWorkload(WORKFLOW, workflow.name, workflow, workflow.pool),))


def levels_for(
    written: WrittenWorkload,
    levels: Topology | TopologyChoice | None,
    known: Mapping[str, Topology],
    kai: Collection[str] = (),
) -> Topology | TopologyChoice | None:
    """Return the levels of a call for a workload; one that names a known topology needs no selection.

    A name that only a KAI Topology has, of those in `kai`, selects that one where the call selects none.
    """
    content = written.content
    if isinstance(content, Workflow):
        return levels
    name = named_topology(content)
    if levels is None and name not in known and name in kai:
        return TopologyChoice(name=name)
    if not isinstance(levels, TopologyChoice) or len(levels.topologies.found) < 2:
        return levels
    return None if name in known else levels


def prepare(written: WrittenWorkload, pool: Pool, known: Mapping[str, Topology], *, configured: bool) -> PreparedSet:
    """Return a PodCliqueSet or a graph deployment compiled for a pool; raise `SpecErrors` with every fault."""
    if isinstance(written.content, PodCliqueSet):
        return prepare_set(written.content, pool, known, configured=configured, templates=written.templates)
    if isinstance(written.content, GraphDeployment):
        return prepare_graph(written.content, pool, known, configured=configured, templates=written.templates)
    raise TypeError(written.kind)


def workload_of(workflow: Workflow, lowered: LoweredWorkflow, pool: Pool) -> Workload:
    """Return a workflow compiled for a pool; raise `SpecErrors` for a request that the pool does not support."""
    if faults := _nvlink_faults(workflow, pool):
        raise SpecErrors(faults)
    return Workload(
        workflow.name,
        WORKFLOW,
        pool,
        lowered.gangs,
        lowered.needs,
        (*guessed_notices(pool), *lowered.notices),
        nvlink={team.name: compute_domains.label_value(workflow.spec.labels, team.name) for team in workflow.teams},
        namespace=pool.namespace,
    )


def workload_for(written: WrittenWorkload, pool: Pool, known: Mapping[str, Topology], *, configured: bool) -> Workload:
    """Return a workload of any kind compiled for a pool; raise `SpecErrors` with its own faults and the pool's."""
    if written.faults:
        raise SpecErrors(by_file((*written.faults, *_further(written, pool, known, configured=configured))))
    if isinstance(written.content, Workflow):
        if faults := _nvlink_faults(written.content, pool):
            raise SpecErrors(by_file((*pool_faults(written.content, pool), *faults)))
        return workload_of(written.content, lower(written.content, pool), pool)
    prepared = prepare(written, pool, known, configured=configured)
    gangs, links = prepared.lowered.gangs, enrolled(prepared.pcs)
    names = ((task, prepared.lowered.seats[task.name].clique.name) for gang in gangs for task in gang.all_tasks())
    claiming = {task.clique: name for task, name in names if name in links or task.shape.amount(CHANNEL)}
    own = written.content.resource.namespace if written.content.resource else ""
    return Workload(
        written.name,
        written.kind,
        prepared.pool,
        gangs,
        notices=(*guessed_notices(prepared.pool), *prepared.notices),
        claiming=claiming,
        namespace=own or pool.namespace,
        set_name=prepared.pcs.name,
        traits=prepared.traits.pods,
        refusals=prepared.traits.refusals,
    )


def faults_in(workflow: Workflow, pool: Pool, gone: frozenset[Path] = frozenset()) -> list[Fault]:
    """Return the faults that depend on a pool: topology, platforms and NVLink; not those of repaired values."""
    nvlink = (fault for fault in _nvlink_faults(workflow, pool) if not overlaps(fault.path, gone))
    return by_file((*pool_faults(workflow, pool, gone), *nvlink))


def _nvlink_faults(workflow: Workflow, pool: Pool) -> list[Fault]:
    return located(compute_domains.label_faults(workflow, pool), workflow.document)


def _further(written: WrittenWorkload, pool: Pool, known: Mapping[str, Topology], *, configured: bool) -> list[Fault]:
    """Return the further faults of a workload that already has some."""
    if isinstance(written.content, Workflow):
        return faults_in(written.content, pool, written.gone)
    try:
        prepare(written, pool, known, configured=configured)
    except SpecErrors as error:
        return independent(error.faults, written.gone)
    return []


@dataclass(frozen=True, slots=True)
class CompileContext:
    """The context in which the workloads of a call are compiled: the pool of each, and the known topologies.

    `pool` is the one that the call names. `wrong` are the names of invalid topologies, whose faults are reported
    anyway. `templates` are the devices of the cluster's claim templates.
    """

    choose: Callable[[WrittenWorkload], Pool]
    known: Mapping[str, Topology]
    configured: bool
    pool: str | None = None
    wrong: Collection[str] = ()
    templates: ClaimTemplates = NO_TEMPLATES


def lowered(faults: list[Fault], written: Iterable[WrittenWorkload], scene: CompileContext) -> list[Workload]:
    """Return workloads compiled for their pools, and add the faults of all of them.

    An unavailable pool is a fault as well, unless it is the only one: then its error is raised unchanged.
    """
    workloads: list[Workload] = []
    errors: dict[Fault, CoterieError] = {}
    for one in written:
        try:
            if (found := _lowered(one, scene)) is not None:
                workloads.append(found)
        except SpecErrors as error:
            faults += error.faults
        except CoterieError as error:
            faults += one.faults
            errors[pool_fault(error, one.content)] = error
    if len(errors) == 1 and not faults:
        raise next(iter(errors.values()))
    faults += errors
    return workloads


@contextmanager
def joined(faults: list[Fault], written: Sequence[WrittenWorkload]) -> Iterator[None]:
    """Add the workloads' own faults to an error that occurs before they can be compiled, such as a missing pool."""
    try:
        yield
    except SpecErrors:
        raise
    except CoterieError as error:
        own = [*faults, *(fault for one in written for fault in one.faults)]
        if not own:
            raise
        if isinstance(error, UsageError) and any(overlaps(POOL, one.gone) for one in written):
            raise SpecErrors(by_file(own)) from None  # a missing pool name is only a consequence
        raise SpecErrors(by_file((*own, pool_fault(error, written[0].content if written else None)))) from None


def _lowered(written: WrittenWorkload, scene: CompileContext) -> Workload | None:
    content = written.content
    if isinstance(content, Workflow):
        if scene.pool is None and overlaps(POOL, written.gone):
            raise SpecErrors(written.faults)  # the intended pool cannot be determined
    elif (name := named_topology(content)) in scene.wrong and name not in scene.known:
        if faults := (*written.faults, *independent(rule_faults(content), written.gone)):
            raise SpecErrors(by_file(faults))
        return None
    written = replace(written, templates=written.templates | scene.templates)
    return workload_for(written, scene.choose(written), scene.known, configured=scene.configured)


def pool_fault(error: CoterieError, content: Content | None) -> Fault:
    """Return an error about a pool as one of several faults, at the line of a workflow that names the pool."""
    if isinstance(content, Workflow) and isinstance(error, UnknownPool) and error.written:
        return Fault(str(error), hint=error.hint, path=POOL, place=content.place(POOL))
    return Fault(str(error), hint=error.hint)
