"""An adversarial queue, backend, user and clock around one workflow.

Observations come late, twice, out of order or never; the service crashes between any two actions and in the middle of
one, reads its state back from JSON, and performs the outstanding actions. Violations of invariants are asserted where
they would occur.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from coterie.lifecycle import (
    Action,
    CancelAsked,
    Create,
    Created,
    Delete,
    Ended,
    Enqueue,
    Go,
    Gone,
    LossCause,
    Lost,
    Observation,
    Placed,
    Record,
    Recovered,
    Refused,
    Released,
    ReleaseTasks,
    Rescued,
    RetryAsked,
    Running,
    Scheduled,
    Spec,
    State,
    Status,
    Stop,
    Stopped,
    Submitted,
    Tick,
    Up,
    deadline,
    from_json,
    holdings,
    initial,
    outstanding,
    step,
    to_json,
)

Key = tuple[str, int]
Move = tuple[str, Callable[[int], None]]

CODES = (0, 0, 1, 10, 16)
CAUSES = tuple(LossCause)
REASONS = ("NoCapacity", "NoDomainFits", "LevelLost", "OverQuota", "Undecided")


@dataclass
class Pod:
    """The pod of one attempt of a task: created, up, running, ended or lost."""

    task: str
    attempt: int
    node: str
    held: bool
    phase: str = "created"
    since: float | None = None
    told: Observation | None = None


@dataclass
class World:
    spec: Spec
    volatile_queue: bool = False
    late_nodes: bool = False
    dated: bool = False
    state: State = field(init=False)
    now: float = 0.0
    todo: list[Action] = field(default_factory=list)
    air: list[Observation] = field(default_factory=list)
    heard: list[Observation] = field(default_factory=list)
    requests: dict[Key, Enqueue] = field(default_factory=dict)
    held: dict[Key, str] = field(default_factory=dict)
    pods: dict[Key, Pod] = field(default_factory=dict)
    scaffolds: set[Key] = field(default_factory=set)
    deleting: list[Delete | Stop] = field(default_factory=list)
    starts: Counter[Key] = field(default_factory=Counter)
    releases: Counter[Key] = field(default_factory=Counter)
    exits: dict[Key, int] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    seen: set[tuple[str, ...]] = field(default_factory=set)
    changes: set[tuple[str, str]] = field(default_factory=set)
    draining: bool = False

    def __post_init__(self) -> None:
        self.state = initial(self.spec)
        self.air.append(Submitted())

    # The service

    def hear(self, observation: Observation) -> None:
        before = self.state
        after, actions = step(self.spec, before, observation, self.now)
        assert (after, actions) == step(self.spec, before, observation, self.now)
        records = [action for action in actions if isinstance(action, Record)]
        wanted = [action for action in actions if not isinstance(action, Record)]
        assert [record.number for record in records] == list(range(before.events + 1, after.events + 1))
        assert set(wanted) <= set(outstanding(self.spec, after))
        if not isinstance(observation, Tick):
            assert step(self.spec, after, observation, self.now) == (after, ())
        for go in (action for action in wanted if isinstance(action, Go)):
            group = after.groups[self.spec.places[go.task][0]]
            waited = [self.pods.get((task.name, task.attempt)) for task in group.tasks if not task.status.final]
            assert all(pod is not None and pod.phase != "created" for pod in waited), "all start together"
        self.state = after
        self.todo.extend(wanted)
        self._note(before, after)

    def _note(self, before: State, after: State) -> None:
        for old, new in zip(before.groups, after.groups, strict=True):
            for was, now in zip(old.tasks, new.tasks, strict=True):
                self.seen.add((now.status, now.presence, str(now.up), new.status, after.status))
                if was.status is not now.status:
                    self.changes.add((was.status, now.status))
                if was.status.final and not isinstance(self.heard[-1] if self.heard else None, RetryAsked):
                    restarted = now.status is Status.RESCHEDULED and not old.status.final
                    assert was.status is now.status or restarted
            if old.status.final and not new.status.final:
                assert isinstance(self.heard[-1], RetryAsked)

    def crash(self, kept: int) -> None:
        self.state = from_json(State, json.loads(json.dumps(to_json(self.state))))
        self.air = [observation for index, observation in enumerate(self.air) if kept >> index & 1]
        known = {(one.task, one.attempt): one.node for one in holdings(self.state)}
        assert set(self.pods) <= set(known), "whatever runs is known to hold capacity"
        if self.volatile_queue:
            self.air = [one for one in self.air if not isinstance(one, Placed | Refused | Released)]
            self.requests.clear()
            self.held = {key: node or self.held[key] for key, node in known.items()}
        self.todo = list(outstanding(self.spec, self.state))
        if not self.state.submitted:
            self.air.append(Submitted())
        self.air.extend(pod.told for pod in self.pods.values() if pod.told is not None)

    def perform(self, choice: int, *, partly: bool = False) -> None:
        action = self.todo.pop(0)
        if choice % 2 and action not in outstanding(self.spec, self.state):
            return
        match action:
            case Enqueue():
                self._enqueue(action)
            case ReleaseTasks():
                self._release(action, partly=partly)
            case Create():
                self._create(action, partly=partly)
            case Go():
                if (pod := self.pods.get((action.task, action.attempt))) is not None:
                    pod.held = False
            case Stop() | Delete():
                self.deleting.append(action)
            case _:
                raise AssertionError(action)

    # The queue

    def _enqueue(self, action: Enqueue) -> None:
        keys = [(task, action.attempt) for task in action.tasks]
        if all(key in self.held for key in keys):
            self.air.append(self._placed(action))
            return
        assert not any(key in self.held or self.releases[key] for key in keys)
        others = {number for group, number in self.requests if group == action.group} - {action.attempt}
        assert not others, "what waits of a group waits in one request, so that its places belong together"
        busy = {task for task, _ in self.held} | {task for task, _ in self.pods}
        assert busy.isdisjoint(action.tasks), "a new attempt begins only when nothing is left of the one before"
        self.requests[action.group, action.attempt] = action

    def _placed(self, action: Enqueue) -> Placed:
        if self.late_nodes:
            return Placed(action.group, action.attempt)
        return Placed(
            action.group, action.attempt, tuple((task, self.held[task, action.attempt]) for task in action.tasks)
        )

    def place(self, choice: int) -> None:
        key = sorted(self.requests)[choice % len(self.requests)]
        action = self.requests.pop(key)
        nodes = [node for node in (f"n{number}" for number in range(40)) if node not in action.excluded]
        for offset, task in enumerate(action.tasks):
            self.held[task, action.attempt] = nodes[(choice + offset) % len(nodes)]
        self.air.append(self._placed(action))

    def refuse(self, choice: int) -> None:
        group, attempt = sorted(self.requests)[choice % len(self.requests)]
        self.air.append(Refused(group, attempt, REASONS[choice % len(REASONS)], f"try {choice}"))

    def rescue(self, choice: int) -> None:
        """Pin a group that may wait in the queue of its own scheduler, or undo that."""
        group = self.state.groups[choice % len(self.state.groups)]
        pins = ((group.tasks[0].name, "rack", f"r{choice % 3}"),) if choice % 2 else ()
        self.air.append(Rescued(group.name, group.base, pins, "it fits"))

    def _release(self, action: ReleaseTasks, *, partly: bool) -> None:
        request = self.requests.pop((action.group, action.attempt), None)
        assert request is None or set(request.tasks) <= set(action.tasks)
        for task in action.tasks[: 1 if partly else None]:
            key = (task, action.attempt)
            assert key not in self.pods, "capacity goes back only when nothing uses it"
            if self.held.pop(key, None) is not None:
                self.releases[key] += 1
                assert self.releases[key] == 1, "capacity is released once"
        if not partly:
            self.air.append(Released(action.group, action.attempt, action.tasks))

    # The back end

    def _create(self, action: Create, *, partly: bool) -> None:
        self.scaffolds.add((action.group, action.base))
        rules = self.spec.groups[self.spec.order[action.group]]
        for need in rules.needs:
            assert self.state.groups[self.spec.order[need]].status is Status.COMPLETED
        for task, node in action.tasks[: 1 if partly else None]:
            key = (task, action.attempt)
            if key in self.pods:
                continue
            assert key in self.held, "nothing runs without capacity"
            assert node in ("", self.held[key])
            assert all(other != task for other, _ in self.pods), "at most one attempt of a task is alive"
            self.starts[key] += 1
            assert self.starts[key] == 1, "no attempt starts twice"
            self.pods[key] = Pod(task, action.attempt, self.held[key], action.held)
        if not partly:
            self.air.append(Created(action.group, action.attempt))

    def progress(self, choice: int) -> None:
        alive = self._movable()
        pod = alive[choice % len(alive)]
        outcome = choice // len(alive)
        if self.late_nodes and outcome % 3 == 0:
            self.air.append(Scheduled(pod.task, pod.attempt, pod.node))
        if not self.draining and outcome % 7 == 6:
            pod.phase, pod.told = "lost", Lost(pod.task, pod.attempt, CAUSES[outcome // 7 % len(CAUSES)])
        elif pod.phase == "created":
            pod.phase, pod.told = ("up", Up(pod.task, pod.attempt, pod.node)) if pod.held else self._run(pod)
        elif pod.phase == "up":
            pod.phase, pod.told = self._run(pod)
        else:
            code = CODES[outcome % len(CODES)]
            self.exits[pod.task, pod.attempt] = code
            at = self.now if self.dated else None
            pod.phase, pod.told = "ended", Ended(pod.task, pod.attempt, code, started=pod.since, at=at)
        if pod.told is not None:
            self.air.append(pod.told)

    def evict(self, choice: int) -> None:
        """Lose any pod, also one that waits for a word."""
        pod = list(self.pods.values())[choice % len(self.pods)]
        if pod.phase not in ("ended", "lost"):
            pod.phase, pod.told = "lost", Lost(pod.task, pod.attempt, CAUSES[choice // 11 % len(CAUSES)])
            self.air.append(pod.told)

    def recover(self, choice: int) -> None:
        """Let a node come back that failed."""
        away = [node for group in self.state.groups for node in group.excluded]
        self.air.append(Recovered(away[choice % len(away)]))

    def _movable(self) -> list[Pod]:
        """Return the pods that can do something by themselves: not those that wait for a word."""
        alive = [pod for pod in self.pods.values() if pod.phase not in ("ended", "lost")]
        return [pod for pod in alive if not (pod.phase == "up" and pod.held)]

    def _run(self, pod: Pod) -> tuple[str, Observation]:
        pod.since = self.now if self.dated else None
        return "running", Running(pod.task, pod.attempt, pod.node, pod.since)

    def vanish(self, choice: int) -> None:
        """Finish one removal that was asked for some time ago."""
        action = self.deleting.pop(choice % len(self.deleting))
        if isinstance(action, Stop):
            self.pods.pop((action.task, action.attempt), None)
            self.air.append(Stopped(action.task, action.attempt))
            return
        names = {task.name for task in self.spec.groups[self.spec.order[action.group]].tasks}
        for task, attempt in list(self.pods):
            if task in names and action.attempt <= attempt <= action.last:
                del self.pods[task, attempt]
        self.scaffolds.discard((action.group, action.attempt))
        self.air.append(Gone(action.group, action.attempt))

    # What can happen next

    def moves(self) -> Iterator[Move]:
        if self.todo:
            yield "perform", self.perform
        if self.air:
            yield "deliver", self._deliver
        if self.requests:
            yield "place", self.place
        if self._movable():
            yield "progress", self.progress
        if self.deleting:
            yield "vanish", self.vanish

    def mischief(self) -> Iterator[Move]:
        yield "crash", self.crash
        yield "wait", self._wait
        if self.todo:
            yield "half", self._half
        if self.air:
            yield "double", self._double
        if self.heard:
            yield "repeat", self._repeat
        if self.requests:
            yield "refuse", self.refuse
        if self.late_nodes:
            yield "rescue", self.rescue
        if self.pods:
            yield "evict", self.evict
        if any(group.excluded for group in self.state.groups):
            yield "recover", self.recover
        if self.asked["cancel"] < 2:
            yield "cancel", self._cancel
        if self.asked["retry"] < 2:
            yield "retry", self._retry

    def _deliver(self, choice: int) -> None:
        observation = self.air.pop(choice % len(self.air))
        self.heard.append(observation)
        self.hear(observation)

    def _double(self, choice: int) -> None:
        self.heard.append(self.air[choice % len(self.air)])
        self.hear(self.heard[-1])

    def _repeat(self, choice: int) -> None:
        observation = self.heard[choice % len(self.heard)]
        if not isinstance(observation, RetryAsked | CancelAsked):
            self.heard.append(observation)
            self.hear(observation)

    def _half(self, choice: int) -> None:
        self.perform(choice, partly=True)
        self.crash(choice)

    def _wait(self, choice: int) -> None:
        self.now += choice % 40
        self._tick()

    def _tick(self) -> None:
        self.heard.append(Tick())
        self.hear(Tick())

    def _cancel(self, choice: int) -> None:
        self.asked["cancel"] += 1
        self.heard.append(CancelAsked("", force=bool(choice % 2)))
        self.hear(self.heard[-1])

    def _retry(self, choice: int) -> None:
        names = [None, *self.spec.places]
        self.asked["retry"] += 1
        self.heard.append(RetryAsked(names[choice % len(names)]))
        self.hear(self.heard[-1])

    def drain(self) -> int:
        """Let everything come to its end without further faults; return how many moves it took."""
        self.draining = True
        for count in range(3000):
            if self.state.finished and not self.todo and not self.air and not self.deleting:
                return count
            moves = list(self.moves())
            if moves:
                moves[count % len(moves)][1](count * 7919 % 1000)
            elif (at := deadline(self.spec, self.state)) is not None:
                self.now = max(self.now, at)
                self._tick()
            else:
                self.crash(0)
        raise AssertionError("the workflow never ends")
