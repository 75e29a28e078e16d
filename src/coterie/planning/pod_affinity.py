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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from coterie.errors import Fault, Notice, SpecErrors
from coterie.gang.binding import bound
from coterie.gang.edits import mapped
from coterie.gang.tree import Gang, Task
from coterie.planning.workload import Workload
from coterie.topology.cluster import Bools, Cluster, Ints, Pod
from coterie.topology.pod_affinity import APART, HOST_PORT, HOSTNAME, NEAR, AffinityTerm, HostPort, PodTraits

# More causes than this make a plan slow and need another tool.
_MOST_ROWS = 200


@dataclass(frozen=True, slots=True)
class PlacedTask:
    """A task that was placed earlier, with its node: for later workloads it counts as running."""

    traits: PodTraits
    node: str
    owner: str


@dataclass(frozen=True, slots=True)
class _Neighbour:
    """A running pod, with its index among the pods of the cluster; None for one that is only planned."""

    traits: PodTraits
    node: int
    owner: str
    pod: int | None = None
    daemon: bool = False


@dataclass(frozen=True, slots=True)
class _SeparationRow:
    """One cause of separation: the amount on nodes, the amount of tasks, and the amounts held by running pods."""

    name: str
    offered: Ints
    asked: Mapping[str, int]
    held: Sequence[tuple[_Neighbour, Ints]] = ()


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
    question = _Separation(workload, cluster, placed, room)
    if not question.concerned:
        return Separated(workload, cluster)
    rows = list(question.rows())
    gangs = question.gangs()
    if question.faults:
        raise SpecErrors(list(dict.fromkeys(question.faults)))
    notices = (*workload.notices, *question.notices)
    changed = replace(workload, gangs=_asking(gangs, rows), notices=notices)
    return Separated(changed, _offering(cluster, rows), tuple(question.spread))


