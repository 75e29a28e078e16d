"""An undecided search is not a refusal: it continues in later cycles until its whole budget is spent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from coterie.errors import Reason
from coterie.gang.rules import RequestedTask, TaskRequirement, build
from coterie.gang.tree import Gang, Shape
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, NoPlacement, place
from coterie.service.queue import queue as queues
from coterie.service.queue import reservations, undecided, wait_reasons
from coterie.service.queue.holdings import BackendHoldings
from coterie.service.queue.open_searches import LongSearch
from coterie.service.queue.queue import PlacedGang, Queue, QueueEntry, WaitReason
from coterie.topology.cluster import CPU, GPU, Cluster, Node
from coterie.topology.domains import Domains
from tests.service.queue.builders import LEVELS, POOL, entry, gang, placed

# Eighteen tasks that fill six nodes to the last, in one way that is hard to find.
SIZES = (25, 16, 19, 20, 17, 23, 23, 19, 18, 23, 21, 16, 22, 22, 16, 19, 17, 24)
# The steps that a cycle spends at most on a question at first, and then on one that it goes on with.
FIRST, LENT = 500, 250
STEPS = 2177


@pytest.fixture(autouse=True)
def _small_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (queues, reservations, wait_reasons):
        monkeypatch.setattr(module, "QUEUE_BUDGET", FIRST)
    for module in (undecided, reservations):
        monkeypatch.setattr(module, "LENT", LENT)


def hard(extra: int = 0) -> Gang:
    """Return a gang that needs more steps than a cycle has; with `extra` it does not fit at all."""
    sizes = [*SIZES[:-1], SIZES[-1] + extra]
    return build(
        "g", [RequestedTask(f"t{n}", Shape(requests=((CPU, size),)), ()) for n, size in enumerate(sizes)], LEVELS
    )


def nodes(gpus: int = 0) -> BackendHoldings:
    return BackendHoldings(Cluster.of([Node(f"n{n}", {"rack": f"r{n}"}, {CPU: 60, GPU: gpus}) for n in range(6)]))


def cycles(queue: Queue, most: int) -> Iterator[list[PlacedGang | WaitReason]]:
    for _ in range(most):
        yield list(queue.cycle(0.0))


def test_a_gang_that_needs_more_than_the_first_budget_is_placed_on_an_idle_cluster() -> None:
    queue = Queue(nodes())
    queue.put(entry("hard", hard()))
    told = [one for cycle in cycles(queue, 2 + STEPS // LENT) for one in cycle]

    assert [type(one) for one in told] == [WaitReason, PlacedGang]
    assert isinstance(told[0], WaitReason)
    assert told[0].decision.refusal
    assert told[0].decision.refusal.reason is Reason.UNDECIDED
    assert not queue


def test_where_it_goes_is_what_the_whole_budget_says_at_once() -> None:
    world = nodes()
    whole = place(hard(), Capacity.now(Domains.of(world.cluster, LEVELS)))
    queue = Queue(world)
    queue.put(entry("hard", hard()))
    seated = [one for cycle in cycles(queue, 2 + STEPS // LENT) for one in cycle if isinstance(one, PlacedGang)]

    assert isinstance(whole, Found)
    assert {held.task: held.node for held in seated[0].held} == whole.nodes


def test_a_cycle_lends_a_question_no_more_than_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    lent: list[int] = []
    go_on = LongSearch.go_on

    def counted(question: LongSearch, steps: int) -> Found | NoPlacement | None:
        lent.append(steps)
        return go_on(question, steps)

    monkeypatch.setattr(LongSearch, "go_on", counted)
    queue = Queue(nodes())
    queue.put(entry("hard", hard()))
    queue.put(entry("hard too", hard(extra=1)))
    for number, _ in enumerate(cycles(queue, 4), 1):
        assert lent == [LENT] * number


def test_others_are_placed_while_a_question_is_open() -> None:
    queue = Queue(nodes(gpus=1))
    queue.put(entry("hard", hard()))
    assert placed(queue) == []
    queue.put(entry("easy", gang(1, gpu=1)))
    assert placed(queue) == ["easy"]
    assert [name for _ in range(2 + STEPS // LENT) for name in placed(queue)] == ["hard"]


def test_an_answer_that_no_longer_holds_is_asked_for_again() -> None:
    """While the question was open somebody took a node, and left again: at last it is placed."""
    world = nodes(gpus=1)
    queue = Queue(world)
    queue.put(entry("hard", hard()))
    assert placed(queue) == []
    key = ("guest", "g", 1)
    world.hold(key, "main", {"t": "n0"}, {"t": Shape(requests=((CPU, 60),))})
    assert [name for _ in range(2 + STEPS // LENT) for name in placed(queue)] == []
    world.release(key, ["t"])
    assert [name for _ in range(2 * (2 + STEPS // LENT)) for name in placed(queue)] == ["hard"]


def test_a_proof_that_took_long_is_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a task that is larger by one there is too little CPU in all."""
    monkeypatch.setattr(queues, "QUEUE_BUDGET", 0)
    queue = Queue(nodes())
    queue.put(entry("hard", hard(extra=1)))
    told = [one for now in (0.0, 100.0, 200.0) for one in queue.cycle(now)]

    assert isinstance(told[-1], WaitReason)
    assert told[-1].decision.refusal
    assert told[-1].decision.refusal.reason is not Reason.UNDECIDED


