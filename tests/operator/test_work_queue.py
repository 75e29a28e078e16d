"""The work queue: every key once, nothing lost, failures with growing delays."""

from __future__ import annotations

import threading

from coterie.operator.work_queue import WorkQueue


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def queue() -> tuple[WorkQueue[str], Clock]:
    clock = Clock()
    return WorkQueue(clock=clock, longest_delay_s=8.0), clock


def taken(found: WorkQueue[str]) -> list[str]:
    keys = []
    while (key := found.take(0)) is not None:
        keys.append(key)
    return keys


def test_a_key_that_is_added_twice_is_handed_out_once_and_in_order() -> None:
    found, _ = queue()
    for key in ("a", "b", "a"):
        found.add(key)

    assert taken(found) == ["a", "b"]


def test_a_key_that_changes_while_a_worker_has_it_is_handed_out_again() -> None:
    found, _ = queue()
    found.add("a")
    assert found.take(0) == "a"
    found.add("a")

    assert found.take(0) is None  # nobody else gets it meanwhile
    assert found.taken == 1
    found.done("a")
    assert found.take(0) == "a"
    found.done("a")
    assert (len(found), found.taken) == (0, 0)


def test_failures_delay_a_key_more_and_more_up_to_a_limit_and_success_forgets_them() -> None:
    found, clock = queue()
    delays = []
    found.add("a")
    for _ in range(12):
        assert found.take(0) == "a"
        delays.append(found.failed("a"))
        assert found.take(0) is None
        clock.now += delays[-1]
    assert found.take(0) == "a"
    assert all(0.5 <= delay / min(8.0, 0.05 * 2**count) <= 1.0 for count, delay in enumerate(delays))
    found.done("a")
    found.add("a")
    found.take(0)
    assert found.failed("a") <= 0.05


def test_a_change_ends_the_delay_of_a_key() -> None:
    found, clock = queue()
    found.add_after("a", 5.0)
    assert found.take(0) is None
    found.add("a")
    assert found.take(0) == "a"
    found.done("a")
    clock.now = 10.0
    assert found.take(0) is None


def test_the_earlier_of_two_delays_counts() -> None:
    found, clock = queue()
    found.add_after("a", 5.0)
    found.add_after("a", 1.0)
    found.add_after("a", 3.0)
    clock.now = 1.0
    assert taken(found) == ["a"]
    found.done("a")
    clock.now = 6.0
    assert taken(found) == []


def test_a_closed_queue_releases_its_workers() -> None:
    found: WorkQueue[str] = WorkQueue()
    got: list[str | None] = []
    worker = threading.Thread(target=lambda: got.append(found.take(30.0)))
    worker.start()
    found.close()
    worker.join(10.0)

    assert got == [None]
