"""The report of a pod about its task: where it runs, how it ended, or why it was lost."""

from __future__ import annotations

from collections.abc import Iterator

from coterie.backends.kai.driver.objects import (
    ContainerState,
    PodCondition,
    TaskPod,
    TerminatedState,
    seconds,
)
from coterie.config.pod_template import TASK_CONTAINER
from coterie.lifecycle import Ended, LossCause, Lost, Observation, Running, Scheduled

# Reasons of a waiting container that waiting longer does not help. `ErrImagePull` is followed by a second try.
_PULL = "ErrImagePull"
_IMAGE = frozenset({"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"})
_START = frozenset({"CreateContainerError", "CreateContainerConfigError", "RunContainerError", "PostStartHookError"})
# The words of a node that cannot make a folder of a workspace, with which a container is not lost at once: they are the
# same when another node makes that folder at the same moment, and the next try succeeds.
_FOLDER = "failed to create subPath directory"
# Reasons of an ended container whose command never ran.
_NEVER_RAN = frozenset({"StartError", "ContainerCannotRun"})
_UNKNOWN = "ContainerStatusUnknown"
_OUT_OF_MEMORY = "OOMKilled"
_DISRUPTIONS = {
    "PreemptionByScheduler": LossCause.PREEMPTED,
    "DeletionByTaintManager": LossCause.NODE_FAILED,
    "DeletionByPodGC": LossCause.NODE_FAILED,
    "EvictionByEvictionAPI": LossCause.EVICTED,
    "TerminationByKubelet": LossCause.EVICTED,
}
_FAILURES = {
    "Evicted": LossCause.EVICTED,
    "Preempting": LossCause.PREEMPTED,
    "NodeLost": LossCause.NODE_FAILED,
    "NodeShutdown": LossCause.NODE_FAILED,
    "Shutdown": LossCause.NODE_FAILED,
    "Terminated": LossCause.NODE_FAILED,
}
_DEADLINE = "DeadlineExceeded"
# The words of a loss whose cause the pod itself does not have.
DELETED = "its pod was deleted by somebody else"
# The exit code of a command that was asked to stop (128 + SIGTERM).
_STOPPED = 143
_LONGEST_WORDS = 300


def report(pod: TaskPod, task: str, attempt: int) -> Iterator[Observation]:
    """Yield everything that a pod says about an attempt at its task, in the order in which it happened."""
    if pod.spec.node_name:
        yield Scheduled(task, attempt, pod.spec.node_name)
    state = _state(pod)
    if state.running is not None:
        yield Running(task, attempt, pod.spec.node_name, seconds(state.running.started_at))
    if (end := _end(pod, state, task, attempt)) is not None:
        yield end


def missing(task: str, attempt: int, last: TaskPod | None) -> Lost:
    """Return the loss of a task whose pod is gone without Coterie's doing; `last` is its last known state."""
    found = _disruption(last) if last is not None else None
    if found is not None:
        return Lost(task, attempt, *found)
    return Lost(task, attempt, LossCause.PROCESS_LOST, DELETED)


def missing_image(pod: TaskPod) -> str:
    """Return why the image of a bound pod is not there yet, empty where nothing says so.

    A node tries once more before it gives up.
    """
    for status in (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())):
        waiting = status.state.waiting
        if waiting is not None and waiting.reason == _PULL:
            words = _words(waiting.message)
            return f"node {pod.spec.node_name} cannot pull an image" + (f": {words}" if words else "")
    return ""


def lacks_folder(pod: TaskPod) -> bool:
    """Return whether the node of a pod could not make a folder of its workspace, and tries again."""
    waiting = _state(pod).waiting
    return waiting is not None and waiting.reason in _START and _FOLDER in waiting.message


