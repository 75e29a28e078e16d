"""Time limits: those that apply to a group now, and the consequences of a passed one."""

from __future__ import annotations

from collections.abc import Iterator

from coterie.lifecycle.groups import finish
from coterie.lifecycle.spec import GroupRules, Spec
from coterie.lifecycle.state import GroupState, State
from coterie.lifecycle.status import Status
from coterie.lifecycle.transition import Transition

_WAITS = (Status.PROCESSING, Status.SCHEDULING, Status.RESCHEDULED)


def deadline(spec: Spec, state: State) -> float | None:
    """Return when the next time limit passes, if there is one: the time at which a `Tick` is due."""
    return min(
        (at for index in spec.limited for at, _, _ in _limits(spec.groups[index], state.groups[index])),
        default=None,
    )


def tick(transition: Transition) -> None:
    """End the groups with a passed time limit."""
    groups = transition.whole_groups()
    for index in transition.spec.limited:
        passed = [limit for limit in _limits(transition.rules(index), groups[index]) if limit[0] <= transition.now]
        if passed:
            _, status, message = min(passed)
            finish(transition, index, status, message)


def overdue(transition: Transition, index: int) -> bool:
    """End a group whose execution limit passed before the current observation happened; return whether it did."""
    group, at = transition.groups[index], _execution_limit(transition.rules(index), transition.groups[index])
    if group.status.final or at is None or transition.at < at:
        return False
    finish(transition, index, Status.FAILED_EXEC_TIMEOUT, _not_done(transition.rules(index)))
    return True


def _execution_limit(rules: GroupRules, group: GroupState) -> float | None:
    if rules.exec_timeout_s is None or group.started is None:
        return None
    return group.started + rules.exec_timeout_s


def _not_done(rules: GroupRules) -> str:
    return f"not finished within {rules.exec_timeout_s:g} s"


def _limits(rules: GroupRules, group: GroupState) -> Iterator[tuple[float, Status, str]]:
    """Yield the time of each limit, with the status and message of the group once it passes."""
    if group.status.final:
        return
    if rules.queue_timeout_s is not None:
        since = [task.queued for task in group.tasks if task.status in _WAITS and task.queued is not None]
        if since:
            why = f": {group.waiting.reason}: {group.waiting.message}" if group.waiting else ""
            message = f"not placed within {rules.queue_timeout_s:g} s{why}"
            yield min(since) + rules.queue_timeout_s, Status.FAILED_QUEUE_TIMEOUT, message
    if rules.start_timeout_s is not None:
        since = [task.placed for task in group.tasks if task.status is Status.INITIALIZING and task.placed is not None]
        if since:
            message = f"not started within {rules.start_timeout_s:g} s"
            yield min(since) + rules.start_timeout_s, Status.FAILED_START_TIMEOUT, message
    if (at := _execution_limit(rules, group)) is not None:
        yield at, Status.FAILED_EXEC_TIMEOUT, _not_done(rules)
