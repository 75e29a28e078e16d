"""The transition function of a workflow: from a state and observations to the next state and new actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coterie.lifecycle import tasks
from coterie.lifecycle.actions import Action
from coterie.lifecycle.clock import tick
from coterie.lifecycle.groups import settle
from coterie.lifecycle.observations import (
    CancelAsked,
    Created,
    Ended,
    Gone,
    Lost,
    Observation,
    Placed,
    Recovered,
    Refused,
    Released,
    Rescued,
    RetryAsked,
    Running,
    Scheduled,
    Stopped,
    Submitted,
    Tick,
    Up,
)
from coterie.lifecycle.outstanding import grace, group_outstanding
from coterie.lifecycle.spec import Spec
from coterie.lifecycle.state import GroupState, State
from coterie.lifecycle.status import Status
from coterie.lifecycle.transition import Transition
from coterie.lifecycle.users import cancel, retry, submit


def step(spec: Spec, state: State, observation: Observation, now: float) -> tuple[State, tuple[Action, ...]]:
    """Return the state after an observation, and the actions that are new.

    The same arguments always give the same result. An observation of an unknown or outdated group, task or attempt
    leaves the state unchanged.
    """
    return advance(spec, state, (observation,), now)


def advance(
    spec: Spec, state: State, observations: Sequence[Observation], now: float
) -> tuple[State, tuple[Action, ...]]:
    """Return the state and the new actions after several observations made at one time, in their order.

    The outcome is that of the single steps in sequence, except for actions that would have been requested and revoked
    in between, and except for the clock: observations with a time of their own are applied before a tick.
    """
    transition = Transition(spec, state, now)
    for observation in _in_time(observations):
        at = _at(observation)
        transition.at = now if at is None else min(at, now)
        if isinstance(observation, CancelAsked | RetryAsked):
            transition.before = _state_after(transition)  # their effects depend on the status of the whole workflow
        _observe(transition, observation)
        settle(transition)
    after = _state_after(transition)
    current = state if after == state else after
    return current, (*transition.records, *_new_actions(spec, state, current))


def _in_time(observations: Sequence[Observation]) -> Sequence[Observation]:
    first = next((index for index, each in enumerate(observations) if isinstance(each, Tick)), len(observations))
    before, after = observations[:first], observations[first:]
    dated = [each for each in after if _at(each) is not None]
    return (*before, *dated, *(each for each in after if _at(each) is None)) if dated else observations


def _at(observed: Observation) -> float | None:
    """Return when the observed change happened, if its sender knows."""
    return observed.at if isinstance(observed, Running | Ended) else None


def _observe(transition: Transition, observed: Observation) -> None:
    match observed:
        case Submitted():
            submit(transition)
        case CancelAsked():
            cancel(transition, observed)
        case RetryAsked():
            retry(transition, observed)
        case Tick():
            tick(transition)
        case Recovered():
            tasks.recovered(transition, observed.node)
        case Placed() | Refused() | Rescued() | Released() | Created() | Gone():
            if (index := transition.spec.order.get(observed.group)) is not None:
                _observe_group(transition, index, observed)
        case Scheduled() | Up() | Running() | Ended() | Lost() | Stopped():
            index, place = transition.spec.places.get(observed.task, (-1, -1))
            if index >= 0 and transition.tasks(index)[place].attempt == observed.attempt:
                _observe_task(transition, index, place, observed)


def _observe_group(
    transition: Transition, index: int, observed: Placed | Refused | Rescued | Released | Created | Gone
) -> None:
    match observed:
        case Placed():
            tasks.placed(transition, index, observed)
        case Refused():
            tasks.refused(transition, index, observed)
        case Rescued():
            tasks.rescued(transition, index, observed)
        case Released():
            tasks.released(transition, index, observed.attempt, observed.tasks)
        case Created():
            tasks.created(transition, index, observed.attempt)
        case Gone():
            tasks.gone(transition, index, observed.attempt)


def _observe_task(
    transition: Transition, index: int, place: int, observed: Scheduled | Up | Running | Ended | Lost | Stopped
) -> None:
    match observed:
        case Ended():
            tasks.ended(transition, index, place, observed)
        case Lost():
            tasks.lost(transition, index, place, observed)
        case Stopped():
            tasks.stopped(transition, index, place)
        case _:
            tasks.progressed(transition, index, place, observed)


def _state_after(transition: Transition) -> State:
    before, groups = transition.before, transition.whole_groups()
    # A retry counts its own time, but is not the first start.
    begun = transition.started is not None or any(_ran_before(group) for group in groups)
    status, message = _status(groups, begun=begun, cancelled=transition.cancel is not None)
    ended = (before.ended if before.status.final else _last_end(groups)) if status.final else None
    return State(
        groups=groups,
        status=status,
        message=message,
        cancel=transition.cancel,
        submitted=transition.submitted,
        started=transition.started,
        ended=ended,
        events=transition.events,
    )


def _ran_before(group: GroupState) -> bool:
    return any(past.started is not None for task in group.tasks for past in task.past)


def _last_end(groups: Sequence[GroupState]) -> float | None:
    return max((group.ended for group in groups if group.ended is not None), default=None)


def _status(groups: Sequence[GroupState], *, begun: bool, cancelled: bool) -> tuple[Status, str]:
    """Derive a workflow's status or result, with its message, from its groups."""
    if all(group.status.final for group in groups):
        failed = [group for group in groups if group.status.failed]
        if not failed:
            return Status.COMPLETED, ""
        own = [group for group in failed if group.status is not Status.FAILED_UPSTREAM]
        if cancelled:
            own = [group for group in own if group.status is Status.FAILED_CANCELED] or own
        first = min(own, key=lambda group: group.ended or 0.0)
        return first.status, first.message
    if any(group.status is Status.RUNNING for group in groups):
        return Status.RUNNING, ""
    return (Status.WAITING if begun else Status.PENDING), ""


def _new_actions(spec: Spec, before: State, after: State) -> Iterator[Action]:
    """Yield the actions that became outstanding; an unchanged group has none."""
    was, now = grace(spec, before), grace(spec, after)
    for rules, old, new in zip(spec.groups, before.groups, after.groups, strict=True):
        if old is new and was == now:
            continue
        known = set(group_outstanding(rules, old, was))
        yield from (action for action in group_outstanding(rules, new, now) if action not in known)
