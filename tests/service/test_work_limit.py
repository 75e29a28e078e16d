"""The limit of expensive requests: places, waiting requests, and callers."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from coterie.cancellation import POLL_S
from coterie.errors import Unavailable
from coterie.service.work_limit import WorkLimit
from tests.eventually import PATIENCE_S, eventually


def test_those_over_the_limit_are_told_to_come_later_and_places_are_given_back() -> None:
    limit = WorkLimit("plans", running=1, waiting=1, each=2)
    go_on, begun = threading.Event(), list[str]()

    def worker(name: str) -> Callable[[], None]:
        def work() -> None:
            with limit.place(name):
                begun.append(name)
                assert go_on.wait(PATIENCE_S)

        return work

    threads = [threading.Thread(target=worker(name)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    eventually(lambda: limit.taken == 2 and begun)
    assert len(begun) == 1, "the other waits"
    with pytest.raises(Unavailable, match="too many plans are already waiting"), limit.place("c"):
        pass
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(begun) == ["a", "b"]
    with limit.place("c"):
        assert limit.taken == 1
    assert limit.taken == 0


def test_one_caller_has_so_many_and_leaves_places_to_others() -> None:
    limit = WorkLimit("plans", running=4, waiting=0, each=1)
    with limit.place("a"):
        with pytest.raises(Unavailable, match="1 of your plans"), limit.place("a"):
            pass
        with limit.place("b"):
            pass


def test_places_are_given_in_the_order_of_arrival() -> None:
    limit = WorkLimit("plans", running=1, waiting=8, each=9)
    begun = list[int]()

    def work(number: int) -> None:
        with limit.place("a"):
            begun.append(number)

    with limit.place("a"):
        threads = []
        for number in range(8):
            threads.append(threading.Thread(target=work, args=(number,)))
            threads[-1].start()
            eventually(lambda number=number: limit.taken == number + 2)  # type: ignore[misc]
        # Longer than a waiting request sleeps: one that looks whether its caller has left keeps its turn.
        assert not threading.Event().wait(3 * POLL_S)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert begun == list(range(8))


def test_one_whose_work_is_done_lets_the_next_begin_and_still_counts() -> None:
    limit = WorkLimit("plans", running=1, waiting=1, each=9)
    with limit.place("a") as done:
        done()
        done()
        with limit.place("b"):
            assert limit.taken == 2
            with pytest.raises(Unavailable, match="too many plans"), limit.place("c"):
                pass
    assert limit.taken == 0
