"""Workflows in answers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from coterie.lifecycle import Status
from coterie.service.api.models.base import ResponseBody
from coterie.service.api.models.plans import Assignment, Refusal, Verdict, Warned
from coterie.service.api.models.requests import Priority
from coterie.service.views.wait_cause import WaitCauseKind

# ISO 8601 in UTC, as in 2026-01-31T12:00:00.123Z.
Time = str


class Waiting(ResponseBody):
    """The reason why a group is not placed yet."""

    reason: str
    message: str
    since: Time | None
    never: bool = Field(description="Whether it waits until the pool changes, and not only until there is room.")


class FirstWaiting(Waiting):
    """The reason why the first waiting group is not placed yet."""

    group: str


class Tally(ResponseBody):
    """The number of tasks by state."""

    total: int
    running: int
    completed: int
    failed: int


class Row(ResponseBody):
    """A workflow in a list."""

    id: str
    number: int = Field(description="Increases with each submission; pages are ordered by it.")
    name: str
    pool: str
    owner: str
    priority: Priority
    labels: dict[str, str]
    status: Status
    submitted: Time | None
    started: Time | None
    ended: Time | None
    message: str
    finished: bool = Field(description="It has ended, and all that it left is cleaned up.")
    cleaning: bool
    waiting: FirstWaiting | None
    tasks: Tally
    gpus: int = Field(description="What all its tasks ask for.")
    nodes: list[str] = Field(description="The nodes on which it holds capacity now.")
    position: int | None = Field(description="Its place in the queue of its pool, from 1; null where it is not in it.")


class Rows(ResponseBody):
    """A page of workflows, the newest first."""

    items: list[Row]
    next: int | None = Field(description="What to pass as `after` for the next page; null on the last.")


class Past(ResponseBody):
    """An earlier attempt of a task."""

    attempt: int
    status: Status
    node: str | None
    exit_code: int | None
    message: str
    started: Time | None
    ended: Time | None


class Task(Past):
    """A task and its latest attempt."""

    name: str
    lead: bool
    domains: dict[str, str] = Field(description="The domain of its node at each level.")
    gpus: list[int] = Field(description="The devices of the node that it has.")
    output: str | None = Field(
        description="The folder into which it writes, on the machine of the service, also after its end."
    )
    past: list[Past]


class Group(ResponseBody):
    """A gang of tasks."""

    name: str
    status: Status
    attempt: int
    message: str
    waiting: Waiting | None
    needs: list[str] = Field(description="The groups that come before it.")
    queued: Time | None
    started: Time | None
    ended: Time | None
    ends_by: Time | None = Field(description="When its time limit ends it; null where it has none or does not run.")
    cleaning: bool
    tasks: list[Task]


class Canceled(ResponseBody):
    """A user's request to end a workflow."""

    by: str | None = Field(description="Who asked; null where the service has no tokens, and so no names.")
    at: Time
    message: str
    force: bool


class Workflow(Row):
    """A workflow with its groups and tasks."""

    created_from: str = Field(description="The name of its file.")
    canceled: Canceled | None = Field(description="Who canceled it, when and why.")
    changes: list[str] = Field(description="What the parameters of its submission changed about it.")
    groups: list[Group]
    warnings: list[Warned]


class Submitted(Workflow):
    """The answer to a submission."""

    created: bool = Field(description="False where the same request was made before.")
    page: str | None = Field(description="The path of its web page; null where the service has none.")


class WaitCause(ResponseBody):
    """The cause that holds a gang on a cluster: in the queue of its scheduler, or on its nodes."""

    kind: WaitCauseKind
    message: str


class WhyGroup(ResponseBody):
    """The reason why a group waits."""

    name: str
    verdict: Verdict = Field(description="What the engine says now; placed: it starts when its turn comes.")
    waiting: Waiting | None
    refusal: Refusal | None
    cause: WaitCause | None = Field(None, description="What holds a gang on a cluster; missing in Coterie's queue.")
    position: int | None = Field(description="Its place in the queue of the pool, from 1.")


class Why(ResponseBody):
    """The reasons why groups of a workflow wait."""

    id: str
    status: Status
    position: int | None = Field(description="The best of its groups' places in the queue.")
    waiting: int = Field(description="How many groups are in the queue of its pool.")
    groups: list[WhyGroup] = Field(
        description="Those that wait for a place or, on a cluster, for their containers; or the one that was asked for."
    )


class Candidate(ResponseBody):
    """A candidate domain of tasks."""

    domain: list[str]
    fits: int = Field(description="How many of the tasks fit there now.")
    wanted: int
    free_gpus: int
    left_gpus: int = Field(description="What is free when those that fit are there.")
    nodes: int = Field(description="On how many nodes they would be.")
    extra_domains: int | None = Field(description="How many more domains the others need; of what is preferred.")
    chosen: bool
    lacks: str | None = Field(description="Why not all fit.")


class Excluded(ResponseBody):
    """A number of excluded candidates, and the obstacle."""

    why: str
    count: int


class Counted(ResponseBody):
    """A total, the number of feasible ones, and the obstacles of the others."""

    total: int
    good: int
    excluded: list[Excluded]


class Histograms(ResponseBody):
    """All nodes, of which those that take a task are good; all domains, of which those that take all tasks are."""

    nodes: Counted
    domains: Counted


class Choice(ResponseBody):
    """The candidate domains of groups of one kind."""

    groups: list[list[list[str]]] = Field(description="Their paths: pairs of level and group.")
    type: Literal["required", "preferred"]
    level: str | None
    wanted: int
    domains: list[Candidate] = Field(description="The best, at most ten.")
    more: int = Field(description="How many others there are.")
    counted: Histograms


class DetailedGroup(WhyGroup):
    """The reason why a group waits, with all the evidence, or its outcome under changes."""

    alternatives: list[Choice] | None = Field(None, description="With `verbose`.")
    assignments: list[Assignment] | None = Field(
        None, description="Where its tasks would go with the requested changes."
    )


class WhyInDetail(Why):
    """The reasons why groups of a workflow wait, with all the evidence, or their outcomes under changes."""

    groups: list[DetailedGroup]  # type: ignore[assignment]  # each is a group that waits


class Audited(ResponseBody):
    """The outcome of a constraint."""

    path: list[list[str]] = Field(description="Pairs of level and group, from the coarsest down.")
    level: str
    type: Literal["required", "preferred"]
    outcome: Literal["held", "missed", "violated", "unobservable"]
    domains: list[list[str | None]]
    why: str


class Seat(ResponseBody):
    """The node of a running task, or its last one."""

    task: str
    node: str
    domains: dict[str, str]
    gpus: list[int]


class PlacementGroup(ResponseBody):
    """A group compared with its constraints."""

    name: str
    status: Status
    constraints: list[Audited]
    tasks: list[Seat]


class Outcomes(ResponseBody):
    """The number of constraints by outcome."""

    held: int
    missed: int
    violated: int
    unobservable: int


class Placement(ResponseBody):
    """The nodes of tasks compared with their constraints."""

    id: str
    pool: str
    groups: list[PlacementGroup]
    summary: Outcomes


class Source(ResponseBody):
    """A workflow as it was submitted."""

    source: str
    rendered: str | None = Field(description="Its text after the template was rendered; null without a template.")
    file: str
    sets: list[str]
    set_strings: list[str]
    files: dict[str, int] = Field(description="The sizes of its local files, by path.")


class Deletion(ResponseBody):
    """A workflow that is deleted once nothing of it runs any more."""

    id: str
    deleted: bool = Field(description="Whether it is gone already.")
