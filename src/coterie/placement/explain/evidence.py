"""The evidence for an answer: the nearest domains, the holders of the missing capacity, and the candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coterie.gang.tree import Shape, Task
from coterie.placement.budget import DEFAULT_BUDGET, Budget, Exhausted
from coterie.placement.capacity import Capacity
from coterie.placement.eligibility import eligible
from coterie.placement.explain.obstacles import Causes, causes
from coterie.placement.packing.feasibility import Packer
from coterie.placement.packing.node_table import EVERYWHERE, Item, Packing, Region
from coterie.placement.refusal import Holder, Nearest, Refusal, Tally
from coterie.placement.search.choice import fewest
from coterie.topology.cluster import GPU, GPUS, Bools, Cluster, Ints
from coterie.topology.domains import Domains

SHOWN_DOMAINS = 3
SHOWN_HOLDERS = 5
SHOWN_CANDIDATES = 10

# The counts of domains beside the obstacles of their nodes.
TOO_SMALL = "too small"
PARTLY_USED = "partly used"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate domain: how many of the tasks fit there now, and the consequences.

    `nodes` is how many nodes those that fit use, `left_gpus` what is then still free. `extra` is how many more domains
    the others need at least; it is None where no task fits here, or the others fit nowhere. `lacks` is why not all fit;
    it is empty where they do.
    """

    domain: tuple[str, ...]
    fits: int
    wanted: int
    free_gpus: int
    left_gpus: int
    nodes: int
    extra: int | None
    chosen: bool
    lacks: str


@dataclass(frozen=True, slots=True)
class Counts:
    """A total, the number of feasible ones, and the obstacles of the others, most frequent first."""

    total: int
    good: int
    excluded: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Survey:
    """The candidates of tasks that belong together; without a level there are no domains.

    Nodes count as good where they take one of the tasks, domains where they take all of them.
    """

    level: str | None
    wanted: int
    candidates: tuple[Candidate, ...]
    more: int  # domains that are not among the candidates
    nodes: Counts
    domains: Counts


def nearest(
    tasks: tuple[Task, ...],
    level: str | None,
    capacity: Capacity,
    *,
    short: bool = False,
    within: tuple[str, ...] = (),
) -> tuple[Nearest, ...]:
    """Return the domains of a level that hold most of these tasks, best first; without a level, the cluster.

    With `short`, only domains that lack something are considered: where several groups compete, those are the ones in
    which a little more room would help. Only nodes `within` a domain count, the one that the tasks cannot leave.
    """
    if level is None:
        return (Nearest((), _most(tasks, EVERYWHERE, capacity), len(tasks)),)
    index = capacity.domains.topology.index(level)
    estimate = _estimate(tasks, index, capacity)
    values = capacity.domains.tiers[index].values
    if short:
        estimate = np.where(estimate < len(tasks), estimate, -1)
    if within:
        estimate = np.where([value[: len(within)] == within for value in values], estimate, -1)
    order = [one for one in np.argsort(-estimate, kind="stable")[:SHOWN_DOMAINS].tolist() if estimate[one] >= 0]
    found = [Nearest(values[one], _most(tasks, Region(index, (one,)), capacity), len(tasks)) for one in order]
    return tuple(sorted(found, key=lambda near: -near.fits))


def holders(
    tasks: Sequence[Task],
    level: str | None,
    best: tuple[Nearest, ...],
    now: Capacity,
    anchors: Mapping[str, str],
    *,
    lacking: str | None = None,
) -> tuple[Holder, ...]:
    """Return the holders of the lacking capacity in the best domains, the best domain first, most GPUs first.

    Without `lacking`, it is the GPUs of the kind that the tasks request. Nodes that are not eligible for any task do
    not count. The gang's own running tasks, given by `anchors`, are not holders.
    """
    domains = now.domains
    allowed = np.zeros(len(domains), dtype=bool)
    for shape in {task.shape for task in tasks}:
        allowed |= eligible(shape, domains.cluster, lift_transient=True)[domains.order]
    held: Counter[tuple[str, tuple[str, ...]]] = Counter()
    rows = [domains.cluster.resource(lacking)] if lacking else _gpu_rows(tasks, domains.cluster)
    short: Bools = np.logical_or.reduce(domains.cluster.pod_requests[rows] > 0)
    gpus = domains.cluster.gpus(domains.cluster.pod_requests)
    rank = {near.domain: place for place, near in enumerate(best)}
    own = {pod.owner for pod in domains.cluster.pods if pod.member and anchors.get(pod.member.task) == pod.node}
    for index, pod in enumerate(domains.cluster.pods):
        if pod.daemon or pod.owner in own or not short[index]:
            continue
        position = domains.position[pod.node]
        domain = _domain(domains, level, position)
        if domain in rank and allowed[position]:
            held[pod.owner or pod.name, domain] += int(gpus[index])
    ordered = sorted(held.items(), key=lambda pair: (rank[pair[0][1]], -pair[1], pair[0][0]))
    return tuple(Holder(owner, number, domain) for (owner, domain), number in ordered)[:SHOWN_HOLDERS]


