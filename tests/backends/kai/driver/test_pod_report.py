"""Reports of pods about their tasks."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from coterie.backends.kai.driver.objects import TaskPod
from coterie.backends.kai.driver.observation.pod_report import missing, report
from coterie.lifecycle import Ended, LossCause, Lost, Observation, Running, Scheduled

START, END = "2026-11-17T10:00:00Z", "2026-11-17T10:00:05Z"
STARTED, FINISHED = 1794909600.0, 1794909605.0


def pod(state: dict[str, Any] | None = None, *, node: str = "n1", deleted: str = "", **status: Any) -> TaskPod:
    """Return a pod in some state of its container."""
    statuses = [{"name": "task", "state": state}] if state is not None else []
    metadata: dict[str, Any] = {"name": "p"}
    if deleted:
        metadata |= {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": 30}
    data = {"metadata": metadata, "spec": {"nodeName": node}, "status": {"containerStatuses": statuses, **status}}
    return msgspec.convert(data, TaskPod)


def ended(code: int, reason: str = "", message: str = "") -> dict[str, Any]:
    over = {"exitCode": code, "reason": reason, "message": message, "startedAt": START, "finishedAt": END}
    return {"terminated": over}


def last(found: TaskPod) -> Observation:
    return list(report(found, "t", 3))[-1]


def test_a_pod_without_a_node_says_nothing() -> None:
    assert list(report(pod(node=""), "t", 1)) == []


def test_a_running_pod_says_where_it_runs_and_since_when() -> None:
    found = list(report(pod({"running": {"startedAt": START}}), "t", 2))
    assert found == [Scheduled("t", 2, "n1"), Running("t", 2, "n1", STARTED)]


@pytest.mark.parametrize(
    ("state", "code", "said"),
    [
        (ended(0, "Completed", "all well"), 0, ""),
        (ended(7, "Error", "one\n  no such file \n\n"), 7, "no such file"),
        (ended(137, "OOMKilled"), 137, "out of memory"),
    ],
)
def test_an_ended_pod_has_its_exit_code_and_last_words(state: dict[str, Any], code: int, said: str) -> None:
    assert last(pod(state)) == Ended("t", 3, code, said, STARTED, FINISHED)


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("ImagePullBackOff", LossCause.IMAGE_PULL),
        ("InvalidImageName", LossCause.IMAGE_PULL),
        ("ErrImageNeverPull", LossCause.IMAGE_PULL),
        ("CreateContainerError", LossCause.START_ERROR),
        ("CreateContainerConfigError", LossCause.START_ERROR),
    ],
)
def test_a_container_that_cannot_start_is_lost(reason: str, cause: LossCause) -> None:
    assert last(pod({"waiting": {"reason": reason, "message": "no"}})) == Lost("t", 3, cause, f"{reason}: no")


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing", "ErrImagePull"])
def test_a_container_that_may_still_start_is_waited_for(reason: str) -> None:
    assert last(pod({"waiting": {"reason": reason}})) == Scheduled("t", 3, "n1")


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("PreemptionByScheduler", LossCause.PREEMPTED),
        ("DeletionByTaintManager", LossCause.NODE_FAILED),
        ("EvictionByEvictionAPI", LossCause.EVICTED),
        ("SomethingNew", LossCause.EVICTED),
    ],
)
def test_a_disrupted_pod_is_lost_for_the_reason_of_its_condition(reason: str, cause: LossCause) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "make room"}
    found = pod({"running": {"startedAt": START}}, deleted=END, conditions=[condition])
    assert last(found) == Lost("t", 3, cause, "make room")


@pytest.mark.parametrize(("reason", "cause"), [("Evicted", LossCause.EVICTED), ("NodeLost", LossCause.NODE_FAILED)])
def test_a_failed_pod_is_lost_for_its_reason(reason: str, cause: LossCause) -> None:
    assert last(pod(phase="Failed", reason=reason, message="disk pressure")) == Lost("t", 3, cause, "disk pressure")


def test_a_pod_that_its_node_refused_is_lost() -> None:
    refused = last(pod(phase="Failed", reason="OutOfcpu", message="not enough cpu"))
    assert refused == Lost("t", 3, LossCause.PROCESS_LOST, "not enough cpu")


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (ended(3, "Error", "fetching\nno such bucket"), ": no such bucket"),
        (ended(137, "OOMKilled"), ": out of memory"),
        (ended(1, "Error"), ""),
    ],
)
def test_an_init_container_that_failed_is_named(state: dict[str, Any], said: str) -> None:
    statuses = [{"name": "sidecar", "state": ended(143, "Error")}, {"name": "fetch", "state": state}]
    found = pod({"waiting": {"reason": "PodInitializing"}}, phase="Failed", initContainerStatuses=statuses)
    code = state["terminated"]["exitCode"]
    wanted = f'init container "fetch" ended with exit code {code}{said}'
    assert last(found) == Lost("t", 3, LossCause.START_ERROR, wanted)


def test_a_pod_that_somebody_deletes_is_lost_although_its_container_ends_by_that() -> None:
    # Its deletion was requested thirty seconds before the timestamp.
    stopped = pod(ended(143, "Error"), deleted="2026-11-17T10:00:34Z")
    assert last(stopped) == Lost("t", 3, LossCause.PROCESS_LOST, "its pod was deleted by somebody else")


def test_a_pod_that_ended_before_somebody_deleted_it_has_ended() -> None:
    assert isinstance(last(pod(ended(0, "Completed"), deleted="2026-11-17T10:10:00Z")), Ended)


def test_a_command_that_cannot_run_is_a_start_error_and_an_unknown_end_a_loss() -> None:
    wrong = last(pod(ended(128, "StartError", "exec: no such file")))
    assert wrong == Lost("t", 3, LossCause.START_ERROR, "exec: no such file")
    unknown = last(pod(ended(137, "ContainerStatusUnknown")))
    assert isinstance(unknown, Lost)
    assert unknown.cause is LossCause.PROCESS_LOST


def test_a_pod_past_its_deadline_has_ended_with_its_times() -> None:
    found = last(pod(ended(137, "Error"), phase="Failed", reason="DeadlineExceeded"))
    assert found == Ended("t", 3, 137, "stopped after its time limit", STARTED, FINISHED)
    assert isinstance(last(pod(phase="Failed", reason="DeadlineExceeded")), Ended)


def test_a_pod_that_is_gone_without_a_trace_is_lost() -> None:
    assert missing("t", 1, None).cause is LossCause.PROCESS_LOST
