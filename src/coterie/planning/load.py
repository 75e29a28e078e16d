"""What a file holds, whichever kind it is: workflows, PodCliqueSets, graph deployments, and topologies beside them."""

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
from coterie.frontends.workflow.lower import Lowered, lower, pool_faults
from coterie.frontends.workflow.read import Workflow, draft_workflow, located
from coterie.inspection.labels import guessed_notices
from coterie.planning.inputs import Chart
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
class Written:
    """One workload of a file, read and not yet judged against a pool; `pool` is the one it names, if it names one.

    One that has `faults` by itself is what can be made out beside them; what stands at the paths `gone` is made up.
    `templates` are what claims of templates are for that are known beside it.
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
    """All that a file holds; `faults` are those of no workload."""

    workloads: tuple[Written, ...]
    topologies: Topologies = field(default_factory=Topologies)
    notices: tuple[Notice, ...] = ()
    faults: tuple[Fault, ...] = ()


def read_documents(data: bytes, file: str, *, sets: Sequence[str] = (), set_strings: Sequence[str] = ()) -> Documents:
    """Read a file of any kind; raise `SpecErrors` with every fault of all its documents."""
    found = draft_documents(data, file, sets=sets, set_strings=set_strings)
    if faults := [*found.faults, *(fault for each in found.workloads for fault in each.faults)]:
        raise SpecErrors(by_file(faults))
    return found


def draft_documents(data: bytes, file: str, *, sets: Sequence[str] = (), set_strings: Sequence[str] = ()) -> Documents:
    """Read a file of any kind as far as it can be; raise `SpecErrors` where nothing in it can be read."""
    if not is_kubernetes(data):
        found = draft_workflow(data, file, sets=sets, set_strings=set_strings)
        if (workflow := found.workflow) is None:
            return Documents((), faults=found.faults)
        return Documents((Written(WORKFLOW, workflow.name, workflow, workflow.pool, found.faults, found.gone),))
    bundle = draft_resources(data, file)
    if not bundle.resources and not bundle.faults:
        kinds = ", ".join(dict.fromkeys(other.kind for other in bundle.others)) or "an empty list"
        hint = (
            f"Workloads are workflows, {POD_CLIQUE_SET}s and {GRAPH}s. "
            "A snapshot of a cluster is passed with --cluster instead."
        )
        raise SpecErrors([Fault(f"there is no workload in it, only {kinds}", hint=hint, place=Place(file))])
    topologies, wrong = draft_topologies(bundle.of(*TOPOLOGY_KINDS))
    faults = [*bundle.faults, *wrong]
    workloads: list[Written] = []
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
                Written(resource.kind, resource.name, content, faults=own, gone=repaired.gone, templates=templates)
            )
    return Documents(tuple(workloads), topologies, (*bundle.notices, *topologies.notices), tuple(faults))


def documents_of(workflow: Workflow) -> Documents:
    """Return a workflow as the only document of its file."""
    return Documents((Written(WORKFLOW, workflow.name, workflow, workflow.pool),))


def levels_for(
    written: Written, levels: Topology | Chart | None, known: Mapping[str, Topology], kai: Collection[str] = ()
) -> Topology | Chart | None:
    """Return the levels of a call as they concern a workload: one that names a known topology needs none chosen.

    A name that only a KAI Topology has, of those in `kai`, chooses that one where the call chooses none.
    """
    content = written.content
    if isinstance(content, Workflow):
        return levels
    name = named_topology(content)
    if levels is None and name not in known and name in kai:
        return Chart(name=name)
    if not isinstance(levels, Chart) or len(levels.topologies.found) < 2:
        return levels
    return None if name in known else levels


def prepare(written: Written, pool: Pool, known: Mapping[str, Topology], *, configured: bool) -> PreparedSet:
    """Check and lower a PodCliqueSet or a graph deployment; raise `SpecErrors` with every fault."""
    if isinstance(written.content, PodCliqueSet):
        return prepare_set(written.content, pool, known, configured=configured, templates=written.templates)
    if isinstance(written.content, GraphDeployment):
        return prepare_graph(written.content, pool, known, configured=configured, templates=written.templates)
    raise TypeError(written.kind)


def workload_of(workflow: Workflow, lowered: Lowered, pool: Pool) -> Workload:
    """Return a workflow as it was lowered for a pool; raise `SpecErrors` for a wish that the pool does not grant."""
    if faults := _nvlink_faults(workflow, pool):
        raise SpecErrors(faults)
    return Workload(
        workflow.name,
        WORKFLOW,
        pool,
        lowered.gangs,
        lowered.needs,
        (*guessed_notices(pool), *lowered.notices),
        nvlink=workflow.spec.labels.get(compute_domains.LABEL),
        namespace=pool.namespace,
    )


def workload_for(written: Written, pool: Pool, known: Mapping[str, Topology], *, configured: bool) -> Workload:
    """Lower a workload of any kind for a pool; raise `SpecErrors` with every fault, its own and those in the pool."""
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
    """Return every fault that only a pool shows: of topology, platforms and NVLink; not of what was repaired."""
    wishes = (fault for fault in _nvlink_faults(workflow, pool) if not overlaps(fault.path, gone))
    return by_file((*pool_faults(workflow, pool, gone), *wishes))


def _nvlink_faults(workflow: Workflow, pool: Pool) -> list[Fault]:
    return located(compute_domains.label_faults(workflow, nvlink=pool.nvlink, pool=pool.name), workflow.document)


def _further(written: Written, pool: Pool, known: Mapping[str, Topology], *, configured: bool) -> list[Fault]:
    """Return what the rules say of a workload with faults beside these."""
    if isinstance(written.content, Workflow):
        return faults_in(written.content, pool, written.gone)
    try:
        prepare(written, pool, known, configured=configured)
    except SpecErrors as error:
        return independent(error.faults, written.gone)
    return []


@dataclass(frozen=True, slots=True)
class Scene:
    """What the workloads of a call are lowered for: the pool of each, and the topologies there are.

    `pool` is what the call names. `wrong` are the names of topologies with faults of their own, which are told anyway.
    `templates` are what claims are for, as far as the cluster tells.
    """

    choose: Callable[[Written], Pool]
    known: Mapping[str, Topology]
    configured: bool
    pool: str | None = None
    wrong: Collection[str] = ()
    templates: ClaimTemplates = NO_TEMPLATES


def lowered(faults: list[Fault], written: Iterable[Written], scene: Scene) -> list[Workload]:
    """Lower workloads, each for its pool, and add the faults of all of them.

    A pool that cannot be had is a fault as well, unless it is all that is wrong: then its error is raised as it is.
    """
    workloads: list[Workload] = []
    troubles: dict[Fault, CoterieError] = {}
    for one in written:
        try:
            if (found := _lowered(one, scene)) is not None:
                workloads.append(found)
        except SpecErrors as error:
            faults += error.faults
        except CoterieError as error:
            faults += one.faults
            troubles[pool_trouble(error, one.content)] = error
    if len(troubles) == 1 and not faults:
        raise next(iter(troubles.values()))
    faults += troubles
    return workloads


@contextmanager
def joined(faults: list[Fault], written: Sequence[Written]) -> Iterator[None]:
    """Let an error that comes before workloads can be lowered, for a pool that is not there, tell their faults, too."""
    try:
        yield
    except SpecErrors:
        raise
    except CoterieError as error:
        own = [*faults, *(fault for one in written for fault in one.faults)]
        if not own:
            raise
        if isinstance(error, UsageError) and any(overlaps(POOL, one.gone) for one in written):
            raise SpecErrors(by_file(own)) from None  # that no pool is named is but a consequence
        raise SpecErrors(by_file((*own, pool_trouble(error, written[0].content if written else None)))) from None


def _lowered(written: Written, scene: Scene) -> Workload | None:
    content = written.content
    if isinstance(content, Workflow):
        if scene.pool is None and overlaps(POOL, written.gone):
            raise SpecErrors(written.faults)  # which pool was meant, nobody can tell
    elif (name := named_topology(content)) in scene.wrong and name not in scene.known:
        if faults := (*written.faults, *independent(rule_faults(content), written.gone)):
            raise SpecErrors(by_file(faults))
        return None
    written = replace(written, templates=written.templates | scene.templates)
    return workload_for(written, scene.choose(written), scene.known, configured=scene.configured)


def pool_trouble(error: CoterieError, content: Content | None) -> Fault:
    """Return an error about a pool as one of several faults, at the line of a workflow that names the pool."""
    if isinstance(content, Workflow) and isinstance(error, UnknownPool) and error.written:
        return Fault(str(error), hint=error.hint, path=POOL, place=content.place(POOL))
    return Fault(str(error), hint=error.hint)
