"""Admission of one object, on create and on update, for every kind that a file can hold.

No cluster is queried. An object that is admitted but cannot be planned, or is affected by a change of a topology, gets
a warning: the API accepts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from coterie.document.schema import in_order
from coterie.errors import Fault, Notice, SpecErrors, Unavailable
from coterie.frontends.allowed_domains import domain_faults, graph_domains, set_domains
from coterie.frontends.dynamo.lower import LoweredGraph, lower_graph
from coterie.frontends.dynamo.model import GraphDeployment
from coterie.frontends.dynamo.read import read_graph
from coterie.frontends.dynamo.rules import admission as graph_rules
from coterie.frontends.dynamo.rules.topology import live_faults
from coterie.frontends.dynamo.settings import DynamoSettings
from coterie.frontends.grove.availability import levels_unavailable
from coterie.frontends.grove.podcliqueset.model import PodCliqueSet
from coterie.frontends.grove.podcliqueset.pod_shapes import placeable
from coterie.frontends.grove.podcliqueset.read import read_podcliqueset
from coterie.frontends.grove.podcliqueset.rules import admission as set_rules
from coterie.frontends.grove.podcliqueset.rules.constraints import meaning_faults
from coterie.frontends.grove.podcliqueset.settings import Form, GroveSettings
from coterie.frontends.grove.topology import (
    DEFAULT_SCHEDULER,
    KAI,
    KINDS,
    SCHEDULERS,
    read_cluster_topology,
    update_notices,
)
from coterie.frontends.kubernetes.objects import Resource
from coterie.topology.levels import Topology

Known = Mapping[str, Topology] | None
T = TypeVar("T")

# Without a known topology, the rules of a graph and those of its set both report this; one report is enough.
_NOT_CHECKED = "TopologyNotChecked"


@dataclass(frozen=True, slots=True)
class TargetCluster:
    """The configuration of the cluster that the objects are intended for.

    `strict` refuses what today's operators refuse, where Coterie itself only warns. `off` are features that the cluster
    does not have: `topology` (topology-aware scheduling), `mnnvl` (multi-node NVLink), `grove`, `kai`. `domains` are
    the only names that levels may have there; empty for any name.
    """

    strict: bool = False
    off: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()

    @property
    def schedulers(self) -> frozenset[str]:
        """The enabled schedulers."""
        return SCHEDULERS - {KAI} if "kai" in self.off else SCHEDULERS

    @property
    def sets(self) -> GroveSettings:
        """The settings of the rules for PodCliqueSets."""
        return GroveSettings(
            form=Form.GROVE_HEAD if self.strict else Form.EITHER,
            topology_aware_scheduling="topology" not in self.off,
            auto_mnnvl="mnnvl" not in self.off,
            default_scheduler=DEFAULT_SCHEDULER if "kai" in self.off else KAI,
            enabled_schedulers=self.schedulers,
        )

    @property
    def graphs(self) -> DynamoSettings:
        """The settings of the rules for graph deployments."""
        return DynamoSettings(grove="grove" not in self.off, kai="kai" not in self.off, strict=self.strict)


@dataclass(frozen=True, slots=True)
class KnownTopologies:
    """The known topologies: those found, the invalid ones, and levels that may stand for any topology.

    `told` means that the list is complete, so that a name outside it does not exist.
    """

    found: Mapping[str, Topology] = field(default_factory=dict)
    wrong: frozenset[str] = frozenset()
    told: bool = False
    stand_in: Topology = field(default_factory=Topology)

    def of(self, names: set[str]) -> tuple[Known, tuple[Notice, ...]]:
        """Return the topologies for judging an object that names some of them; None where they are not known."""
        if lost := sorted(names & self.wrong - self.found.keys()):
            message = f'the ClusterTopology "{lost[0]}" is itself invalid, so nothing was checked against it'
            return None, (Notice("TopologyWrong", message),)
        if self.told:
            return self.found, ()
        if not names or not self.stand_in.levels:
            return None, ()
        levels = ", ".join(self.stand_in.names)
        message = f"no ClusterTopology was given; the levels of this call are used instead: {levels}"
        return dict.fromkeys(names, self.stand_in), (Notice("TopologyAssumed", message),)


@dataclass(frozen=True, slots=True)
class ObjectVerdict:
    """The verdict of the rules on one object."""

    faults: tuple[Fault, ...] = ()
    notices: tuple[Notice, ...] = ()


def judge_topology(new: Resource, old: Resource | None, site: TargetCluster) -> ObjectVerdict:
    """Judge a ClusterTopology or ClusterTopologyBinding; an update is judged like a creation, with notices."""
    topology = read_cluster_topology(new, site.schedulers)
    notices = topology.notices
    if site.strict and new.kind == KINDS[0]:
        message = f"Grove v0.1.0-alpha.9 renamed {KINDS[0]} to {KINDS[1]}, and no longer serves the older kind"
        notices = (*notices, Notice("KindRenamed", message, new.document.place(("kind",)), ("kind",)))
    before, unread = _before(lambda resource: read_cluster_topology(resource, None), new, old)
    lost = update_notices(before, topology) if before else ()
    known = {level.name for level in before.levels} if before else set()
    named = ((level.name, ("spec", "levels", index, "domain")) for index, level in enumerate(topology.levels))
    refused = domain_faults(((name, path) for name, path in named if name not in known), site.domains)
    return ObjectVerdict(tuple(new.located(refused)), (*notices, *unread, *lost))


def judge_set(new: Resource, old: Resource | None, knowledge: KnownTopologies, site: TargetCluster) -> ObjectVerdict:
    """Judge a PodCliqueSet: a new one, or an update of an old one."""
    pcs = read_podcliqueset(new)
    before, unread = _before(read_podcliqueset, new, old)
    known, assumed = knowledge.of(_named(pcs))
    said = _set(pcs, before, known, site)
    refused = () if before else new.located(domain_faults(set_domains(pcs), site.domains))
    found = [assumed_fault(fault, _named(pcs)) for fault in said.faults] if assumed else said.faults
    faults = _with_domains(found, refused)
    return ObjectVerdict(faults, _placed(new, (*unread, *assumed, *_once(said.notices, assumed))))


def judge_graph(new: Resource, old: Resource | None, knowledge: KnownTopologies, site: TargetCluster) -> ObjectVerdict:
    """Judge a graph deployment by Dynamo's rules, and if those hold, its PodCliqueSet by Grove's."""
    graph = read_graph(new)
    before, unread = _before(read_graph, new, old)
    names = {each.topology for each in (graph.constraint, graph.policy) if each is not None and each.topology}
    known, assumed = knowledge.of(names)
    faults: Sequence[Fault]
    if before is None:
        refused = list(domain_faults(graph_domains(graph), site.domains, graph.fault))
        faults = _with_domains(graph_rules.create_faults(graph, known, site.graphs), refused)
        lost: Iterable[Fault] = ()
    else:
        faults = graph_rules.update_faults(before, graph, known, site.graphs)
        lost = () if faults else live_faults(graph, known, site.graphs)
    notices = (*unread, *assumed, *graph_rules.warnings(graph, known, site.graphs), *map(_lost, lost))
    if faults:
        found = [assumed_fault(fault, names) for fault in faults] if assumed else faults
        return ObjectVerdict(tuple(found), _placed(new, _once(notices, assumed)))
    below = _behind(graph, before, knowledge, site)
    return ObjectVerdict(below.faults, _placed(new, _once((*notices, *below.notices), assumed)))


def assumed_fault(fault: Fault, names: Iterable[str]) -> Fault:
    """Return a fault by levels that stand in for one of these topologies, of which nothing else is known."""
    for name in names:
        before, found, rest = fault.message.partition(f'ClusterTopology "{name}" has no ')
        if found and before in {"", "the "}:
            message = f'the ClusterTopology "{name}" was not given, and the levels used instead have no {rest}'
            return replace(fault, message=message)
    return fault


def _with_domains(faults: Sequence[Fault], refused: Sequence[Fault]) -> tuple[Fault, ...]:
    """Return faults together with those of domains that the cluster does not allow; one is enough for each field."""
    places = {fault.path for fault in refused}
    return tuple(sorted((*(each for each in faults if each.path not in places), *refused), key=in_order))


def _set(pcs: PodCliqueSet, before: PodCliqueSet | None, known: Known, site: TargetCluster) -> ObjectVerdict:
    settings = site.sets
    lost: Iterable[Fault] = ()
    if before is None:
        faults = set_rules.create_faults(pcs, known, settings)
    else:
        faults = set_rules.update_faults(before, pcs, known, settings)
        if not faults and known is not None and settings.topology_aware_scheduling:
            lost = set_rules.located(pcs, meaning_faults(pcs, known))
    told = _condition(pcs, known, settings) if lost else ""
    notices = [*set_rules.warnings(pcs, known, settings, before), *(_lost(fault, told) for fault in lost)]
    if not faults:
        notices += map(_unplannable, placeable(pcs).faults)
    return ObjectVerdict(tuple(faults), tuple(notices))


def _behind(
    graph: GraphDeployment, before: GraphDeployment | None, knowledge: KnownTopologies, site: TargetCluster
) -> ObjectVerdict:
    """Judge the PodCliqueSet of a graph; all findings point into the user's file."""
    if before is not None:
        graph, before = _running(graph, before)
        if not graph.components:
            return ObjectVerdict()
    try:
        lowered = lower_graph(graph, site.graphs)
        former = lower_graph(before, site.graphs) if before else None
    except SpecErrors as error:
        return ObjectVerdict((), tuple(map(_unplannable, error.faults)))
    try:
        pcs = _generated(lowered)
        known, _ = knowledge.of(_named(pcs))
        said = _set(pcs, _generated(former) if former else None, known, site)
    except SpecErrors as error:
        said = ObjectVerdict(error.faults)
    faults = sorted((_of_grove(lowered.blamed(fault)) for fault in said.faults), key=in_order)
    return ObjectVerdict(tuple(faults), tuple(map(lowered.noted, said.notices)))


