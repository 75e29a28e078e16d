"""Stories: a workflow, then line by line what is observed and, indented below it, what is done and what changes.

    group train: lead* worker; needs prepare; all; no barrier; queue 60; start 30; exec 90
    exits worker: RESCHEDULE 10
    limits: reschedules 1; losses 1

`all` stands for ignoreNonleadStatus: false. The clock starts at 0 and `at 60` sets it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from coterie.lifecycle import (
    CancelAsked,
    Created,
    Ended,
    Enqueue,
    ExitAction,
    Gone,
    GroupRules,
    LossCause,
    Lost,
    Observation,
    Placed,
    Record,
    Recovered,
    Refused,
    Released,
    RetryAsked,
    Running,
    Scheduled,
    Spec,
    State,
    Stopped,
    Submitted,
    TaskRules,
    Tick,
    Up,
    from_json,
    initial,
    outstanding,
    step,
    to_json,
)


@dataclass(frozen=True)
class Story:
    title: str
    setting: tuple[str, ...]
    told: tuple[str, ...]
    text: str


def stories(text: str) -> Iterator[Story]:
    for part in text.split("== ")[1:]:
        title, _, rest = part.partition("\n")
        setting, _, told = rest.partition("----\n")
        lines = tuple(line for line in told.splitlines() if line and not line.startswith((" ", "#")))
        yield Story(title, tuple(setting.splitlines()), lines, f"== {part}")


def spec_of(setting: Sequence[str]) -> Spec:
    groups: list[GroupRules] = []
    spec = Spec(())
    for line in setting:
        head, _, rest = line.partition(":")
        words = [part.split() for part in rest.split(";")]
        match head.split():
            case ["group", name]:
                groups.append(_group(name, words))
            case ["exits", task]:
                exits = tuple((int(code), ExitAction(action)) for action, *codes in words for code in codes)
                groups = [
                    replace(
                        group,
                        tasks=tuple(replace(one, exits=exits) if one.name == task else one for one in group.tasks),
                    )
                    for group in groups
                ]
            case ["limits"]:
                found = {key: int(value) for key, value in words}
                spec = Spec(
                    (),
                    max_reschedules=found.get("reschedules", spec.max_reschedules),
                    max_infrastructure_retries=found.get("losses", spec.max_infrastructure_retries),
                )
            case []:
                pass
            case _:
                raise ValueError(line)
    return replace(spec, groups=tuple(groups))


def _group(name: str, words: Sequence[Sequence[str]]) -> GroupRules:
    names, *options = words
    tasks = tuple(TaskRules(one.rstrip("*"), lead=one.endswith("*")) for one in names)
    group = GroupRules(name, tasks)
    for option in options:
        match list(option):
            case ["needs", *needs]:
                group = replace(group, needs=tuple(needs))
            case ["all"]:
                group = replace(group, ignore_nonlead_status=False)
            case ["no", "barrier"]:
                group = replace(group, barrier=False)
            case ["queue", seconds]:
                group = replace(group, queue_timeout_s=float(seconds))
            case ["start", seconds]:
                group = replace(group, start_timeout_s=float(seconds))
            case ["exec", seconds]:
                group = replace(group, exec_timeout_s=float(seconds))
            case _:
                raise ValueError(option)
    return group


def observation_of(line: str) -> Observation:
    match line.split():
        case ["submit"]:
            return Submitted()
        case ["tick"]:
            return Tick()
        case ["cancel", "force", *words]:
            return CancelAsked(" ".join(words), force=True)
        case ["cancel", *words]:
            return CancelAsked(" ".join(words))
        case ["retry"]:
            return RetryAsked()
        case ["retry", task]:
            return RetryAsked(task)
        case ["placed", group, attempt, *nodes]:
            pairs = (pair.split("=") for pair in nodes)
            return Placed(group, int(attempt), tuple((task, node) for task, node in pairs))
        case ["refused", group, attempt, reason, *words]:
            return Refused(group, int(attempt), reason, " ".join(words))
        case ["released", group, attempt, *tasks]:
            return Released(group, int(attempt), tuple(tasks))
        case ["created", group, attempt]:
            return Created(group, int(attempt))
        case ["gone", group, attempt]:
            return Gone(group, int(attempt))
        case ["scheduled", task, attempt, node]:
            return Scheduled(task, int(attempt), node)
        case ["up", task, attempt, *node]:
            return Up(task, int(attempt), *node)
        case ["running", task, attempt, "since", at]:
            return Running(task, int(attempt), at=float(at))
        case ["running", task, attempt, *node]:
            return Running(task, int(attempt), "".join(node))
        case ["ended", task, attempt, code]:
            return Ended(task, int(attempt), int(code))
        case ["ended", task, attempt, code, "from", started, "to", at]:
            return Ended(task, int(attempt), int(code), started=float(started), at=float(at))
        case ["lost", task, attempt, cause, *words]:
            return Lost(task, int(attempt), LossCause(cause), " ".join(words))
        case ["stopped", task, attempt]:
            return Stopped(task, int(attempt))
        case ["recovered", node]:
            return Recovered(node)
    raise ValueError(line)


def play(story: Story) -> Iterator[str]:
    """Yield the story as it really goes, and check on the way what holds of every step."""
    spec = spec_of(story.setting)
    state, now = initial(spec), 0.0
    yield f"== {story.title}"
    yield from story.setting
    yield "----"
    for line in story.told:
        yield line
        if line.startswith("at "):
            now = float(line.removeprefix("at "))
            continue
        observation = observation_of(line)
        after, actions = step(spec, state, observation, now)
        assert step(spec, state, observation, now) == (after, actions), "the same again is the same"
        assert step(spec, after, observation, now) == (after, ()), "hearing it twice changes nothing"
        assert from_json(State, json.loads(json.dumps(to_json(after)))) == after
        assert set(outstanding(spec, after)) >= {action for action in actions if not isinstance(action, Record)}
        for action in actions:
            if not isinstance(action, Record):
                yield f"    {action.id}{_details(action)}"
        yield from (f"    {line}" for line in _changes(state, after))
        state = after


def _details(action: object) -> str:
    if not isinstance(action, Enqueue):
        return ""
    away = f" without {' '.join(action.excluded)}" if action.excluded else ""
    beside = " beside " + " ".join(f"{task}={node}" for task, node in action.anchors) if action.anchors else ""
    return f" {' '.join(action.tasks)}{away}{beside}"


def _changes(before: State, after: State) -> Iterator[str]:
    was, now = dict(_statuses(before)), dict(_statuses(after))
    changed: dict[str, list[str]] = {}
    for name, status in now.items():
        if was[name] != status:
            changed.setdefault(status, []).append(name)
    yield from (f"{status}: {' '.join(names)}" for status, names in changed.items())
    if not after.cleaning and before.cleaning and after.status.final:
        yield "finished"


def _statuses(state: State) -> Iterator[tuple[str, str]]:
    yield "workflow", state.status
    for group in state.groups:
        yield group.name, group.status
        for task in group.tasks:
            yield task.name, task.status