@dataclass(eq=False)
class _Separation:
    """The pods of one workload in relation to each other, and to the running ones."""

    workload: Workload
    cluster: Cluster
    placed: Sequence[PlacedTask]
    room: Ints | None = None
    spread: list[AntiAffinityGroup] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)

    @property
    def concerned(self) -> bool:
        """Whether any affinity or host port applies."""
        own = any(traits.apart or traits.near or traits.ports for traits in self._kinds)
        theirs = (*(pod.beside for pod in self.cluster.pods if pod.beside), *(each.traits for each in self.placed))
        return own or any(traits.apart for traits in theirs)

    def rows(self) -> Iterator[_SeparationRow]:
        """Yield every relevant cause."""
        found = [*self._ports(), *self._terms(), *self._against_running(), *self._near_running()]
        if len(found) > _MOST_ROWS:
            self.faults += list(self.workload.refusals.values())[:1]
        yield from found

    def gangs(self) -> tuple[Gang, ...]:
        """Return the gangs with a required group for each affinity term among their own tasks."""
        gangs = self.workload.gangs
        for term in self._held_terms("near"):
            own = self._matched(term)
            if own:
                gangs = self._bound(gangs, term, own)
        return gangs

    # The pods

    @cached_property
    def _kinds(self) -> list[PodTraits]:
        return list({id(traits): traits for traits in self.workload.traits.values()}.values())

    @cached_property
    def _tasks(self) -> Mapping[int, list[str]]:
        """The tasks of each kind of pod."""
        found: dict[int, list[str]] = {}
        for name, traits in self.workload.traits.items():
            found.setdefault(id(traits), []).append(name)
        return found

    @cached_property
    def _running(self) -> list[_Neighbour]:
        cluster = self.cluster
        running = [
            _Neighbour(traits, int(cluster.pod_node[index]), pod.owner, index, pod.daemon)
            for index, pod in enumerate(cluster.pods)
            if (traits := pod.traits) is not None
        ]
        return running + [_Neighbour(each.traits, cluster.position[each.node], each.owner) for each in self.placed]

    def _of(self, kinds: Iterable[PodTraits]) -> frozenset[str]:
        return frozenset(name for traits in kinds for name in self._tasks[id(traits)])

    def _held_terms(self, which: str) -> dict[AffinityTerm, None]:
        return dict.fromkeys(term for traits in self._kinds for term in getattr(traits, which))

    def _holders(self, term: AffinityTerm, which: str = "apart") -> frozenset[str]:
        return self._of(traits for traits in self._kinds if term in getattr(traits, which))

    def _matched(self, term: AffinityTerm) -> frozenset[str]:
        return self._of(traits for traits in self._kinds if term.matches(traits))

    def _full(self, amount: int) -> Ints:
        return np.full(len(self.cluster), amount, dtype=np.int64)

    # The domains of a node label

    def _domains(self, key: str) -> Ints:
        """Return the domain of each node, -1 for none; a node without the hostname label is its own host."""
        column = self.cluster.columns.get(key)
        if column is not None:
            return column.codes.astype(np.int64)
        return np.arange(len(self.cluster)) if key == HOSTNAME else self._full(-1)

    def _around(self, key: str, node: int) -> Ints:
        """Return the nodes of the domain that a node is in."""
        domains = self._domains(key)
        nodes: Ints = np.flatnonzero(domains == domains[node]) if domains[node] >= 0 else np.zeros(0, dtype=np.int64)
        return nodes

    def _single(self, key: str) -> bool:
        """Return whether every domain of a label is one node."""
        domains = self._domains(key)
        return bool(len(np.unique(domains[domains >= 0])) == np.count_nonzero(domains >= 0))

    # Tasks in relation to each other

    def _ports(self) -> Iterator[_SeparationRow]:
        """Yield a row per host port that several tasks need; one for all addresses takes that port of each address."""
        wanted = dict.fromkeys(port for traits in self._kinds for port in sorted(traits.ports, key=str))
        for port in wanted:
            takers = self._of(each for each in self._kinds if any(_takes(other, port) for other in each.ports))
            if len(takers) > 1:
                yield _SeparationRow(f"{HOST_PORT}{port}", self._full(1), dict.fromkeys(takers, 1))

    def _terms(self) -> Iterator[_SeparationRow]:
        for number, term in enumerate(self._held_terms("apart")):
            holders, matched = self._holders(term), self._matched(term)
            if len(holders | matched) < 2 or not holders or not matched:
                continue
            domains = self._domains(term.key)
            if (domains < 0).all():
                self._without_label(term)
            elif (sides := self._sides(holders, matched)) is None:
                self._refuse(term)
            else:
                alone, others = sides
                most = max(1, len(others))
                offered = self._full(most)
                if not self._single(term.key):
                    self.spread.append(AntiAffinityGroup(self.workload.refusals[term], holders, matched, domains))
                    if self.room is not None:
                        offered = np.where(_roomiest(domains, self.room), most, 0)
                offered[domains < 0] = most * len(alone) + len(others)  # a node in no domain separates no pods
                yield _SeparationRow(
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
            self._single(term.key)
            and (self._domains(term.key) >= 0).all()
            and tasks <= self._holders(term) & self._matched(term)
            for term in self._held_terms("apart")
        )

    # Tasks in relation to running pods

    def _against_running(self) -> Iterator[_SeparationRow]:
        for number, term in enumerate(self._held_terms("apart")):
            blocking = [
                (each, self._around(term.key, each.node)) for each in self._running if term.matches(each.traits)
            ]
            yield from self._blocked(f"{APART}own/{number}", self._holders(term), blocking)
        theirs: dict[AffinityTerm, list[_Neighbour]] = {}
        for each in self._running:
            for term in each.traits.apart:
                theirs.setdefault(term, []).append(each)
        for number, (term, pods) in enumerate(theirs.items()):
            blocking = [(each, self._around(term.key, each.node)) for each in pods]
            yield from self._blocked(f"{APART}theirs/{number}", self._matched(term), blocking)
        for port in dict.fromkeys(port for traits in self._kinds for port in sorted(traits.ports, key=str)):
            pods = [each for each in self._running if any(map(port.clashes, each.traits.ports))]
            takers = self._of(traits for traits in self._kinds if port in traits.ports)
            yield from self._blocked(
                f"{HOST_PORT}{port}/taken", takers, [(each, np.array([each.node])) for each in pods]
            )

    def _blocked(
        self, name: str, tasks: frozenset[str], blocking: Sequence[tuple[_Neighbour, Ints]]
    ) -> Iterator[_SeparationRow]:
        if tasks and any(len(nodes) for _, nodes in blocking):
            yield _SeparationRow(name, self._full(len(tasks)), dict.fromkeys(tasks, 1), blocking)

    def _near_running(self) -> Iterator[_SeparationRow]:
        for number, term in enumerate(self._held_terms("near")):
            pods = [each for each in self._running if term.matches(each.traits)]
            if self._matched(term):
                if pods:
                    self._refuse(term)
                continue
            if not pods:
                self._refuse(term)
                continue
            holders, offered = self._holders(term, "near"), self._full(0)
            for each in pods:
                offered[self._around(term.key, each.node)] = len(holders)
            yield _SeparationRow(f"{NEAR}{number}", offered, dict.fromkeys(holders, 1))

    # Tasks that must be together

    def _bound(self, gangs: tuple[Gang, ...], term: AffinityTerm, own: frozenset[str]) -> tuple[Gang, ...]:
        topology = self.workload.pool.topology
        level = next((level.name for level in topology.levels if level.label == term.key), None)
        concerned = [gang for gang in gangs if any(task.name in own for task in gang.all_tasks())]
        followers = all(gang.follows == concerned[0].name for gang in concerned[1:])
        if level is None or own != self._holders(term, "near") or not followers:
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


