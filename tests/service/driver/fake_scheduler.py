"""A scheduler for tests of drivers: it has its own queue, chooses nodes, and can be unreachable."""

# ruff: noqa: ARG002 - a driver takes what the protocol gives, whether it needs it or not

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from coterie.backends.base.driver import DrivenWorkflow, TaskAttempt, TaskPlacement, WorkflowTexts
from coterie.backends.base.settings import DriverSettings
from coterie.backends.base.traits import Traits
from coterie.errors import Unavailable
from coterie.lifecycle import Create, Created, Delete, Ended, Go, Gone, Observation, Running, Scheduled, Stop, Stopped

LIMIT_S = 60.0


@dataclass(eq=False)
class FakeCluster:
    """The cluster behind the driver: what it was asked, where it puts tasks, and what is wrong with it."""

    nodes: Mapping[str, str] = field(default_factory=dict)
    ending: bool = True
    out_of_reach: bool = False
    problems: list[str] = field(default_factory=list)
    crashing: str = ""  # the beginning of calls that end with an unexpected error
    blocked: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)
    contexts: list[str | None] = field(default_factory=list)
    news: deque[tuple[str, Observation]] = field(default_factory=deque)

    def check(self, what: str) -> None:
        """Note a call; wait or fail as the cluster does."""
        self.asked.append(what)
        self.blocked.wait(LIMIT_S)
        if self.crashing and what.startswith(self.crashing):
            raise KeyError(what)
        if self.out_of_reach:
            raise Unavailable("the cluster cannot be reached")


WORLD = FakeCluster()


class FakeDriver:
    """Runs nothing, and says that it does."""

    def __init__(self, settings: DriverSettings, texts: WorkflowTexts) -> None:
        WORLD.check("open")
        WORLD.contexts.append(settings.context)
        self.settings, self.texts = settings, texts
        self.told: list[str] = []

    @property
    def running(self) -> int:
        return 0

    @property
    def problems(self) -> list[str]:
        return list(WORLD.problems)

    def sync(self, pools: Collection[Any]) -> None:
        WORLD.check(f"sync {','.join(pool.name for pool in pools)}")

    def create(
        self, workflow: DrivenWorkflow, asked: Create, seats: Mapping[str, TaskPlacement]
    ) -> Iterator[Observation]:
        WORLD.check(f"create {workflow.id}/{asked.group}")
        assert {seat.node for seat in seats.values()} == {""}
        yield Created(asked.group, asked.attempt)
        for task, _ in asked.tasks:
            WORLD.news.append((workflow.id, Scheduled(task, asked.attempt, WORLD.nodes[task])))
            WORLD.news.append((workflow.id, Running(task, asked.attempt)))
            if WORLD.ending:
                WORLD.news.append((workflow.id, Ended(task, asked.attempt, 0)))

    def go(self, workflow: DrivenWorkflow, asked: Go) -> Iterator[Observation]:
        yield Running(asked.task, asked.attempt)

    def stop(self, workflow: DrivenWorkflow, asked: Stop) -> None:
        WORLD.check(f"stop {workflow.id}/{asked.task}")
        WORLD.news.append((workflow.id, Stopped(asked.task, asked.attempt)))

    def delete(self, workflow: DrivenWorkflow, asked: Delete) -> None:
        WORLD.check(f"delete {workflow.id}/{asked.group}")
        WORLD.news.append((workflow.id, Gone(asked.group, asked.attempt)))

    def adopt(self, workflow: DrivenWorkflow) -> None:
        WORLD.check(f"adopt {workflow.id}")

    def release(self, workflow: str) -> None:
        WORLD.check(f"release {workflow}")

    def news(self) -> Iterator[tuple[str, Observation]]:
        WORLD.check("news")
        self.told = list(WORLD.problems)
        while WORLD.news:
            yield WORLD.news.popleft()

    def wait(self, timeout_s: float) -> bool:
        threading.Event().wait(min(timeout_s, 0.02))
        return bool(WORLD.news) or WORLD.problems != self.told

    def end_strays(self, workflows: Mapping[str, DrivenWorkflow], spared: Collection[str]) -> None:
        WORLD.check("strays")

    def archive(self, workflow: str) -> None:
        WORLD.check(f"archive {workflow}")

    def unarchived(self) -> set[str]:
        return set()

    def archived(self) -> set[str]:
        return set()

    def forget(self, workflow: str) -> None:
        WORLD.check(f"forget {workflow}")

    def close(self) -> None:
        WORLD.asked.append("close")


class FakeOutput:
    """Has a line of log for every attempt."""

    def __init__(self, settings: DriverSettings) -> None:
        self.settings = settings

    def log(self, attempt: TaskAttempt, start: int, size: int | None = None) -> bytes:
        line = f"{attempt.task} ran\n".encode()
        return line[start:][:size]

    def log_offset(self, attempt: TaskAttempt, since: float) -> int | None:
        return None

    def folder(self, attempt: TaskAttempt) -> str | None:
        return None


TRAITS = Traits(
    "fake",
    title="a scheduler of tests",
    chooses_nodes=True,
    own_queue=True,
    topology=True,
    driver=FakeDriver,
    output=FakeOutput,
)
