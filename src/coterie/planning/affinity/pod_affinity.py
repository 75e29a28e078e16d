"""Inter-pod affinity expressed as resources of nodes, which the engine counts and so keeps pods apart.

Each cause is a separate row, with amounts that express its meaning:

| cause | amount on a node | amount taken |
|---|---|---|
| a host port | 1 | 1 by each task that listens on it |
| anti-affinity among the tasks, by node | one for each task that shares it with its like, or 1 | all by the others |
| anti-affinity or a port, against a running pod | one for each task it concerns | all by that pod, in its domain |
| affinity to running pods | one for each task with the term, in their domains only | 1 by each task |

Affinity among the tasks themselves is equivalent to a required group, and becomes one. Two kinds of tasks of which
several of one kind may share a node, but not with the other kind, are refused.

For anti-affinity among the tasks over domains of several nodes there is no amount per node. It is solved twice: by
node, which is a relaxation, so that its refusal is a proof; and, where that answer breaks the rule, with one candidate
node of each domain, which is a restriction, so that its placement is valid. Cases that neither decides are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from coterie.errors import Fault, Notice, SpecErrors
from coterie.gang.binding import bound
from coterie.gang.tree import Gang
from coterie.planning.affinity.pods import AffinityPods, PlacedTask
from coterie.planning.affinity.separation_rows import Neighbour, SeparationRow, with_capacity, with_requests
from coterie.planning.workload import Workload
from coterie.topology.cluster import Bools, Cluster, Ints
from coterie.topology.pod_affinity import APART, HOST_PORT, NEAR, AffinityTerm, HostPort

# More causes than this make a plan slow and need another tool.
_MOST_ROWS = 200


@dataclass(frozen=True, slots=True)
class AntiAffinityGroup:
    """Tasks that hold a term, and those it matches, which may share no domain of several nodes."""

    refusal: Fault
    holders: frozenset[str]
    matched: frozenset[str]
    domains: Ints

    def broken(self, nodes: Mapping[str, int]) -> bool:
        """Return whether a placement, given as the nodes of tasks, has two of them in one domain."""
        inside: dict[int, tuple[set[str], set[str]]] = {}
        for task, node in nodes.items():
            if (domain := int(self.domains[node])) >= 0:
                holders, matched = inside.setdefault(domain, (set(), set()))
                holders.update({task} & self.holders)
                matched.update({task} & self.matched)
        return any(holders and matched and len(holders | matched) > 1 for holders, matched in inside.values())

    def crowded(self, tasks: frozenset[str]) -> bool:
        """Return whether some tasks outnumber the domains, in any placement."""
        every = bool((self.domains >= 0).all())
        return every and len(tasks & self.holders & self.matched) > len(np.unique(self.domains))


@dataclass(frozen=True, slots=True)
class Separated:
    """A workload and a cluster with inter-pod affinity expressed as resources and groups.

    The `spread` of tasks over domains of several nodes is not included; the planner checks the placement against it.
    """

    workload: Workload
    cluster: Cluster
    spread: tuple[AntiAffinityGroup, ...] = ()


def with_pod_affinity(
    workload: Workload, cluster: Cluster, placed: Sequence[PlacedTask] = (), *, room: Ints | None = None
) -> Separated:
    """Return a workload and a cluster for the engine; raise `SpecErrors` for terms that cannot be honoured.

    `placed` are tasks of workloads that were planned before. With `room`, tasks that are spread over domains of several
    nodes keep one node of each domain, the one with the most room.
    """
    if not workload.traits:
        return Separated(workload, cluster)
    pods = AffinityPods(workload, cluster, placed)
    if not pods.concerned:
        return Separated(workload, cluster)
    question = _Separation(workload, pods, room)
    rows = list(question.rows())
    gangs = question.gangs()
    if question.faults:
        raise SpecErrors(list(dict.fromkeys(question.faults)))
    notices = (*workload.notices, *question.notices)
    changed = replace(workload, gangs=with_requests(gangs, rows), notices=notices)
    return Separated(changed, with_capacity(cluster, rows), tuple(question.spread))


@dataclass(eq=False)
class _Separation:
    """The pods of one workload in relation to each other, and to the running ones."""

    workload: Workload
    pods: AffinityPods
    room: Ints | None = None
    spread: list[AntiAffinityGroup] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)

    def rows(self) -> Iterator[SeparationRow]:
        """Yield every relevant cause."""
        found = [*self._ports(), *self._terms(), *self._against_running(), *self._near_running()]
        if len(found) > _MOST_ROWS:
            self.faults += list(self.workload.refusals.values())[:1]
        yield from found

    def gangs(self) -> tuple[Gang, ...]:
        """Return the gangs with a required group for each affinity term among their own tasks."""
        gangs = self.workload.gangs
        for term in self.pods.held_terms("near"):
            own = self.pods.matched(term)
            if own:
                gangs = self._bound(gangs, term, own)
        return gangs

    # Tasks in relation to each other

    def _ports(self) -> Iterator[SeparationRow]:
        """Yield a row per host port that several tasks need; one for all addresses takes that port of each address."""
        wanted = dict.fromkeys(port for traits in self.pods.kinds for port in sorted(traits.ports, key=str))
        for port in wanted:
            takers = self.pods.of(each for each in self.pods.kinds if any(_takes(other, port) for other in each.ports))
            if len(takers) > 1:
                yield SeparationRow(f"{HOST_PORT}{port}", self.pods.full(1), dict.fromkeys(takers, 1))

    def _terms(self) -> Iterator[SeparationRow]:
        for number, term in enumerate(self.pods.held_terms("apart")):
            holders, matched = self.pods.holders(term), self.pods.matched(term)
            if len(holders | matched) < 2 or not holders or not matched:
                continue
            domains = self.pods.domains(term.key)
            if (domains < 0).all():
                self._without_label(term)
            elif (sides := self._sides(holders, matched)) is None:
                self._refuse(term)
            else:
                alone, others = sides
                most = max(1, len(others))
                offered = self.pods.full(most)
                if not self.pods.single(term.key):
                    self.spread.append(AntiAffinityGroup(self.workload.refusals[term], holders, matched, domains))
                    if self.room is not None:
                        offered = np.where(_roomiest(domains, self.room), most, 0)
                offered[domains < 0] = most * len(alone) + len(others)  # a node in no domain separates no pods
                yield SeparationRow(
                    f"{APART}{number}", offered, {**dict.fromkeys(others, 1), **dict.fromkeys(alone, most)}
                )

    def _sides(self, holders: frozenset[str], matched: frozenset[str]) -> tuple[frozenset[str], frozenset[str]] | None:
        """Return the tasks that share a node with none of these, and the others, which share it with each other."""
        both = holders & matched
        for side, other in ((matched - holders, holders - matched), (holders - matched, matched - holders)):
            if not side:
                return both, other
            if not other:
                return both, side
            if self._exclusive(side):
                return both | side, other
        return None

    def _exclusive(self, tasks: frozenset[str]) -> bool:
        """Return whether no two of some tasks share a node anyway."""
        if len(tasks) < 2:
            return True
        return any(
            self.pods.single(term.key)
            and (self.pods.domains(term.key) >= 0).all()
            and tasks <= self.pods.holders(term) & self.pods.matched(term)
            for term in self.pods.held_terms("apart")
        )

    # Tasks in relation to running pods

    def _against_running(self) -> Iterator[SeparationRow]:
        for number, term in enumerate(self.pods.held_terms("apart")):
            blocking = [
                (each, self.pods.around(term.key, each.node)) for each in self.pods.running if term.matches(each.traits)
            ]
            yield from self._blocked(f"{APART}own/{number}", self.pods.holders(term), blocking)
        theirs: dict[AffinityTerm, list[Neighbour]] = {}
        for each in self.pods.running:
            for term in each.traits.apart:
                theirs.setdefault(term, []).append(each)
        for number, (term, pods) in enumerate(theirs.items()):
            blocking = [(each, self.pods.around(term.key, each.node)) for each in pods]
            yield from self._blocked(f"{APART}theirs/{number}", self.pods.matched(term), blocking)
        for port in dict.fromkeys(port for traits in self.pods.kinds for port in sorted(traits.ports, key=str)):
            pods = [each for each in self.pods.running if any(map(port.clashes, each.traits.ports))]
            takers = self.pods.of(traits for traits in self.pods.kinds if port in traits.ports)
            yield from self._blocked(
                f"{HOST_PORT}{port}/taken", takers, [(each, np.array([each.node])) for each in pods]
            )

    def _blocked(
        self, name: str, tasks: frozenset[str], blocking: Sequence[tuple[Neighbour, Ints]]
    ) -> Iterator[SeparationRow]:
        if tasks and any(len(nodes) for _, nodes in blocking):
            yield SeparationRow(name, self.pods.full(len(tasks)), dict.fromkeys(tasks, 1), blocking)

    def _near_running(self) -> Iterator[SeparationRow]:
        for number, term in enumerate(self.pods.held_terms("near")):
            pods = [each for each in self.pods.running if term.matches(each.traits)]
            if self.pods.matched(term):
                if pods:
                    self._refuse(term)
                continue
            if not pods:
                self._refuse(term)
                continue
            holders, offered = self.pods.holders(term, "near"), self.pods.full(0)
            for each in pods:
                offered[self.pods.around(term.key, each.node)] = len(holders)
            yield SeparationRow(f"{NEAR}{number}", offered, dict.fromkeys(holders, 1))

    # Tasks that must be together

    def _bound(self, gangs: tuple[Gang, ...], term: AffinityTerm, own: frozenset[str]) -> tuple[Gang, ...]:
        topology = self.workload.pool.topology
        level = next((level.name for level in topology.levels if level.label == term.key), None)
        concerned = [gang for gang in gangs if any(task.name in own for task in gang.all_tasks())]
        followers = all(gang.follows == concerned[0].name for gang in concerned[1:])
        if level is None or own != self.pods.holders(term, "near") or not followers:
            self._refuse(term)
            return gangs
        found = bound(concerned, own, level, topology)
        if found is None:
            self._refuse(term)
            return gangs
        changed = {gang.name: gang for gang in found}
        return tuple(changed.get(gang.name, gang) for gang in gangs)

    def _refuse(self, term: AffinityTerm) -> None:
        self.faults.append(self.workload.refusals[term])

    def _without_label(self, term: AffinityTerm) -> None:
        message = f"no node has the label {term.key}, so pod anti-affinity over it keeps no pods apart"
        place = self.workload.refusals[term].place
        self.notices.append(Notice("AffinityWithoutLabel", message, place))


def _roomiest(domains: Ints, room: Ints) -> Bools:
    """Return a mask of the node with the most room in each domain."""
    chosen = np.zeros(len(domains), dtype=bool)
    order = np.lexsort((np.arange(len(domains)), -room))
    _, first = np.unique(domains[order], return_index=True)
    chosen[order[first]] = True
    return chosen


def _takes(port: HostPort, other: HostPort) -> bool:
    """Return whether a pod that listens on a port takes another one; one for all addresses takes that of each."""
    return port == other or (not port.address and port.clashes(other))
