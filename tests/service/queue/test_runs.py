"""Waiting gangs that are alike are decided together as they would be one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from coterie.config.configuration import GpuQuota, Pool
from coterie.gang.tree import Shape
from coterie.service.queue.holdings import BackendHoldings, Key
from coterie.service.queue.queue import PlacedGang, Queue, QueueEntry
from coterie.service.queue.ranking import GangRun
from coterie.topology.cluster import GPU
from tests.random_examples import examples
from tests.seed import SEED
from tests.service.queue.builders import POOL, entry, gang, placed, world

STEPS = 30
SHAPE = Shape(requests=((GPU, 8),))


@dataclass
class _History:
    """A queue over random events, and its decisions; the events depend on the seed and on the decisions."""

    seed: int
    decisions: list[object] = field(default_factory=list)

    def __post_init__(self) -> None:
        draw = self.draw = Random(self.seed)  # noqa: S311 - histories are drawn, not secrets
        self.world: BackendHoldings = world(draw.choice([2, 3, 4]))
        self.pools = {name: replace(POOL, name=name, gpus=self._quota()) for name in "abc"[: draw.choice([1, 2, 2, 3])]}
        self.queue = Queue(self.world, draw.choice([2.0, 5.0]), self._running(draw.choice([0, 0, 3, 6])))
        self.entries: dict[Key, QueueEntry] = {}
        self.held: dict[Key, list[str]] = {}
        for step in range(STEPS):
            draw.choice([self._submit] * 3 + [self._release] * 3 + [self._drop, self._change_pool, self._replace])()
            if draw.random() < 0.05:
                self.queue = self.queue.onto(self.world)
            self.decisions.append(self._cycle(float(step)))

    def _running(self, most: int) -> Callable[[], tuple[int, int]]:
        return (lambda: (self.world.tasks, most)) if most else (lambda: (0, 1000))

    def _quota(self) -> GpuQuota:
        guarantee, limit = self.draw.choice([None, 8, 16]), self.draw.choice([None, None, 16, 24])
        return GpuQuota(guarantee=guarantee, limit=limit, weight=self.draw.choice([1, 1, 2, 0]))

    def _submit(self) -> None:
        draw, number, since = self.draw, len(self.decisions), float(len(self.decisions))
        pool, priority = draw.choice(list(self.pools.values())), draw.choice(["NORMAL", "NORMAL", "HIGH", "LOW"])
        kinds = [gang(draw.choice([1, 1, 2]), draw.choice([8, 8, 4, 0]), rack=draw.random() < 0.3) for _ in range(2)]
        for group in range(draw.choice([1, 2, 5, 8])):
            one = kinds[draw.random() < 0.15]
            anchors = {"t0": "n0"} if len(one.all_tasks()) > 1 and draw.random() < 0.05 else {}
            self._put(QueueEntry((f"w{number:02}", f"g{group}", 1), pool, one, priority, since, number, anchors))

    def _put(self, entry: QueueEntry) -> None:
        self.entries[entry.key] = entry
        self.queue.put(entry)

    def _release(self) -> None:
        for key in self.draw.sample(sorted(self.held), min(len(self.held), self.draw.choice([1, 2, 3]))):
            self.world.release(key, self.held.pop(key))

    def _drop(self) -> None:
        if self.entries:
            key = self.draw.choice(sorted(self.entries))
            del self.entries[key]
            self.queue.drop(key)

    def _change_pool(self) -> None:
        name = self.draw.choice(list(self.pools))
        pool: Pool = replace(self.pools[name], gpus=self._quota())
        self.pools[name] = pool
        for key in sorted(self.entries):
            if self.entries[key].pool.name == name and self.draw.random() < 0.9:
                self._put(replace(self.entries[key], pool=pool))

    def _replace(self) -> None:
        if self.entries:
            key = self.draw.choice(sorted(self.entries))
            self._put(replace(self.entries[key], gang=gang(self.draw.choice([1, 2]), 8)))

    def _cycle(self, now: float) -> object:
        order = [entry.key for entry in self.queue.entries()]
        starved = self.queue.starved(now)
        placed = []
        for told in self.queue.cycle(now, shut=self.draw.random() < 0.05):
            if isinstance(told, PlacedGang):
                del self.entries[told.entry.key]
                self.held[told.entry.key] = [one.task for one in told.held]
                placed.append((told.entry.key, [(one.task, one.node) for one in told.held]))
        return order, starved, placed, dict(self.queue._reserved)


def _first_difference(seed: int) -> str:
    """Return the first step of a history in which equal gangs are decided otherwise than one by one."""
    together = _History(seed).decisions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GangRun, "continues_with", lambda *_: False)
        alone = _History(seed).decisions
    steps = enumerate(zip(together, alone, strict=True))
    return next((f"seed {seed}, step {step}: {one} != {other}" for step, (one, other) in steps if one != other), "")


# In these histories, reservations differ if a gang counts as overtaken as soon as the first of its run is.
@pytest.mark.parametrize("seed", [3, 126, 385])
def test_equal_gangs_that_are_overtaken_are_decided_as_they_are_one_by_one(seed: int) -> None:
    assert not _first_difference(seed)


def test_equal_gangs_are_decided_together_as_they_are_one_by_one() -> None:
    for seed in range(SEED, SEED + examples(25)):
        assert not _first_difference(seed)


def test_gangs_beyond_the_guarantee_are_not_overtaken_with_those_within() -> None:
    nodes = world(2)
    queue = Queue(nodes, patience=60.0)
    owner, other = replace(POOL, name="owner", gpus=GpuQuota(guarantee=8)), replace(POOL, name="other")
    nodes.hold(("guest", "g", 1), "third", {"t0": "n0", "t1": "n1"}, dict.fromkeys(("t0", "t1"), SHAPE))
    for group in range(3):
        queue.put(QueueEntry(("equal", f"g{group}", 1), owner, gang(1), "NORMAL", 1.0, 1))
    queue.put(entry("small", gang(1, 0), "HIGH", 2.0, other))
    assert placed(queue, 2.0) == ["small"]  # overtakes the one within the guarantee, and goes before the others
    queue.put(entry("high", gang(1), "HIGH", 3.0, other))
    assert placed(queue, 3.0) == []
    nodes.release(("guest", "g", 1), ["t0", "t1"])
    assert placed(queue, 70.0) == ["equal", "high"]


def test_a_gang_that_waits_for_the_machine_still_does_when_its_pool_changes_or_the_one_before_it_leaves() -> None:
    nodes = world(2)
    queue = Queue(nodes, 5.0, lambda: (2, 2))
    entries = [QueueEntry(("w", f"g{group}", 1), POOL, gang(1), "NORMAL", 0.0, 1) for group in range(2)]
    for each in entries:
        queue.put(each)
    assert placed(queue, 0.0) == []
    assert queue.starved(5.0)
    for each in entries:
        queue.put(replace(each, pool=replace(POOL, gpus=GpuQuota(guarantee=8))))
    assert queue.starved(5.0)
    queue.drop(entries[0].key)
    assert queue.starved(5.0)
    queue.drop(entries[1].key)
    assert not queue.starved(5.0)