def _of_grove(fault: Fault) -> Fault:
    return replace(fault, hint=f"{fault.hint} The rule is Grove's, for the PodCliqueSet behind the graph.".lstrip())


def _running(new: GraphDeployment, old: GraphDeployment) -> tuple[GraphDeployment, GraphDeployment]:
    """Return both graphs without the components that have no replicas in either: their cliques may change freely."""
    zero = {each.name for graph in (new, old) for each in graph.components if not each.replicas}
    kept = (tuple(each for each in graph.components if each.name not in zero) for graph in (new, old))
    return replace(new, components=next(kept)), replace(old, components=next(kept))


def _generated(lowered: LoweredGraph) -> PodCliqueSet:
    return read_podcliqueset(lowered.resource)


def _before(read: Callable[[Resource], T], new: Resource, old: Resource | None) -> tuple[T | None, tuple[Notice, ...]]:
    """Return the old form of an object; an unreadable one was never admitted, so the new form counts as new."""
    if old is None:
        return None, ()
    try:
        return read(old), ()
    except SpecErrors as error:
        file = old.document.page.file
        message = f"the old form in {file} cannot be read, so this is judged as a new object: {error.faults[0].message}"
        path = ("metadata", "name")
        return None, (Notice("OldNotRead", message, new.document.place(path), path),)