def with_planned(refusal: Refusal, tasks: Sequence[Task], held: Mapping[str, Ints], domains: Domains) -> Refusal:
    """Return a refusal with more holders: those that are not pods yet, with their amounts as [resource, node]."""
    cluster = domains.cluster
    allowed: Bools = np.logical_or.reduce(
        [eligible(shape, cluster, lift_transient=True)[domains.order] for shape in {task.shape for task in tasks}]
    )
    rows = _gpu_rows(tasks, cluster)
    rank = {near.domain: place for place, near in enumerate(refusal.best)}
    found = list(refusal.holders)
    for owner, amounts in held.items():
        gpus = np.where(
            allowed & (amounts[rows].sum(axis=0) > 0)[domains.order], cluster.gpus(amounts)[domains.order], 0
        )
        inside: Counter[tuple[str, ...]] = Counter()
        for position in np.flatnonzero(gpus).tolist():
            if (domain := _domain(domains, refusal.level, position)) in rank and domain is not None:
                inside[domain] += int(gpus[position])
        found += [Holder(owner, number, domain) for domain, number in inside.items()]
    ordered = sorted(found, key=lambda holder: (rank[holder.domain], -holder.gpus, holder.owner))
    return replace(refusal, holders=tuple(ordered[:SHOWN_HOLDERS]))


def tally(tasks: Sequence[Task], level: str | None, where: tuple[str, ...], capacity: Capacity) -> Tally:
    """Count the nodes of a domain, or all of them without one, by the obstacle of tasks.

    It is counted for tasks of one shape: those that fit nowhere, else those of which most are left over, else the
    largest.
    """
    domains = capacity.domains
    shapes = Counter(task.shape for task in tasks)

    def shortage(shape: Shape) -> tuple[bool, int, float]:
        room = capacity.fit(shape).total
        return not room, max(0, shapes[shape] - room), _size(shape, capacity)

    shape = max(shapes, key=shortage)
    task = next(task for task in tasks if task.shape == shape)
    start, end = 0, len(domains)
    if where:
        tier = domains.tiers[len(where) - 1]
        number = tier.values.index(where)
        start, end = int(tier.start[number]), int(tier.end[number])
    why = causes(shape, capacity, level)
    fits = np.where(why.codes < 0, capacity.fit(shape).fits, 0)[start:end]
    return Tally(
        task=task.name,
        alike=shapes[shape],
        others=len(tasks) - shapes[shape],
        domain=where,
        nodes=end - start,
        good=int((fits > 0).sum()),
        room=int(fits.sum()),
        causes=why.counted(capacity, start, end),
    )


def survey(
    tasks: Sequence[Task],
    level: str | None,
    now: Capacity,
    empty: Capacity,
    *,
    chosen: Mapping[tuple[str, ...], int] | None = None,
    within: tuple[str, ...] = (),
) -> Survey:
    """Evaluate every node and every domain of a level for tasks that are to share one.

    `chosen` gives the domains that tasks were placed in, and how many nodes they use there. Only nodes `within` a
    domain count, the one that they cannot leave, if there is one. Candidates are the chosen domains, then those that
    fit most, the tightest first.
    """
    largest = max((task.shape for task in tasks), key=lambda shape: _size(shape, now))
    why = causes(largest, now)
    names = why.names
    nodes = _counted(len(now.domains), Counter(names[code] for code in why.codes[why.codes >= 0].tolist()))
    if level is None:
        return Survey(None, len(tasks), (), 0, nodes, Counts(0, 0, ()))
    index = now.domains.topology.index(level)
    tier = now.domains.tiers[index]
    wanted = len(tasks)
    room = _estimate(tasks, index, now)
    gpus = tier.sums(_idle(tasks, now))
    spare = np.maximum(gpus - sum(task.shape.gpus for task in tasks), 0)
    whole = _estimate(tasks, index, empty)
    # Nodes that take no task even when empty state the reason themselves.
    small: Bools = (whole < wanted) & (whole > 0)
    lacking = ["" if one >= wanted else word for one, word in zip(room, _words(why, index, small, now), strict=True)]
    picked = {tier.values.index(domain): used for domain, used in (chosen or {}).items()}
    others = np.lexsort((np.arange(len(tier)), spare, -room)).tolist()
    order = [
        one
        for one in (*sorted(picked), *(one for one in others if one not in picked))
        if tier.values[one][: len(within)] == within
    ]
    found = []
    for one in order[:SHOWN_CANDIDATES]:
        filling = _Filling(tasks, Region(index, (one,)), now)
        fits = filling.tasks
        lacking[one] = "" if fits == wanted else lacking[one] or PARTLY_USED
        found.append(
            Candidate(
                domain=tier.values[one],
                fits=fits,
                wanted=wanted,
                free_gpus=int(gpus[one]),
                left_gpus=int(gpus[one]) - filling.gpus,
                nodes=picked.get(one, filling.nodes),
                extra=fewest(np.delete(room, one), wanted - fits) if fits else None,
                chosen=one in picked,
                lacks=lacking[one],
            )
        )
    ranked = sorted(found, key=lambda each: (not each.chosen, -each.fits))
    counted = _counted(len(order), Counter(lacking[one] for one in order if lacking[one]))
    return Survey(level, wanted, tuple(ranked), len(order) - len(found), nodes, counted)


