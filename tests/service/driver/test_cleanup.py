"""The removal of deleted workflows: bounded in every turn, and repeated where it fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from coterie.errors import Unavailable
from coterie.service.driver import cleanup
from coterie.service.driver.cleanup import Cleanup
from coterie.service.driver.problems import ServiceProblems

EACH_S = 0.03


class SlowDriver:
    """A driver that takes a moment to remove a workflow, and cannot remove some."""

    def __init__(self) -> None:
        self.seconds, self.gone, self.stuck = 1000.0, list[str](), set[str]()

    def now(self) -> float:
        return self.seconds

    def forget(self, workflow: str) -> None:
        self.seconds += EACH_S
        if workflow in self.stuck:
            raise Unavailable("it is in use", "")
        self.gone.append(workflow)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> SlowDriver:
    found = SlowDriver()
    monkeypatch.setattr(cleanup, "time", SimpleNamespace(monotonic=found.now))
    return found


def made(driver: SlowDriver, problems: ServiceProblems) -> Cleanup:
    unused: Any = None
    return Cleanup(unused, unused, cast("Any", [SimpleNamespace(driver=driver, problem="tasks")]), problems)


def test_a_turn_removes_workflows_for_a_limited_time_and_the_next_goes_on(driver: SlowDriver) -> None:
    found = made(driver, ServiceProblems(driver.now))
    names = {f"w{number}" for number in range(50)}
    found.deleted |= names
    turns = 0
    while found.deleted:
        began = driver.seconds
        found.forget()
        assert driver.seconds - began < cleanup._FORGET_S + 2 * EACH_S
        assert found.behind is bool(found.deleted)
        turns += 1
    assert turns > 10
    assert sorted(driver.gone) == sorted(names)


def test_what_cannot_be_removed_is_said_and_tried_in_a_later_turn(driver: SlowDriver) -> None:
    problems = ServiceProblems(driver.now)
    found = made(driver, problems)
    driver.stuck.add("w0")
    found.delete("w0")
    assert [each.message for each in problems.all()] == ["it is in use"]
    found.forget()
    assert (found.deleted, found.behind) == ({"w0"}, False)
    driver.stuck.clear()
    found.forget()
    assert (driver.gone, found.deleted) == (["w0"], set())


def test_workflows_that_cannot_be_removed_keep_no_others(driver: SlowDriver) -> None:
    found = made(driver, ServiceProblems(driver.now))
    driver.stuck = {f"stuck{number}" for number in range(3)}
    found.deleted |= driver.stuck | {f"w{number}" for number in range(20)}
    for _ in range(40):
        found.forget()
    assert found.deleted == driver.stuck
    driver.stuck = set()
    for _ in range(4):
        found.forget()
    assert not found.deleted


class StrayDriver:
    """A driver that may be out of reach."""

    def __init__(self, *, reached: bool = True) -> None:
        self.reached, self.ended = reached, 0

    def end_strays(self, _workflows: object, _spared: object) -> None:
        if not self.reached:
            raise Unavailable("the cluster does not answer", "")
        self.ended += 1


@pytest.mark.parametrize(
    ("home", "reached", "left"),
    [
        ("east", True, ""),
        ("east", False, "its tasks may still run: the cluster does not answer"),
        ("west", True, 'its tasks on backend "west" were not stopped, since that backend is not known here'),
    ],
)
def test_what_may_still_run_of_a_workflow_that_is_ended_by_force_is_said(
    home: str, left: str, *, reached: bool
) -> None:
    driver, here = StrayDriver(reached=reached), StrayDriver()
    connections = [SimpleNamespace(home="", driver=here), SimpleNamespace(home="east", driver=driver)]
    table = SimpleNamespace(of_backend=lambda _: {}, spared=set())
    unused: Any = None
    found = Cleanup(unused, cast("Any", table), cast("Any", connections), ServiceProblems(lambda: 0.0))
    assert found.stop_strays(cast("Any", SimpleNamespace(digest={"backend": home}))) == left
    assert (here.ended, driver.ended) == (1, int(reached))