def _named(pcs: PodCliqueSet) -> set[str]:
    return {each.topology for each in pcs.constraints() if each.topology}


def _once(notices: Iterable[Notice], assumed: tuple[Notice, ...]) -> tuple[Notice, ...]:
    """Return the notices with a single one about unchecked topologies, the clearer one where there are two."""
    kept: list[Notice] = []
    told = any(each.code == "TopologyWrong" for each in assumed)
    for each in notices:
        if each.code != _NOT_CHECKED:
            kept.append(each)
        elif not told:
            kept.append(each)
            told = True
    return tuple(dict.fromkeys(kept))


def _placed(resource: Resource, notices: Iterable[Notice]) -> tuple[Notice, ...]:
    return tuple(each if each.place else each.at(resource.document.place(each.path)) for each in notices)


def _condition(pcs: PodCliqueSet, known: Known, settings: GroveSettings) -> str:
    """Return the reason of Grove's condition of a set, in brackets; empty where nothing is wrong."""
    try:
        found = levels_unavailable(pcs, known or {}, settings)
    except Unavailable:
        return ""
    return f" ({found.reason})" if found and found.status != "False" else ""


def _lost(fault: Fault, told: str = "") -> Notice:
    """Return, as a notice of an update, a fault of a new object: the object stays, but the constraint no longer holds.

    `told` is the result of `_condition`.
    """
    message = f"the update is admitted, but the constraint no longer holds{told}: {fault.message}"
    return Notice("TopologyLevelsUnavailable", message, fault.place, fault.path)


def _unplannable(fault: Fault) -> Notice:
    return Notice("NotPlanned", f"admitted, but Coterie cannot plan it: {fault.message}", fault.place, fault.path)


def judged(judge: Callable[[], ObjectVerdict]) -> ObjectVerdict:
    """Return the verdict of a judge; faults that prevent the reading of an object are the whole verdict."""
    try:
        return judge()
    except SpecErrors as error:
        return ObjectVerdict(error.faults)


def removed(old: Resource) -> Notice:
    """Return the notice that an object of the old files is gone."""
    path = ("metadata", "name")
    return Notice("Removed", f"{old} is in the old files only: it would be deleted", old.document.place(path), path)