def _counted(total: int, excluded: Counter[str]) -> Counts:
    ranked = sorted(excluded.items(), key=lambda pair: (-pair[1], pair[0]))
    return Counts(total, total - excluded.total(), tuple(ranked))


def _idle(tasks: Sequence[Task], capacity: Capacity) -> Ints:
    """Return the free GPUs, of the kind that tasks request, of each node that accepts new work."""
    rows = _gpu_rows(tasks, capacity.domains.cluster)
    idle: Ints = np.maximum(capacity.free[rows].sum(axis=0), 0)
    return idle * (capacity.usable & capacity.visible)


def _gpu_rows(tasks: Sequence[Task], cluster: Cluster) -> list[int]:
    """Return the rows of the GPUs that tasks request; where they request none, those of NVIDIA's."""
    asked = {name for task in tasks for name, _ in task.shape.requests if name in GPUS} or {GPU}
    return [row for row in map(cluster.resource, asked) if row >= 0]


def _words(why: Causes, level: int, small: Bools, capacity: Capacity) -> list[str]:
    """Return, for each domain that holds too few tasks, the most common obstacle on its nodes.

    `small` are the domains that would hold too few even if they were empty.
    """
    tier = capacity.domains.tiers[level]
    numbers = np.array([tier.sums((why.codes == code).astype(np.int64)) for code in range(len(why.kinds))])
    most, nodes, names = numbers.argmax(axis=0).tolist(), numbers.sum(axis=0).tolist(), why.names
    return [TOO_SMALL if small[one] else names[most[one]] if nodes[one] else PARTLY_USED for one in range(len(tier))]


def _domain(domains: Domains, level: str | None, position: int) -> tuple[str, ...] | None:
    if level is None:
        return ()
    tier = domains.tiers[domains.topology.index(level)]
    number = int(tier.of[position])
    return tier.values[number] if number >= 0 else None


def _estimate(tasks: Sequence[Task], level: int, capacity: Capacity) -> Ints:
    """Return an upper bound of the tasks each domain holds, shape by shape."""
    total = np.zeros(len(capacity.domains.tiers[level]), dtype=np.int64)
    for shape, count in Counter(task.shape for task in tasks).items():
        total += np.minimum(capacity.fit(shape).sums[level], count)
    return total


def _most(tasks: Sequence[Task], region: Region, capacity: Capacity) -> int:
    """Return how many of these tasks a region holds at once, counting the small ones first."""
    return _Filling(tasks, region, capacity).tasks


class _Filling:
    """A region filled with as many tasks of each shape as it takes beside those of the smaller shapes."""

    def __init__(self, tasks: Sequence[Task], region: Region, capacity: Capacity) -> None:
        self._region = region
        self._wanted = Counter(task.shape for task in tasks)
        self._shapes = tuple(self._wanted)
        self._packer = Packer(capacity, self._shapes, Budget(DEFAULT_BUDGET // 10))
        self._held: dict[int, int] = {}
        for number in sorted(range(len(self._shapes)), key=lambda one: _size(self._shapes[one], capacity)):
            self._held[number] = self._most(number)

    @property
    def tasks(self) -> int:
        """The number of the tasks it holds at once."""
        return sum(self._held.values())

    @property
    def nodes(self) -> int:
        """The number of nodes that those tasks use."""
        packing = self._pack(self._held) if self.tasks else None
        return len({position for pairs in packing or () for position, _ in pairs})

    @property
    def gpus(self) -> int:
        """The number of GPUs that those tasks take."""
        return sum(self._shapes[one].gpus * pods for one, pods in self._held.items())

    def _most(self, number: int) -> int:
        """Return how many tasks of a shape it holds beside those already in it."""
        low, high = 0, min(self._wanted[self._shapes[number]], self._packer.room(number, self._region))
        if len(self._shapes) == 1:
            return high
        while low < high:
            middle = (low + high + 1) // 2
            fits = self._pack({**self._held, number: middle}) is not None
            low, high = (middle, high) if fits else (low, middle - 1)
        return low

    def _pack(self, counts: Mapping[int, int]) -> Packing | None:
        items = (Item(one, self._region, pods) for one, pods in counts.items() if pods)
        try:
            return self._packer.pack(tuple(sorted(items)))
        except Exhausted:
            return None


def _size(shape: Shape, capacity: Capacity) -> float:
    """Return the greatest share of the whole cluster's free capacity that one task takes."""
    cluster = capacity.domains.cluster
    shares = [0.0]
    for name, amount in shape.requests:
        row = cluster.resource(name)
        whole = max(0.0, float(capacity.free[row].sum(dtype=np.float64))) if row >= 0 else 0.0
        shares.append(amount / (whole + 1.0))
    return max(shares)
