"""The start order of local tasks under the limit on running tasks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.backends.local.attempt_folder import AttemptEnvironment, AttemptRecord, make
from coterie.backends.local.start_order import StartOrder
from coterie.backends.local.supervisor import ProcessLimits, Supervisor
from coterie.backends.local.work_order import AttemptEnded, AttemptKey, AttemptRunning, AttemptStarting
from coterie.errors import UsageError
from tests.backends.local.builders import ended, key, order, reached, running, shell, supervising


def test_no_more_run_than_may_and_the_rest_come_in_order(tmp_path: Path) -> None:
    script = f"echo + >> {tmp_path}/trace; sleep 0.05; echo - >> {tmp_path}/trace"
    with supervising(tmp_path / "root", processes=2) as supervisor:
        for number in range(8):
            supervisor.start([shell(f"echo {number} >> {tmp_path}/order; {script}", task=f"t{number}")])
        ends = [reached(supervisor, key(f"t{number}"), AttemptEnded) for number in range(8)]
    assert all(isinstance(end, AttemptEnded) and end.exit_code == 0 for end in ends)
    depth = most = 0
    for line in (tmp_path / "trace").read_text().split():
        depth += 1 if line == "+" else -1
        most = max(most, depth)
    assert most <= 2
    came = [int(line) for line in (tmp_path / "order").read_text().split()]
    # Two run beside each other, so one that began before may be slower to say so.
    assert all(sum(later < number for later in came[place:]) <= 1 for place, number in enumerate(came)), came


def test_those_that_start_together_wait_until_there_is_room_for_all(tmp_path: Path) -> None:
    with supervising(tmp_path / "root", processes=3) as supervisor:
        running(supervisor, order("sleep", "1000", task="one"))
        running(supervisor, order("sleep", "1000", task="two"))
        supervisor.start([order("sleep", "1000", task="a"), order("sleep", "1000", task="b")])
        supervisor.start([order("sleep", "1000", task="later")])
        assert [supervisor.status(key(task)) for task in ("a", "b", "later")] == [AttemptStarting()] * 3
        supervisor.kill(key("one"))
        for task in "ab":
            assert isinstance(reached(supervisor, key(task), AttemptRunning), AttemptRunning)
        assert supervisor.status(key("later")) == AttemptStarting()


def test_more_than_may_ever_run_at_a_time_are_refused_and_nothing_is_left_of_them(tmp_path: Path) -> None:
    with supervising(tmp_path / "root", processes=2) as supervisor:
        with pytest.raises(UsageError, match="3 tasks are to start together, and at most 2 tasks run") as caught:
            supervisor.start([order("true", task=task) for task in "abc"])
        assert "--processes 3" in caught.value.hint
        assert supervisor.statuses() == {}
        assert [end.exit_code for end in ended(supervisor, *(order("true", task=task) for task in "ab"))] == [0, 0]


def test_those_that_were_accepted_when_more_could_run_start_together_when_nothing_else_runs(tmp_path: Path) -> None:
    meet = f"touch {tmp_path}/$COTERIE_TASK; while ! test -e {tmp_path}/a -a -e {tmp_path}/b; do sleep 0.01; done"
    pair = [shell(meet, task=task, environment={"COTERIE_TASK": task}) for task in "ab"]
    before = Supervisor(tmp_path / "root", ProcessLimits(processes=2))
    running(before, order("sleep", "1000", task="one"))
    before.start(pair)
    before.close()
    with supervising(tmp_path / "root", processes=1) as supervisor:
        supervisor.start(pair)
        supervisor.kill(key("one"))
        ends = [reached(supervisor, each.key, AttemptEnded) for each in pair]
        assert all(isinstance(end, AttemptEnded) and end.exit_code == 0 for end in ends)


def test_what_waited_still_waits_in_its_turn_after_a_restart(tmp_path: Path) -> None:
    before = Supervisor(tmp_path / "root", ProcessLimits(processes=1))
    running(before, shell(f"while ! test -e {tmp_path}/go; do sleep 0.01; done", task="first"))
    for task in ("b", "a", "c"):
        before.start([shell(f"echo {task} >> {tmp_path}/order", task=task)])
    before.close()
    with supervising(tmp_path / "root", processes=1) as after:
        assert isinstance(after.status(key("first")), AttemptRunning)
        assert after.status(key("a")) == AttemptStarting()
        (tmp_path / "go").touch()
        for task in "bac":
            reached(after, key(task), AttemptEnded)
        assert (tmp_path / "order").read_text().split() == ["b", "a", "c"]


def test_those_that_were_cut_off_while_they_were_accepted_wait_for_the_rest(tmp_path: Path) -> None:
    pair = [order("true", task=task) for task in "ab"]
    company = tuple(each.key for each in pair)
    make(tmp_path / "root", pair[0], AttemptRecord(company, 1), AttemptEnvironment({}, {}))
    with supervising(tmp_path / "root") as supervisor:
        ended(supervisor, order("true", task="other"))
        assert supervisor.status(key("a")) == AttemptStarting()
        assert [end.exit_code for end in ended(supervisor, *pair)] == [0, 0]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.integers(1, 5), st.data())
def test_all_get_their_turn_and_nobody_overtakes(sizes: list[int], most: int, data: st.DataObject) -> None:
    order = StartOrder()
    companies = [tuple(AttemptKey("w", f"g{turn}", f"t{n}") for n in range(size)) for turn, size in enumerate(sizes)]
    for company in companies:
        for each in company:
            order.add(each, company)
    begun: list[AttemptKey] = []
    active: list[AttemptKey] = []
    while len(begun) < sum(sizes):
        if ready := list(order.next(len(active), most, lambda _: True)):
            assert len(active) + len(ready) <= most or not active
            for each in ready:
                order.drop(each, next(company for company in companies if each in company))
            begun += ready
            active += ready
        else:
            assert active, "nothing runs and nobody may begin"
            active.remove(data.draw(st.sampled_from(active)))
    assert begun == [each for company in companies for each in company]
