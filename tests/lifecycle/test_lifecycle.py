"""Life-cycle rules beyond the stories: times, history, deadlines, storage, and specs of workflow files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from coterie.config.configuration import Pool
from coterie.errors import UsageError
from coterie.frontends.workflow.lower import lower
from coterie.frontends.workflow.read import read_workflow
from coterie.frontends.workflow.values import by_action, codes
from coterie.lifecycle import (
    Action,
    Created,
    Delete,
    ExitAction,
    Gone,
    GroupRules,
    Holding,
    LossCause,
    Lost,
    Observation,
    PastAttempt,
    Placed,
    Priority,
    Record,
    Refused,
    Released,
    Rescued,
    Running,
    Scheduled,
    Spec,
    State,
    Status,
    Stopped,
    Submitted,
    TaskRules,
    Tick,
    Waiting,
    advance,
    deadline,
    from_json,
    holdings,
    initial,
    retry_fault,
    step,
    to_json,
)
from tests.lifecycle.story import observation_of, spec_of

ONE = spec_of(["group train: t; queue 60; start 30; exec 90", "exits t: RESCHEDULE 10"])


def after(spec: Spec, lines: Iterable[str]) -> tuple[State, list[Action]]:
    """Return where a story leads and all that was asked on the way; each line has its time in front."""
    state, actions = initial(spec), list[Action]()
    for line in lines:
        now, _, rest = line.partition(" ")
        state, new = step(spec, state, observation_of(rest), float(now))
        actions.extend(new)
    return state, actions


def test_every_stage_has_its_time() -> None:
    state, _ = after(ONE, ["1 submit", "2 placed train 1 t=n1", "3 running t 1", "5 ended t 1 0"])

    [group] = state.groups
    [task] = group.tasks
    assert (state.submitted, state.started, state.ended) == (1, 3, 5)
    assert (group.queued, group.started, group.ended) == (1, 3, 5)
    assert (task.queued, task.placed, task.started, task.ended) == (1, 2, 3, 5)


def test_a_task_has_its_own_times_however_late_they_are_heard_of() -> None:
    told = ["1 submit", "2 placed train 1 t=n1", "50 ended t 1 0 from 3 to 15"]
    state, actions = after(ONE, told)

    [group] = state.groups
    [task] = group.tasks
    assert (state.status, task.exit_code) == (Status.COMPLETED, 0)
    assert [(each.started, each.ended) for each in (state, group, task)] == [(3, 15)] * 3
    assert {one.at for one in actions if isinstance(one, Record) and one.kind == "TaskCompleted"} == {50}


@pytest.mark.parametrize(
    ("end", "status", "ran"),
    [
        ("ended t 1 0 from 10 to 99", "COMPLETED", (10, 99)),
        ("ended t 1 7 from 10 to 99", "FAILED", (10, 99)),
        ("ended t 1 0 from 10 to 100", "FAILED_EXEC_TIMEOUT", (10, 100)),
        ("ended t 1 143 from 10 to 165", "FAILED_EXEC_TIMEOUT", (10, 165)),
        ("ended t 1 0", "FAILED_EXEC_TIMEOUT", (10, 500)),
    ],
)
def test_a_time_limit_is_judged_by_when_a_task_ran_and_not_by_when_that_was_heard(
    end: str, status: str, ran: tuple[float, float]
) -> None:
    state, _ = after(ONE, ["1 submit", "2 placed train 1 t=n1", "11 running t 1 since 10"])
    state, _ = advance(ONE, state, [observation_of("tick"), observation_of(end)], 500)

    assert (state.status, (state.groups[0].tasks[0].started, state.groups[0].tasks[0].ended)) == (status, ran)


def test_a_group_ends_with_the_last_of_its_tasks_in_whatever_order_that_is_heard() -> None:
    spec = spec_of(["group train: a b; all"])
    told = ["1 submit", "2 placed train 1 a=n1 b=n2", "50 ended a 1 0 from 4 to 30", "51 ended b 1 0 from 3 to 20"]
    state, _ = after(spec, told)

    assert [task.ended for task in state.groups[0].tasks] == [30, 20]
    assert (state.started, state.ended) == (3, 30)


@pytest.mark.parametrize("told", ["ended t 1 0 from 1 to 2", "ended t 1 0 from 90 to 80", "ended t 1 0 from 99 to 99"])
def test_times_that_cannot_be_are_brought_within_what_is_known(told: str) -> None:
    state, _ = after(ONE, ["1 submit", "5 placed train 1 t=n1", f"50 {told}"])

    [task] = state.groups[0].tasks
    assert 5 <= (task.started or 0) <= (task.ended or 0) <= 50


def test_earlier_attempts_are_kept() -> None:
    told = ["1 submit", "2 placed train 1 t=n1", "3 running t 1", "5 ended t 1 10", "6 gone train 1"]
    state, _ = after(ONE, [*told, "7 released train 1 t", "8 placed train 2 t=n2", "9 ended t 2 0"])

    [task] = state.groups[0].tasks
    assert task.past == (PastAttempt(1, Status.RESCHEDULED, "n1", 10, "", 3, 5),)
    assert (task.attempt, task.node, task.exit_code) == (2, "n2", 0)


@pytest.mark.parametrize(
    ("told", "due"),
    [
        ([], None),
        (["5 submit"], 65),
        (["5 submit", "10 placed train 1 t=n1"], 40),
        (["5 submit", "10 placed train 1"], 65),
        (["5 submit", "10 placed train 1 t=n1", "20 running t 1"], 110),
        (["5 submit", "10 placed train 1 t=n1", "20 lost t 1 Evicted"], 80),
        (["5 submit", "10 cancel"], None),
    ],
)
def test_the_next_deadline_is_that_of_the_stage(told: list[str], due: float | None) -> None:
    state, _ = after(ONE, told)

    assert deadline(ONE, state) == due


@pytest.mark.parametrize(
    ("told", "status", "said"),
    [
        (["0 submit", "1 refused train 1 NoCapacity full", "60 tick"], "FAILED_QUEUE_TIMEOUT", "NoCapacity: full"),
        (["0 submit", "1 placed train 1 t=n1", "31 tick"], "FAILED_START_TIMEOUT", "not started within 30 s"),
        (["0 submit", "1 placed train 1 t=n1", "2 ended t 1 7"], "FAILED", "exit code 7"),
        (["0 submit", "1 cancel bad data"], "FAILED_CANCELED", "canceled: bad data"),
        (["0 submit", "1 placed train 1 t=n1", "2 lost t 1 StartError no x"], "FAILED_START_ERROR", "no x"),
    ],
)
def test_a_workflow_that_failed_says_why(told: list[str], status: str, said: str) -> None:
    state, _ = after(ONE, told)

    assert state.status == status
    assert said in state.message
    assert said in state.groups[0].tasks[0].message


def test_why_a_group_waits_is_shown_since_the_reason_began() -> None:
    told = ["0 submit", "5 refused train 1 NoCapacity 8 lack", "9 refused train 1 NoCapacity 4 lack"]
    state, actions = after(ONE, told)

    assert state.groups[0].waiting == Waiting("NoCapacity", "4 lack", 5)
    assert [one.message for one in actions if isinstance(one, Record) and one.kind == "Waiting"] == [
        "NoCapacity: 8 lack"
    ]


def test_events_are_numbered_without_gaps() -> None:
    told = ["1 submit", "2 placed train 1 t=n1", "3 running t 1", "5 ended t 1 0", "6 gone train 1"]
    state, actions = after(ONE, [*told, "7 released train 1 t"])

    records = [action for action in actions if isinstance(action, Record)]
    assert [record.number for record in records] == list(range(1, state.events + 1))
    assert [record.kind for record in records] == [
        "Queued",
        "Placed",
        "TaskRunning",
        "TaskCompleted",
        "GroupCompleted",
        "Cleaned",
    ]


def test_capacity_counts_as_held_until_nothing_is_left() -> None:
    told = ["0 submit", "1 placed train 1 t=n1", "2 cancel"]
    held = Holding("train", "t", 1, "n1")

    assert list(holdings(after(ONE, told)[0])) == [held]
    assert not list(holdings(after(ONE, [*told, "3 gone train 1"])[0]))


def test_many_observations_at_once_lead_where_single_ones_do() -> None:
    spec = spec_of(["group train: lead* worker"])
    lines = ["submit", "placed train 1 lead=n1 worker=n2", "up lead 1", "up worker 1", "running lead 1"]
    single, _ = after(spec, [f"3 {line}" for line in lines])

    state, actions = advance(spec, initial(spec), [observation_of(line) for line in lines], 3)

    assert state == single
    assert [action.id for action in actions if not isinstance(action, Record)] == ["go/worker/1"]


@pytest.mark.parametrize(
    ("told", "task", "fault"),
    [
        (["0 submit"], None, "the workflow has not ended, it is PENDING"),
        (["0 submit", "1 placed a 1 x=n1", "2 ended x 1 0"], None, "the workflow has not ended, it is WAITING"),
        (["0 submit", "1 cancel"], None, ""),
        (["0 submit", "1 cancel"], "y", ""),
        (["0 submit", "1 cancel"], "nobody", 'the workflow has no task "nobody"'),
        (
            ["0 submit", "1 placed a 1 x=n1", "2 ended x 1 0", "3 cancel"],
            "x",
            'group "a" of task "x" completed; its results are kept',
        ),
    ],
)
def test_a_retry_that_would_do_nothing_is_explained(told: list[str], task: str | None, fault: str) -> None:
    spec = spec_of(["group a: x", "group b: y; needs a"])
    state, _ = after(spec, told)

    assert retry_fault(spec, state, task) == fault


def test_word_of_unknown_groups_and_tasks_changes_nothing() -> None:
    state, _ = after(ONE, ["0 submit"])
    lines = ["placed other 1 t=n1", "gone other 1", "running nobody 1", "ended t 7 0", "placed train 7 t=n1"]

    for line in lines:
        assert step(ONE, state, observation_of(line), 1) == (state, ())
    assert step(ONE, state, Refused("train", 2, "NoCapacity", "no"), 1) == (state, ())


@pytest.mark.parametrize(
    ("groups", "fault"),
    [
        ((GroupRules("a", ()),), "has no tasks"),
        ((GroupRules("a", (TaskRules("t"),), ("b",)),), "before a group that it needs"),
        ((GroupRules("a", (TaskRules("t"),)), GroupRules("a", (TaskRules("u"),))), "occurs twice"),
        ((GroupRules("a", (TaskRules("t"), TaskRules("t"))),), "same name"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(groups: tuple[GroupRules, ...], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Spec(groups)


def test_specs_and_states_survive_storage() -> None:
    spec = Spec(
        (
            GroupRules("a", (TaskRules("x", lead=True, exits=((3, ExitAction.COMPLETE),)),), exec_timeout_s=5),
            GroupRules("b", (TaskRules("y"), TaskRules("z", lead=True)), ("a",), barrier=False),
        ),
        priority=Priority.HIGH,
    )
    state, _ = after(spec, ["0.1 submit", "0.3 refused a 1 NoCapacity full", "0.7 cancel force now"])

    assert from_json(Spec, json.loads(json.dumps(to_json(spec)))) == spec
    assert from_json(State, json.loads(json.dumps(to_json(state)))) == state


def damaged(**changes: Any) -> dict[str, Any]:
    state, _ = after(ONE, ["0 submit"])
    return to_json(state) | changes


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ([], "has no version"),
        ({}, "has no version"),
        (damaged(version=3), "has version 3, but this Coterie reads versions 1 and 2"),
        (damaged(version=2), "parts cannot be put together"),
        (damaged(version=2, parts=7), "parts cannot be put together"),
        (damaged(version=2, parts=[[{"tasks": []}]]), "parts cannot be put together"),
        (damaged(version=2, parts=[[{"name": "g", "tasks": 3}]]), "parts cannot be put together"),
        ({"version": 2, "parts": [[{"name": "g", "tasks": [3]}]]}, "groups[0].tasks[0] is not an object"),
        (damaged(version=True), "has version True"),
        (damaged(colour="red"), "colour is not known"),
        (damaged(status="FINE"), "status is 'FINE', which is not known"),
        (damaged(status=[]), "status is [], which is not known"),
        (damaged(events="3"), "events is not of type int"),
        (damaged(events=True), "events is not of type int"),
        (damaged(groups=3), "groups is not a list"),
        (damaged(groups=[3]), "groups[0] is not an object"),
        (damaged(groups=[{"tasks": []}]), "groups[0].name is missing"),
        (damaged(cancel={"at": "now"}), "cancel.at is not of type float"),
    ],
)
def test_what_storage_does_not_understand_is_refused(data: object, fault: str) -> None:
    with pytest.raises(UsageError) as caught:
        from_json(State, data)

    assert fault in str(caught.value)
    assert caught.value.hint


def test_a_damaged_spec_is_refused() -> None:
    data = {"version": 1, "groups": [{"name": "a", "tasks": [{"name": "t", "exits": [[1, "FAIL", 2]]}]}]}

    with pytest.raises(UsageError, match="has 3 entries instead of 2"):
        from_json(Spec, data)
    with pytest.raises(UsageError, match="has no tasks"):
        from_json(Spec, {"version": 1, "groups": [{"name": "a", "tasks": []}]})


FILE = b"""
workflow:
  name: two-steps
  timeout: {queue_timeout: 1h, exec_timeout: 2h}
  groups:
  - name: prepare
    tasks: [{name: p, image: i, command: [sh], exitActions: {COMPLETE: "0-2,16", RESCHEDULE: "10"}}]
  - name: train
    barrier: false
    ignoreNonleadStatus: false
    tasks:
    - {name: worker, image: i, command: [sh], inputs: [{task: p}]}
    - {name: boss, image: i, command: [sh], lead: true}
