"""PodCliqueSets and graph deployments, checked and lowered for a pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from coterie.errors import Fault, Notice, SpecErrors
from coterie.frontends.config import Pool
from coterie.frontends.dynamo import rules as graph_rules
from coterie.frontends.dynamo.lower import lower_graph
from coterie.frontends.dynamo.model import GraphDeployment
from coterie.frontends.grove.podcliqueset import rules as set_rules
from coterie.frontends.grove.podcliqueset.lower import Lowered, lower
from coterie.frontends.grove.podcliqueset.model import PodCliqueSet
from coterie.frontends.grove.podcliqueset.placeable import placeable
from coterie.frontends.grove.podcliqueset.queue import scheduler_of
from coterie.frontends.grove.podcliqueset.read import read_podcliqueset
from coterie.frontends.grove.podcliqueset.settings import KAI
from coterie.frontends.kubernetes import resource_of
from coterie.gang.tree import Shape
from coterie.topology.levels import Topology

Known = Mapping[str, Topology]


@dataclass(frozen=True, slots=True)
class PreparedSet:
    """A set that keeps every rule, as gangs, with the pool as it is seen through the topology that the set names."""

    pcs: PodCliqueSet
    lowered: Lowered
    pool: Pool
    topology_name: str
    notices: tuple[Notice, ...]


def prepare_set(pcs: PodCliqueSet, pool: Pool, known: Known, *, configured: bool) -> PreparedSet:
    """Check a set and lower it, or raise `SpecErrors` with every fault.

    A set says itself which topology it means; where nobody knows that one, the pool's levels stand in for it. Unless
    the pool was `configured`, it is one of the scheduler that the set's pods name.
    """
    name = named_topology(pcs)
    known, assumed = _resolved(name, known, pool)
    reading = placeable(pcs)
    faults = [*set_rules.create_faults(pcs, known), *reading.faults]
    if faults:
        raise SpecErrors(faults)
    if name:
        pool = replace(pool, topology=known[name], topology_name=name)
    if not configured and scheduler_of(pcs, set_rules.DEFAULTS) == KAI:
        pool = replace(pool, scheduler="kai")
    shapes = {clique: _in_pool(shape, pool) for clique, shape in reading.shapes.items()}
    lowered = lower(pcs, shapes, pool.topology)
    notices = (*assumed, *set_rules.warnings(pcs, known), *reading.notices, *lowered.notices)
    return PreparedSet(pcs, lowered, pool, name, notices)


def prepare_graph(graph: GraphDeployment, pool: Pool, known: Known, *, configured: bool) -> PreparedSet:
    """Check a graph deployment and lower it through its PodCliqueSet; faults point into the user's own file."""
    name = named_topology(graph)
    known, assumed = _resolved(name, known, pool)
    if faults := graph_rules.create_faults(graph, known):
        raise SpecErrors(faults)
    lowered = lower_graph(graph)
    file = graph.resource.document.place(()).file
    prepared = _blaming(
        lowered.blamed,
        lambda: prepare_set(read_podcliqueset(resource_of(lowered.manifest, file)), pool, known, configured=configured),
    )
    notices = tuple(_in_file(notice, lowered.written, graph) for notice in prepared.notices)
    return replace(prepared, notices=(*assumed, *graph_rules.warnings(graph, known), *notices))


def _blaming(blamed: Callable[[Fault], Fault], prepare: Callable[[], PreparedSet]) -> PreparedSet:
    try:
        return prepare()
    except SpecErrors as error:
        raise SpecErrors([blamed(fault) for fault in error.faults]) from None


def _in_file(
    notice: Notice, written: Callable[[tuple[str | int, ...]], tuple[str | int, ...]], graph: GraphDeployment
) -> Notice:
    """Return a notice about the generated set where its cause stands."""
    return notice.at(graph.resource.document.place(written(notice.path))) if notice.path else notice


def named_topology(content: PodCliqueSet | GraphDeployment) -> str:
    """Return the topology that a workload names, empty for none; the rules see to it that there is just one."""
    if isinstance(content, GraphDeployment):
        return content.constraint.topology if content.constraint else ""
    owners = (None, *content.groups, *content.cliques)
    return next((found.topology for owner in owners if (found := content.effective(owner)) and found.topology), "")


def _resolved(name: str, known: Known, pool: Pool) -> tuple[Known, tuple[Notice, ...]]:
    if not name or known or not pool.topology.levels:
        return known, ()
    levels = ", ".join(pool.topology.names)
    message = f'the ClusterTopology "{name}" was not given; the levels of the call are taken for it: {levels}'
    return {**known, name: pool.topology}, (Notice("TopologyAssumed", message),)


def _in_pool(shape: Shape, pool: Pool) -> Shape:
    """Return a shape that keeps to the nodes of a pool."""
    if not pool.node_selector and not pool.tolerations:
        return shape
    selector = {**dict(pool.node_selector), **dict(shape.selector)}
    tolerations = tuple(dict.fromkeys((*pool.tolerations, *shape.tolerations)))
    return replace(shape, selector=tuple(sorted(selector.items())), tolerations=tolerations)
