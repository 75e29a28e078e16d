"""Writes of several threads in one transaction: each gets its own result or error, and none waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from coterie.errors import Conflict, CoterieError, Unavailable
from coterie.store.group_commit import _MOST, GroupCommit, _Pending
from tests.eventually import PATIENCE_S, eventually


class Log:
    """A writer that holds its first call until released, so that others gather behind it."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.first, self.go = threading.Event(), threading.Event()

    def write(self, values: Sequence[int]) -> Sequence[int | CoterieError]:
        """Refuse negative values, fail for 13, and be unavailable for 14."""
        self.batches.append(list(values))
        self.first.set()
        assert self.go.wait(PATIENCE_S)
        if 13 in values:
            raise RuntimeError("thirteen")
        if 14 in values:
            raise Unavailable("fourteen", "later")
        return [Conflict("negative", "") if value < 0 else value * 2 for value in values]


def together(log: Log, *values: int) -> list[int | BaseException]:
    """Return the outcomes of values that were all sent while the first one was being written."""
    commit = GroupCommit(log.write)

    def one(value: int) -> int | BaseException:
        try:
            return commit(value)
        except (CoterieError, RuntimeError) as error:
            return error

    with ThreadPoolExecutor(len(values) + 1) as pool:
        begun = pool.submit(one, 0)
        assert log.first.wait(PATIENCE_S)
        sent = [pool.submit(one, value) for value in values]
        eventually(lambda: len(commit._waiting) == len(values))
        log.go.set()
        assert begun.result(PATIENCE_S) == 0
        return [each.result(PATIENCE_S) for each in sent]


def test_values_that_arrive_during_a_write_are_written_together() -> None:
    log = Log()
    assert together(log, 1, 2, 3) == [2, 4, 6]
    assert [sorted(batch) for batch in log.batches] == [[0], [1, 2, 3]]


def test_an_error_of_one_value_is_its_own() -> None:
    outcomes = together(Log(), 1, -1, 3)
    assert outcomes[0] == 2
    assert outcomes[2] == 6
    assert isinstance(outcomes[1], Conflict)


def test_values_are_written_alone_where_one_of_them_fails_unexpectedly() -> None:
    log = Log()
    outcomes = together(log, 1, 13, 3)
    assert outcomes[0] == 2
    assert outcomes[2] == 6
    assert isinstance(outcomes[1], RuntimeError)
    assert sorted(map(len, log.batches)) == [1, 1, 1, 1, 3]


def test_an_unavailable_store_is_told_to_all_and_not_tried_for_each() -> None:
    log = Log()
    outcomes = together(log, 1, 14)
    assert all(isinstance(each, Unavailable) for each in outcomes)
    assert len(log.batches) == 2


def test_values_written_alone_are_not_tried_once_the_store_is_unavailable() -> None:
    calls: list[list[int]] = []

    def write(values: Sequence[int]) -> Sequence[int | CoterieError]:
        calls.append(list(values))
        if len(values) > 1:
            raise RuntimeError("together")
        if values == [2]:
            raise Unavailable("gone", "")
        return values

    commit = GroupCommit(write)
    commit._waiting = waiting = [_Pending[int, int](value) for value in (1, 2, 3, 4)]
    with pytest.raises(Unavailable, match="gone"):
        commit(5)
    assert calls == [[1, 2, 3, 4, 5], [1], [2]]
    assert waiting[0].result == 1
    assert all(each.done and isinstance(each.error, Unavailable) for each in waiting[1:])


def test_every_caller_gets_an_error_of_its_own() -> None:
    outcomes = together(Log(), 1, 14, 2)
    assert len({id(each) for each in outcomes}) == 3
    causes = [each.__cause__ for each in outcomes if isinstance(each, Unavailable)]
    assert len(causes) == 3
    assert isinstance(causes[0], Unavailable)
    assert causes[0] is causes[1] is causes[2]
    assert {(str(each), each.hint) for each in outcomes if isinstance(each, Unavailable)} == {("fourteen", "later")}


def test_an_error_that_cannot_be_copied_is_raised_all_the_same() -> None:
    class Odd(Unavailable):
        def __init__(self, one: str, two: str, three: str) -> None:
            super().__init__(one, two + three)

    def write(_values: Sequence[int]) -> Sequence[int | CoterieError]:
        raise Odd("odd", "", "")

    commit = GroupCommit(write)
    commit._waiting = [other] = [_Pending[int, int](1)]
    with pytest.raises(Odd, match="odd"):
        commit(2)
    assert isinstance(other.error, Odd)


def test_an_interrupted_write_leaves_nobody_waiting() -> None:
    log = Log()
    log.go.set()

    def interrupted(_values: Sequence[int]) -> Sequence[int | CoterieError]:
        raise KeyboardInterrupt

    commit = GroupCommit(interrupted)
    with pytest.raises(KeyboardInterrupt):
        commit(1)
    assert not commit._waiting


def test_a_failure_of_others_is_not_that_of_the_one_who_writes_for_them() -> None:
    log = Log()
    log.go.set()
    commit = GroupCommit(log.write)
    commit._waiting = [_Pending(value) for value in range(14, 14 + _MOST)]
    assert commit(1) == 2
    assert [len(batch) for batch in log.batches] == [_MOST, 1]