"""


def test_a_workflow_file_has_all_that_a_life_needs() -> None:
    """The same lines are in the documentation: they belong to whatever knows both sides."""
    workflow = read_workflow(FILE, "two-steps.yaml")
    lowered = lower(workflow, Pool("lab", "lab", "local"))

    spec = Spec(
        tuple(
            GroupRules(
                name=team.name,
                tasks=tuple(
                    TaskRules(
                        name=member.name,
                        lead=member.name == team.lead,
                        exits=tuple(
                            (code, ExitAction(action))
                            for action, listed in by_action(member.spec.exit_actions).items()
                            for code in codes(listed)
                        ),
                    )
                    for member in team.members
                ),
                needs=tuple(sorted(lowered.needs[team.name])),
                barrier=team.spec.barrier,
                ignore_nonlead_status=team.spec.ignore_nonlead_status,
                queue_timeout_s=lowered.queue_timeout,
                exec_timeout_s=lowered.exec_timeout,
            )
            for team in workflow.teams
        )
    )

    exits = tuple((code, ExitAction.COMPLETE) for code in (0, 1, 2, 16))
    again = ((10, ExitAction.RESCHEDULE),)
    limits: dict[str, Any] = {"queue_timeout_s": 3600, "exec_timeout_s": 7200}
    prepare = GroupRules("prepare", (TaskRules("p", lead=True, exits=exits + again),), **limits)
    team = (TaskRules("worker"), TaskRules("boss", lead=True))
    train = GroupRules("train", team, ("prepare",), barrier=False, ignore_nonlead_status=False, **limits)
    assert spec.groups == (prepare, train)
    assert spec.groups[1].lead == 1


def test_tasks_of_one_domain_move_together_and_the_whole_group_only_if_that_does_not_help() -> None:
    spec = Spec((GroupRules("g", tuple(TaskRules(name, lead=name == "a") for name in "abcd")),))
    running = (Running(name, 1, f"n-{name}") for name in "abcd")
    begun: list[Observation] = [Submitted(), Placed("g", 1), Created("g", 1), *running]
    state, _ = advance(spec, initial(spec), begun, 0.0)
    lost = Lost("d", 1, LossCause.NODE_FAILED, "gone")
    begun = [lost, Stopped("d", 1), Released("g", 1, ("d",)), Placed("g", 2), Created("g", 2)]
    state, _ = advance(spec, state, begun, 1.0)
    refused = Refused("g", 2, "NoDomainFits", "no rack", together=("c", "d"))

    state, actions = advance(spec, state, [refused], 2.0)
    told = [each for each in actions if isinstance(each, Record)]
    assert [each.kind for each in told] == ["TasksRescheduled"]
    assert told[0].message.startswith('tasks "c", "d" start again together: no room beside the running tasks')
    assert [task.status for task in state.groups[0].tasks] == ["RUNNING", "RUNNING", "RESCHEDULED", "RESCHEDULED"]
    gone: list[Observation] = [Stopped("c", 1), Stopped("d", 2), Released("g", 1, ("c",)), Released("g", 2, ("d",))]
    state, _ = advance(spec, state, [*gone, Placed("g", 3), Created("g", 3)], 3.0)
    assert [task.attempt for task in state.groups[0].tasks] == [1, 1, 3, 3]

    _, actions = advance(spec, state, [Refused("g", 3, "NoDomainFits", "no rack", together=("c", "d"))], 4.0)
    assert [each.kind for each in actions if isinstance(each, Record)] == ["GroupRescheduled"]


def test_tasks_that_move_together_leave_their_group_alone_while_one_of_them_is_being_stopped() -> None:
    team = tuple(TaskRules(name, lead=name == "b") for name in "abcd")
    spec = Spec((GroupRules("g", team),))
    running = (Running(name, 1, f"n-{name}") for name in "abcd")
    begun: list[Observation] = [Submitted(), Placed("g", 1), Created("g", 1), *running]
    state, _ = advance(spec, initial(spec), begun, 0.0)
    lost = Lost("d", 1, LossCause.NODE_FAILED, "gone")
    begun = [lost, Stopped("d", 1), Released("g", 1, ("d",)), Placed("g", 2), Created("g", 2)]
    state, _ = advance(spec, state, begun, 1.0)

    more = Lost("c", 1, LossCause.NODE_FAILED, "gone too")
    refused = Refused("g", 2, "NoDomainFits", "no rack", together=("a", "c", "d"))
    state, actions = advance(spec, state, [more, refused], 2.0)
    assert [each for each in actions if isinstance(each, Delete)] == []
    assert state.groups[0].tasks[1].status == "RUNNING"


def test_a_wait_for_missing_pods_ends_when_they_exist() -> None:
    spec = Spec((GroupRules("g", (TaskRules("a", lead=True),)),))
    state, _ = advance(spec, initial(spec), [Submitted(), Placed("g", 1)], 0.0)
    state, _ = advance(spec, state, [Refused("g", 1, "GangIncomplete", "0 of 1 pods exist")], 1.0)
    assert state.groups[0].waiting is not None
    state, _ = advance(spec, state, [Created("g", 1)], 2.0)
    assert state.groups[0].waiting is None


def test_a_rescue_starts_a_waiting_group_again_with_pins_and_only_while_it_waits() -> None:
    spec = Spec((GroupRules("g", (TaskRules("a", lead=True), TaskRules("b"))),))
    state, _ = advance(spec, initial(spec), [Submitted(), Placed("g", 1), Created("g", 1)], 0.0)
    pins = (("a", "rack", "r1"), ("b", "rack", "r1"))

    again, actions = step(spec, state, Rescued("g", 1, pins, "it fits"), 9.0)
    assert again.groups[0].pins == pins
    assert [each.kind for each in actions if isinstance(each, Record)] == ["Rescued", "GroupRescheduled"]
    assert from_json(State, json.loads(json.dumps(to_json(again)))) == again
    freed, _ = advance(spec, again, [Gone("g", 1), Released("g", 1, ("a", "b"))], 10.0)
    pending, _ = advance(spec, freed, [Placed("g", 2), Created("g", 2)], 11.0)
    assert step(spec, pending, Rescued("g", 2, pins, "it fits"), 12.0) == (pending, ())

    undone, _ = step(spec, pending, Rescued("g", 2, (), "no room"), 12.0)
    assert undone.groups[0].pins == ()
    bound, _ = step(spec, pending, Scheduled("b", 2, "n1"), 12.0)
    assert step(spec, bound, Rescued("g", 2, (), "no room"), 13.0) == (bound, ())


def test_a_rescue_and_its_undoing_do_not_prolong_the_wait() -> None:
    spec = Spec((GroupRules("g", (TaskRules("a", lead=True),), queue_timeout_s=60),))
    state, _ = advance(spec, initial(spec), [Submitted(), Placed("g", 1), Created("g", 1)], 5.0)
    state, _ = step(spec, state, Rescued("g", 1, (("a", "rack", "r1"),), "it fits"), 30.0)
    assert deadline(spec, state) == 65.0
    state, _ = advance(spec, state, [Gone("g", 1), Released("g", 1, ("a",)), Placed("g", 2), Created("g", 2)], 31.0)
    state, _ = step(spec, state, Rescued("g", 2, (), "no room"), 50.0)
    assert deadline(spec, state) == 65.0
    ended, _ = step(spec, state, Tick(), 65.0)
    assert ended.groups[0].status is Status.FAILED_QUEUE_TIMEOUT