def test_two_open_questions_get_their_turns() -> None:
    queue = Queue(nodes())
    queue.put(entry("never", hard(extra=1), since=0))
    queue.put(entry("hard", hard(), since=1))
    assert "hard" in [name for _ in range(40) for name in placed(queue)]


def test_a_question_of_a_gang_that_comes_after_an_equal_one_now_blocks_no_other() -> None:
    queue = Queue(nodes())
    first, second = (QueueEntry(("w", name, 1), POOL, hard(), "NORMAL", 0.0, 1) for name in ("first", "second"))
    queue.put(first)
    assert placed(queue) == []
    queue.put(second)
    queue.put(replace(first, gang=gang(1, gpu=1)))
    queue.put(first)
    assert [entry.key[1] for entry in queue.entries()] == ["second", "first"]
    assert [name for _ in range(2 * (2 + STEPS // LENT)) for name in placed(queue)] == ["w"]


def passed_by_small_ones(patience: float = 1.0) -> tuple[BackendHoldings, Queue]:
    """Return a queue in which a gang waits for a guest to leave one of its six nodes, and a small one has passed it."""
    world = nodes()
    world.hold(("guest", "g", 1), "main", {"t": "n0"}, {"t": Shape(requests=((CPU, 60),))})
    queue = Queue(world, patience=patience)
    queue.put(entry("hard", hard(), since=0))
    queue.put(entry("small-0", small(), since=1))
    assert placed(queue, 0.0) == ["small-0"]
    return world, queue


def small() -> Gang:
    return build("g", [RequestedTask("t", Shape(requests=((CPU, 1),)), ())], LEVELS)


def test_nodes_are_kept_for_a_gang_also_if_it_takes_more_than_the_first_budget_to_find_them() -> None:
    world, queue = passed_by_small_ones()
    for number in range(1, 3 + STEPS // LENT):
        queue.put(entry(f"small-{number}", small(), since=1 + number))
        placed(queue, 10.0)
    queue.put(entry("too late", small(), since=100))
    assert placed(queue, 10.0) == []
    # The nodes are kept from others, and not from the search for itself.
    for key in [key for key, _, _ in world.placements()]:
        world.release(key, ["t"])
    assert [name for _ in range(3 + STEPS // LENT) for name in placed(queue, 10.0)][:1] == ["hard"]


def test_a_gang_that_takes_the_place_of_another_is_asked_about_itself() -> None:
    """The first would need all six nodes; the second, of the same key, fits at once when its turn comes."""
    _, queue = passed_by_small_ones()
    for _ in range(3):
        assert placed(queue, 10.0) == []
    queue.put(entry("hard", small(), since=0))
    assert placed(queue, 10.0) == ["hard"]


def test_a_question_that_nobody_asks_any_more_ends_its_thread() -> None:
    world, others = nodes(), set(threading.enumerate())
    question = LongSearch(hard(), Capacity.now(Domains.of(world.cluster, LEVELS)), {})
    assert question.go_on(100) is None
    [mine] = [each for each in threading.enumerate() if each.name == "question" and each not in others]
    del question
    mine.join(timeout=60)
    assert not mine.is_alive()


def test_what_goes_wrong_with_a_question_is_raised_where_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> NoPlacement:
        raise ValueError("broken")

    monkeypatch.setattr("coterie.service.queue.open_searches.place", broken)
    world = nodes()
    question = LongSearch(hard(), Capacity.now(Domains.of(world.cluster, LEVELS)), {})
    with pytest.raises(ValueError, match="broken"):
        question.go_on(1)


def test_a_failure_beside_running_tasks_is_none_of_a_gang_whose_others_run() -> None:
    """Both have a pair in one rack and a single task; the single task of one runs, and one of the pair of the other."""
    one = Shape(requests=((GPU, 1),))
    shaped = Cluster.of([Node(f"n{n}", {"rack": f"r{n // 2}"}, {GPU: 1}) for n in range(4)])
    world = BackendHoldings(shaped)
    world.hold(("others", "g", 1), "main", {"a": "n1"}, {"a": one})
    world.hold(("w", "g", 1), "main", {"t0": "n0"}, {"t0": one})
    queue = Queue(world)
    for name, together in (("pair", {"t0", "t1"}), ("single", {"t1", "t2"})):
        queue.put(replace(entry(name, _grouped(together)), anchors={"t0": "n0"}))

    assert placed(queue) == ["single"]


def _grouped(together: set[str]) -> Gang:
    shape = Shape(requests=((GPU, 1),))
    names = ((name, "pair" if name in together else "one") for name in ("t0", "t1", "t2"))
    return build(
        "g",
        [RequestedTask(name, shape, (TaskRequirement("rack", group, required=True),)) for name, group in names],
        LEVELS,
    )
