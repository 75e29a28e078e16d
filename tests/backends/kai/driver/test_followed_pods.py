"""Followed pods: what is reported of them once, and what is waited for before it is reported."""

from __future__ import annotations

from coterie.backends.base.driver import News, TaskAttempt
from coterie.backends.kai.driver.objects import TaskPod
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