def _end(pod: TaskPod, state: ContainerState, task: str, attempt: int) -> Observation | None:
    over = state.terminated
    if pod.status.reason == _DEADLINE:
        code = over.exit_code if over is not None and over.exit_code else _STOPPED
        started = seconds(over.started_at) if over is not None else None
        at = seconds(over.finished_at) if over is not None else None
        return Ended(task, attempt, code, "stopped after its time limit", started, at)
    if (cause := _FAILURES.get(pod.status.reason)) is not None:
        return Lost(task, attempt, cause, _words(pod.status.message) or pod.status.reason)
    if pod.metadata.deletion_timestamp is not None and not _ended_before(pod, over):
        return missing(task, attempt, pod)
    if over is not None:
        return _ended(pod, over, task, attempt)
    if (broken := _failed_before(pod)) is not None:
        return Lost(task, attempt, LossCause.START_ERROR, broken)
    if pod.status.phase == "Failed":
        said = _words(pod.status.message) or pod.status.reason or "its node refused it"
        return Lost(task, attempt, LossCause.PROCESS_LOST, said)
    if state.waiting is not None and (cause := _never_starts(state.waiting.reason)) is not None:
        words = _words(state.waiting.message)
        return Lost(task, attempt, cause, f"{state.waiting.reason}: {words}" if words else state.waiting.reason)
    return None


def _ended(pod: TaskPod, over: TerminatedState, task: str, attempt: int) -> Observation:
    if over.reason in _NEVER_RAN:
        return Lost(task, attempt, LossCause.START_ERROR, _words(over.message) or over.reason)
    if over.reason == _UNKNOWN:
        found = _disruption(pod) or (LossCause.PROCESS_LOST, "its node does not know how it ended")
        return Lost(task, attempt, *found)
    said = "out of memory" if over.reason == _OUT_OF_MEMORY else _words(over.message) if over.exit_code else ""
    return Ended(task, attempt, over.exit_code, said, seconds(over.started_at), seconds(over.finished_at))


def _ended_before(pod: TaskPod, over: TerminatedState | None) -> bool:
    """Return whether a task ended by itself before the deletion of its pod was requested."""
    at = seconds(over.finished_at) if over is not None else None
    gone = seconds(pod.metadata.deletion_timestamp)
    if at is None or gone is None:
        return False
    # The timestamp is when the grace period ends. Times have whole seconds.
    return at <= gone - (pod.metadata.deletion_grace_period_seconds or 0)


def _never_starts(reason: str) -> LossCause | None:
    if reason in _IMAGE:
        return LossCause.IMAGE_PULL
    return LossCause.START_ERROR if reason in _START else None


def _state(pod: TaskPod) -> ContainerState:
    """Return the state of the task's container, or of an init container that keeps it from starting."""
    for status in pod.status.init_container_statuses or ():
        if status.state.waiting is not None and _never_starts(status.state.waiting.reason) is not None:
            return status.state
    found = pod.status.container_statuses or ()
    named = next((each for each in found if each.name == TASK_CONTAINER), None)
    return named.state if named is not None else ContainerState()


def _failed_before(pod: TaskPod) -> str | None:
    """Return which init container failed, so that the task never started, and how."""
    if pod.status.phase != "Failed":
        return None
    # The last one: those after it were never started, and sidecars before it were stopped because of it.
    for status in reversed(pod.status.init_container_statuses or ()):
        over = status.state.terminated
        if over is not None and over.exit_code:
            words = "out of memory" if over.reason == _OUT_OF_MEMORY else _words(over.message)
            said = f'init container "{status.name}" ended with exit code {over.exit_code}'
            return f"{said}: {words}" if words else said
    return None


def _disruption(pod: TaskPod) -> tuple[LossCause, str] | None:
    """Return why somebody ended a pod, as its condition says."""
    found = next((each for each in pod.status.conditions or () if _disrupted(each)), None)
    if found is None:
        return None
    return _DISRUPTIONS.get(found.reason, LossCause.EVICTED), _words(found.message) or found.reason


def _disrupted(condition: PodCondition) -> bool:
    return condition.type == "DisruptionTarget" and condition.status == "True"


def _words(text: str) -> str:
    """Return the last line of a text that says anything, shortened."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][-_LONGEST_WORDS:] if lines else ""