def padded(taken: Ints | None, cluster: Cluster) -> Ints | None:
    """Return amounts as [resource, node], zero in the rows that a cluster has beyond them."""
    if taken is None or len(taken) == len(cluster.resources):
        return taken
    more = np.zeros((len(cluster.resources) - len(taken), len(cluster)), dtype=np.int64)
    return np.concatenate([taken, more])


def _takes(port: HostPort, other: HostPort) -> bool:
    """Return whether a pod that listens on a port takes another one; one for all addresses takes that of each."""
    return port == other or (not port.address and port.clashes(other))


def _asking(gangs: Sequence[Gang], rows: Sequence[_SeparationRow]) -> tuple[Gang, ...]:
    """Return gangs whose tasks request the amounts of the rows; equal requests keep one shape."""
    asked: dict[str, list[tuple[str, int]]] = {}
    for row in rows:
        for name, amount in row.asked.items():
            asked.setdefault(name, []).append((row.name, amount))
    shapes: dict[tuple[object, tuple[tuple[str, int], ...]], Task] = {}

    def changed(task: Task) -> Task:
        more = tuple(sorted(asked.get(task.name, ())))
        if not more:
            return task
        first = shapes.get((task.shape, more))
        if first is None:
            requests = tuple(sorted((*task.shape.requests, *more)))
            first = shapes[task.shape, more] = replace(task, shape=replace(task.shape, requests=requests))
        return replace(task, shape=first.shape)

    return tuple(mapped(gang, changed) for gang in gangs)


def _offering(cluster: Cluster, rows: Sequence[_SeparationRow]) -> Cluster:
    """Return the cluster with a row of capacity per cause; a pod is on every node of a domain that it blocks."""
    if not rows:
        return cluster
    more: list[tuple[Pod, int, int, int]] = []
    own = np.zeros((len(rows), len(cluster.pods)), dtype=np.int64)
    for number, row in enumerate(rows):
        for each, nodes in row.held:
            amount = int(row.offered[each.node]) if len(row.offered) else 0
            for node in nodes.tolist():
                if each.pod is not None and node == each.node:
                    own[number, each.pod] = amount
                else:
                    shade = Pod(each.owner, cluster.names[node], {}, each.owner, each.daemon)
                    more.append((shade, node, number, amount))
    extra = np.zeros((len(cluster.resources) + len(rows), len(more)), dtype=np.int64)
    for index, (_, _, number, amount) in enumerate(more):
        extra[len(cluster.resources) + number, index] = amount
    return replace(
        cluster,
        resources=(*cluster.resources, *(row.name for row in rows)),
        allocatable=np.concatenate([cluster.allocatable, *([row.offered] for row in rows)]),
        pods=(*cluster.pods, *(shade for shade, *_ in more)),
        pod_node=np.concatenate([cluster.pod_node, np.array([node for _, node, _, _ in more], dtype=np.int32)]),
        pod_requests=np.concatenate([np.concatenate([cluster.pod_requests, own]), extra], axis=1),
    )
