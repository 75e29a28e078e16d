"""PodCliqueSets and graph deployments, checked and compiled for a pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from coterie.backends.base import registry
from coterie.config.configuration import Pool
from coterie.errors import Fault, Notice, SpecErrors
from coterie.frontends.admission import assumed_fault
from coterie.frontends.dynamo.lower import lower_graph
from coterie.frontends.dynamo.model import GraphDeployment
from coterie.frontends.dynamo.rules import admission as graph_rules
from coterie.frontends.grove.podcliqueset.lower import LoweredSet, lower
from coterie.frontends.grove.podcliqueset.model import PodCliqueSet
from coterie.frontends.grove.podcliqueset.pod_labels import SetTraits, set_traits
from coterie.frontends.grove.podcliqueset.pod_shapes import placeable
from coterie.frontends.grove.podcliqueset.queue import scheduler_of
from coterie.frontends.grove.podcliqueset.read import read_podcliqueset
from coterie.frontends.grove.podcliqueset.rules import admission as set_rules
from coterie.frontends.kubernetes.objects import DEFAULT_NAMESPACE
from coterie.topology.devices import NO_TEMPLATES, ClaimTemplates
from coterie.topology.levels import Topology

Known = Mapping[str, Topology]


@dataclass(frozen=True, slots=True)
class PreparedSet:
    """A valid set as gangs, with the pool under the topology that the set names."""

    pcs: PodCliqueSet
    lowered: LoweredSet
    pool: Pool
    topology_name: str
    notices: tuple[Notice, ...]
    traits: SetTraits = field(default_factory=SetTraits)


def prepare_set(
    pcs: PodCliqueSet, pool: Pool, known: Known, *, configured: bool, templates: ClaimTemplates = NO_TEMPLATES
) -> PreparedSet:
    """Return a set compiled to gangs; raise `SpecErrors` with every fault.

    A set names its topology itself; an unknown one is replaced by the pool's levels. Unless the pool was `configured`,
    its scheduler is the one that the set's pods name. `templates` are the devices of claim templates.
    """
    meant = _meant(named_topology(pcs), known, pool)
    prepared = _prepared(pcs, pool, meant, templates, configured=configured)
    return replace(prepared, notices=(*meant.notices, *prepared.notices))


def prepare_graph(
    graph: GraphDeployment, pool: Pool, known: Known, *, configured: bool, templates: ClaimTemplates = NO_TEMPLATES
) -> PreparedSet:
    """Return a graph deployment compiled through its PodCliqueSet; faults point into the user's own file."""
    meant = _meant(named_topology(graph), known, pool)
    if faults := meant.faults(lambda topologies: graph_rules.create_faults(graph, topologies)):
        raise SpecErrors(faults)
    lowered = lower_graph(graph)
    try:
        pcs = read_podcliqueset(lowered.resource)
        # Fragments of Grove's API in the graph may name a topology where the graph itself names none.
        meant = meant if meant.stands_in else _meant(named_topology(pcs), known, pool)
        prepared = _prepared(pcs, pool, meant, templates, configured=configured)
    except SpecErrors as error:
        raise SpecErrors([lowered.blamed(fault) for fault in error.faults]) from None
    located = (lowered.noted(notice) if notice.path else notice for notice in prepared.notices)
    refusals = {term: lowered.blamed(fault) for term, fault in prepared.traits.refusals.items()}
    return replace(
        prepared,
        notices=(*meant.notices, *graph_rules.warnings(graph, meant.known), *located),
        traits=replace(prepared.traits, refusals=refusals),
    )


def rule_faults(content: PodCliqueSet | GraphDeployment) -> list[Fault]:
    """Return the faults of a workload whose topology is not known."""
    if isinstance(content, GraphDeployment):
        return graph_rules.create_faults(content, None)
    return [*set_rules.create_faults(content, None), *placeable(content).faults]


@dataclass(frozen=True, slots=True)
class _Meant:
    """The topology that a workload names, and the known ones; with `stands_in`, it has the levels of the call."""

    name: str
    known: Known
    stands_in: bool = False

    @property
    def notices(self) -> tuple[Notice, ...]:
        if not self.stands_in:
            return ()
        levels = ", ".join(self.known[self.name].names)
        message = f'the ClusterTopology "{self.name}" was not given; the levels of this call are used instead: {levels}'
        return (Notice("TopologyAssumed", message),)

    def faults(self, judge: Callable[[Known | None], list[Fault]]) -> list[Fault]:
        """Return the findings of a judge; one that depends on the levels also names their origin."""
        found = judge(self.known)
        if not found or not self.stands_in:
            return found
        others = judge(None)
        why = f'The ClusterTopology "{self.name}" was not given; the levels of this call are used instead.'
        return [
            fault
            if fault in others
            else assumed_fault(replace(fault, hint=f"{fault.hint} {why}".lstrip()), [self.name])
            for fault in found
        ]


def _meant(name: str, known: Known, pool: Pool) -> _Meant:
    if not name or known or not pool.topology.levels:
        return _Meant(name, known)
    return _Meant(name, {name: pool.topology}, stands_in=True)


def _prepared(
    pcs: PodCliqueSet, pool: Pool, meant: _Meant, templates: ClaimTemplates, *, configured: bool
) -> PreparedSet:
    reading = placeable(pcs, templates)
    faults = [*meant.faults(lambda topologies: set_rules.create_faults(pcs, topologies)), *reading.faults]
    if faults:
        raise SpecErrors(faults)
    name, known = named_topology(pcs), meant.known
    if name:
        stands_in = meant.stands_in
        pool = replace(
            pool,
            topology=known[name],
            topology_name=name,
            kai_topology=pool.kai_topology if stands_in else "",
            guessed=pool.guessed and stands_in,
        )
    if not configured and (scheduler := registry.for_pods(scheduler_of(pcs, set_rules.DEFAULTS))):
        pool = replace(pool, scheduler=scheduler)
    shapes = {clique: pool.admitted(shape) for clique, shape in reading.shapes.items()}
    lowered = lower(pcs, shapes, pool.topology)
    space = (pcs.resource.namespace if pcs.resource else "") or pool.namespace or DEFAULT_NAMESPACE
    traits, unanswered = set_traits(pcs, lowered, reading.neighbours, space)
    if unanswered:
        raise SpecErrors(set_rules.located(pcs, unanswered))
    refusals = {term: set_rules.located(pcs, [fault])[0] for term, fault in traits.refusals.items()}
    traits = replace(traits, refusals=refusals)
    notices = (*set_rules.warnings(pcs, known), *reading.notices, *lowered.notices)
    return PreparedSet(pcs, lowered, pool, name, notices, traits)


def named_topology(content: PodCliqueSet | GraphDeployment) -> str:
    """Return the topology that a workload names, empty for none; the rules ensure that there is only one."""
    if isinstance(content, GraphDeployment):
        return content.constraint.topology if content.constraint else ""
    owners = (None, *content.groups, *content.cliques)
    return next((found.topology for owner in owners if (found := content.effective(owner)) and found.topology), "")
