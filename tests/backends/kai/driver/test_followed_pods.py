"""Followed pods: what is reported of them once, and what is waited for before it is reported."""

from __future__ import annotations

import math

from coterie.backends.base.driver import News, TaskAttempt
from coterie.backends.kai.driver.objects import TaskPod
from coterie.backends.kai.driver.observation import followed_pods
from coterie.backends.kai.driver.observation.followed_pods import FollowedPods
from coterie.lifecycle import LossCause, Lost, Running, Scheduled
from tests.backends.kai.driver.test_pod_report import START, STARTED, pod

KEY = TaskAttempt("w-1", "g", "t", 1)
REASON = "CreateContainerConfigError"
WORDS = 'failed to create subPath directory for volumeMount "workspace" of container "task"'
LACKING = pod({"waiting": {"reason": REASON, "message": WORDS}})


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def followed() -> tuple[FollowedPods, Clock]:
    clock = Clock()
    found = FollowedPods(clock)
    found.follow("p", KEY)
    return found, clock


def news(found: FollowedPods, now: TaskPod) -> list[News]:
    return [each for _, each in found.news("p", now)]


def test_a_folder_that_two_nodes_make_at_the_same_moment_costs_a_task_nothing() -> None:
    found, clock = followed()
    assert news(found, LACKING) == [Scheduled("t", 1, "n1")]
    clock.now = 15.0
    assert found.overdue() == []
    assert news(found, pod({"running": {"startedAt": START}})) == [Running("t", 1, "n1", STARTED)]
    clock.now = 600.0
    assert found.overdue() == []


def test_a_folder_that_cannot_be_made_at_all_is_a_start_error_after_a_while() -> None:
    found, clock = followed()
    news(found, LACKING)
    clock.now = 30.0
    assert news(found, LACKING) == []
    clock.now = 60.0
    # No change of the pod announces it.
    assert found.overdue() == ["p"]
    assert news(found, LACKING) == [Lost("t", 1, LossCause.START_ERROR, f"{REASON}: {WORDS}")]
    assert news(found, LACKING) == []


def test_any_other_fault_of_a_container_is_told_at_once() -> None:
    found, _ = followed()
    broken = pod({"waiting": {"reason": REASON, "message": "secret not found"}})
    assert news(found, broken)[-1] == Lost("t", 1, LossCause.START_ERROR, f"{REASON}: secret not found")


def test_a_pod_that_somebody_deleted_is_told_when_its_eviction_is_known_or_nobody_tells_of_one() -> None:
    said = {"words": ""}
    clock = Clock()
    found = FollowedPods(clock, lambda _: said["words"])
    gone = pod({"running": {"startedAt": START}}, deleted="2026-11-17T10:00:30Z")
    found.follow("p", KEY)
    assert news(found, gone) == [Scheduled("t", 1, "n1"), Running("t", 1, "n1", STARTED)]
    assert found.unexplained() == []
    clock.now = found.due
    assert 0.0 < clock.now < followed_pods.EVENT_S
    assert found.unexplained() == ["p"]
    # Meanwhile the pod itself is gone, and is not forgotten for that.
    assert [each for _, each in found.news("p", None, gone)] == []
    assert found.existed("p")
    said["words"] = "Pod default/p was preempted"
    clock.now = found.due
    assert [each for _, each in found.news("p", None)] == [Lost("t", 1, LossCause.PREEMPTED, said["words"])]
    assert (len(found), found.due) == (0, math.inf)


def test_a_deletion_that_the_pod_itself_explains_meanwhile_is_told_at_once_and_looked_for_no_more() -> None:
    found, clock = followed()
    running = {"running": {"startedAt": START}}
    news(found, pod(running, deleted="2026-11-17T10:00:30Z"))
    clock.now = found.due
    evicted = pod(running, deleted="2026-11-17T10:00:30Z", reason="Evicted", message="the node was low on memory")
    assert news(found, evicted) == [Lost("t", 1, LossCause.EVICTED, "the node was low on memory")]
    assert (found.due, found.unexplained()) == (math.inf, [])


def test_a_pod_whose_deletion_no_watch_has_shown_is_told_when_its_eviction_is_known_or_nobody_tells_of_one() -> None:
    said = {"words": ""}
    clock = Clock()
    found = FollowedPods(clock, lambda _: said["words"])
    found.follow("p", KEY)
    found.follow("q", KEY._replace(task="u"))
    running = pod({"running": {"startedAt": START}})
    assert [each for name in "pq" for each in found.news(name, None, running)] == []
    said["words"] = "it was preempted"
    clock.now = found.due
    assert [each for _, each in found.news("p", None)] == [Lost("t", 1, LossCause.PREEMPTED, "it was preempted")]
    said["words"] = ""
    clock.now = followed_pods.EVENT_S
    lost = Lost("u", 1, LossCause.PROCESS_LOST, "its pod was deleted by somebody else")
    assert [each for _, each in found.news("q", None)] == [lost]


def test_a_pod_that_somebody_deleted_is_lost_after_a_moment_without_an_event() -> None:
    clock = Clock()
    found = FollowedPods(clock)
    gone = pod({"running": {"startedAt": START}}, deleted="2026-11-17T10:00:30Z")
    found.follow("p", KEY)
    news(found, gone)
    clock.now = followed_pods.EVENT_S
    assert news(found, gone) == [Lost("t", 1, LossCause.PROCESS_LOST, "its pod was deleted by somebody else")]
    assert found.due == math.inf
    assert news(found, gone) == []
