"""The domains of bound pods: written once for a gang, again after failures, and for one gang apart from another."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from coterie.backends.base.driver import TaskAttempt
from coterie.backends.kai.driver.bound_domains import BoundDomains
from coterie.backends.kai.driver.objects import ObjectMeta, TaskPod, TaskPodSpec
from coterie.errors import Unavailable
from coterie.kube.api import Api
from coterie.topology.levels import Topology
from tests.backends.kai.builders import POOL

FLAT = replace(POOL, topology=Topology())


@dataclass
class Gangs:
    """Pods by name, the ConfigMaps written for them, and a clock."""

    pods: dict[str, TaskPod] = field(default_factory=dict)
    written: list[dict[str, str]] = field(default_factory=list)
    uids: list[str] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)
    existing: bool = True
    now: float = 100.0

    def __post_init__(self) -> None:
        self.domains = BoundDomains(cast("Api", None), "default", "s1", lambda: self.now)

    def expect(self, task: str, workflow: str = "w", pool: str = "p") -> None:
        self.domains.expect(f"{workflow}-{task}", TaskAttempt(workflow, "g", task, 1), pool)

    def bind(self, task: str, workflow: str = "w") -> None:
        name = f"{workflow}-{task}"
        self.pods[name] = TaskPod(ObjectMeta(name), TaskPodSpec("n1"))

    def write(self, followed: Collection[str] = ("w-a", "w-b", "v-a"), **pools: Any) -> None:
        self.domains.write(pools, followed, self.pods.get, lambda _: {})

    def apply(self, _: object, manifest: dict[str, Any], uid: str) -> str:
        if manifest["metadata"]["labels"]["coterie.dev/workflow"] in self.failing:
            raise Unavailable("it cannot be written")
        self.written.append(manifest["data"])
        self.uids.append(uid)
        return "u1"


@pytest.fixture
def gangs(monkeypatch: pytest.MonkeyPatch) -> Gangs:
    found = Gangs()
    monkeypatch.setattr("coterie.backends.kai.driver.bound_domains.apply_own", found.apply)
    monkeypatch.setattr(
        "coterie.backends.kai.driver.bound_domains.find", lambda *_: ObjectMeta("m") if found.existing else None
    )
    return found


def test_a_gang_that_cannot_be_written_delays_no_other_and_is_tried_again(gangs: Gangs) -> None:
    gangs.failing.add("w")
    for workflow in ("w", "v"):
        gangs.expect("a", workflow)
        gangs.bind("a", workflow)
    gangs.write(p=POOL)
    assert gangs.written == [{"a": "n1"}]
    assert gangs.domains.problems == ["it cannot be written"]
    assert gangs.domains.due == gangs.now + 1
    gangs.failing.clear()
    gangs.write(p=POOL)
    assert len(gangs.written) == 1
    gangs.now += 1
    gangs.write(p=POOL)
    assert len(gangs.written) == 2
    assert gangs.domains.problems == []
    assert gangs.domains.due == float("inf")


def test_a_gang_that_is_bound_bit_by_bit_is_written_a_few_times_and_looked_up_once(gangs: Gangs) -> None:
    tasks = [f"t{number}" for number in range(100)]
    for task in tasks:
        gangs.expect(task)
    for task in tasks:
        gangs.bind(task)
        gangs.write([f"w-{each}" for each in tasks], p=POOL)
        gangs.now += 0.1
    assert gangs.written[-1].keys() == set(tasks)
    assert len(gangs.written) == 5
    assert gangs.uids == ["", "u1", "u1", "u1", "u1"]


def test_a_bound_pod_that_vanishes_leaves_nothing_due(gangs: Gangs) -> None:
    gangs.expect("a")
    gangs.expect("b")
    gangs.bind("a")
    gangs.write(p=POOL)
    assert gangs.domains.due == gangs.now + 0.5
    gangs.pods.clear()
    gangs.now += 1
    gangs.write(p=POOL)
    assert gangs.domains.due == float("inf")
    assert gangs.written == []


@pytest.mark.parametrize(("existing", "written"), [(True, [{"a": "n1"}]), (False, [])])
def test_pods_of_a_pool_that_lost_its_levels_get_what_they_wait_for(
    gangs: Gangs, *, existing: bool, written: list[dict[str, str]]
) -> None:
    gangs.existing = existing
    gangs.expect("a")
    gangs.bind("a")
    gangs.write(p=FLAT)
    assert gangs.written == written


def test_a_pool_that_bound_tasks_wait_for_is_named(gangs: Gangs) -> None:
    gangs.expect("a")
    gangs.write()
    assert gangs.domains.problems == []
    gangs.bind("a")
    gangs.write()
    assert gangs.domains.problems == ['pool "p" or its ClusterTopology is not known here: bound tasks of w wait']
    gangs.now += 1
    gangs.write(p=POOL)
    assert gangs.written == [{"a": "n1"}]


def test_tasks_that_are_created_again_get_their_domains_again(gangs: Gangs) -> None:
    for task in ("a", "b"):
        gangs.expect(task)
    gangs.bind("a")
    gangs.write(p=POOL)
    gangs.now += 1
    gangs.write(p=POOL)
    gangs.expect("a")
    gangs.write(p=POOL)
    gangs.now += 1
    gangs.write(p=POOL)
    assert gangs.written == [{"a": "n1"}, {"a": "n1"}]
