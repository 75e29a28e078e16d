"""What a file holds, whichever kind it is: workflows, PodCliqueSets, graph deployments, and topologies beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from coterie.backends.kai import nvlink
from coterie.errors import Fault, Notice, Place, SpecErrors
from coterie.frontends.config import Pool
from coterie.frontends.dynamo.model import GraphDeployment
from coterie.frontends.dynamo.read import read_graph
from coterie.frontends.grove.podcliqueset.model import PodCliqueSet
from coterie.frontends.grove.podcliqueset.nvlink import enrolled
from coterie.frontends.grove.podcliqueset.read import read_podcliqueset
from coterie.frontends.grove.topology import KINDS as TOPOLOGY_KINDS
from coterie.frontends.grove.topology_set import Topologies, topologies_of
from coterie.frontends.kubernetes import is_kubernetes, read_resources
from coterie.frontends.workflow.lower import Lowered, lower
from coterie.frontends.workflow.read import Workflow, located, read_workflow
from coterie.planning.inputs import Chart
from coterie.planning.sets import PreparedSet, named_topology, prepare_graph, prepare_set
from coterie.planning.workload import Workload
from coterie.topology.levels import Topology

T = TypeVar("T")

WORKFLOW = "Workflow"
POD_CLIQUE_SET = "PodCliqueSet"
GRAPH = "DynamoGraphDeployment"


@dataclass(frozen=True, slots=True)
class Written:
    """One workload of a file, read and not yet judged against a pool; `pool` is the one it names, if it names one."""

    kind: str
    name: str
    content: Workflow | PodCliqueSet | GraphDeployment
    pool: str | None = None


@dataclass(frozen=True, slots=True)
class Documents:
    """All that a file holds."""

    workloads: tuple[Written, ...]
    topologies: Topologies = field(default_factory=Topologies)
    notices: tuple[Notice, ...] = ()


def read_documents(data: bytes, file: str, *, sets: Sequence[str] = (), set_strings: Sequence[str] = ()) -> Documents:
    """Read a file of any kind; raise `SpecErrors` with every fault of all its documents."""
    if not is_kubernetes(data):
        return documents_of(read_workflow(data, file, sets=sets, set_strings=set_strings))
    bundle = read_resources(data, file)
    if not bundle.resources:
        kinds = ", ".join(dict.fromkeys(other.kind for other in bundle.others)) or "an empty list"
        hint = (
            f"Workloads are workflows, {POD_CLIQUE_SET}s and {GRAPH}s. "
            "A snapshot of a cluster is passed with --cluster instead."
        )
        raise SpecErrors([Fault(f"there is no workload in it, only {kinds}", hint=hint, place=Place(file))])
    faults: list[Fault] = []
    topologies = _collect(faults, lambda: topologies_of(bundle.of(*TOPOLOGY_KINDS))) or Topologies()
    workloads: list[Written] = []
    for resource in bundle.of(POD_CLIQUE_SET, GRAPH):
        read: Callable[..., PodCliqueSet | GraphDeployment] = (
            read_podcliqueset if resource.kind == POD_CLIQUE_SET else read_graph
        )
        content = _collect(faults, lambda read=read, resource=resource: read(resource))  # type: ignore[misc]
        if content is not None:
            workloads.append(Written(resource.kind, resource.name, content))
    if faults:
        raise SpecErrors(faults)
    return Documents(tuple(workloads), topologies, (*bundle.notices, *topologies.notices))


def documents_of(workflow: Workflow) -> Documents:
    """Return a workflow as the only document of its file."""
    return Documents((Written(WORKFLOW, workflow.name, workflow, workflow.pool),))


def levels_for(
    written: Written, levels: Topology | Chart | None, known: Mapping[str, Topology]
) -> Topology | Chart | None:
    """Return the levels of a call as they concern a workload: one that names a known topology needs none chosen."""
    content = written.content
    if isinstance(content, Workflow) or not isinstance(levels, Chart) or len(levels.topologies.found) < 2:
        return levels
    return None if named_topology(content) in known else levels


def prepare(written: Written, pool: Pool, known: Mapping[str, Topology], *, configured: bool) -> PreparedSet:
    """Check and lower a PodCliqueSet or a graph deployment; raise `SpecErrors` with every fault."""
    if isinstance(written.content, PodCliqueSet):
        return prepare_set(written.content, pool, known, configured=configured)
    if isinstance(written.content, GraphDeployment):
        return prepare_graph(written.content, pool, known, configured=configured)
    raise TypeError(written.kind)


def workload_of(workflow: Workflow, lowered: Lowered, pool: Pool) -> Workload:
    """Return a workflow as it was lowered for a pool; raise `SpecErrors` for a wish that the pool does not grant."""
    if faults := nvlink.label_faults(workflow, nvlink=pool.nvlink, pool=pool.name):
        raise SpecErrors(located(faults, workflow.document))
    return Workload(
        workflow.name,
        WORKFLOW,
        pool,
        lowered.gangs,
        lowered.needs,
        lowered.notices,
        nvlink=workflow.spec.labels.get(nvlink.LABEL),
        namespace=pool.namespace,
    )


def workload_for(written: Written, pool: Pool, known: Mapping[str, Topology], *, configured: bool) -> Workload:
    """Lower a workload of any kind for a pool; raise `SpecErrors` with every fault."""
    if isinstance(written.content, Workflow):
        return workload_of(written.content, lower(written.content, pool), pool)
    prepared = prepare(written, pool, known, configured=configured)
    gangs, links = prepared.lowered.gangs, enrolled(prepared.pcs)
    seats = ((task.clique, prepared.lowered.seats[task.name]) for gang in gangs for task in gang.all_tasks())
    claiming = {clique: seat.clique.name for clique, seat in seats if seat.clique.name in links}
    own = written.content.resource.namespace if written.content.resource else ""
    return Workload(
        written.name,
        written.kind,
        prepared.pool,
        gangs,
        notices=prepared.notices,
        claiming=claiming,
        namespace=own or pool.namespace,
        set_name=prepared.pcs.name,
    )


def _collect(faults: list[Fault], read: Callable[[], T]) -> T | None:
    try:
        return read()
    except SpecErrors as error:
        faults.extend(error.faults)
        return None
