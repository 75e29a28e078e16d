"""Plans and refusals: the object that `coterie plan -o json` prints."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from coterie.errors import Reason
from coterie.placement.explain.obstacles import Obstacle
from coterie.placement.refusal import Verdict
from coterie.service.api.models.base import ResponseBody

__all__ = ["Plan", "Refusal", "Verdict", "Warned"]


class Warned(ResponseBody):
    """A warning."""

    code: str
    message: str
    line: int | None
    field: str | None = None


class Near(ResponseBody):
    """A domain in which the gang nearly fits."""

    domain: list[str]
    fits: int
    wanted: int


class Holder(ResponseBody):
    """A holder of the missing capacity."""

    owner: str
    gpus: int
    domain: list[str]


class Tally(ResponseBody):
    """The nodes of a domain, or all where none is named, counted for one task: `good` ones have room for `room`."""

    task: str
    alike: int
    domain: list[str]
    nodes: int
    good: int
    room: int


class Cause(ResponseBody):
    """The obstacle of a task on some nodes, and what they offer of the requested resource."""

    cause: Obstacle
    nodes: int
    names: list[str] = Field(description="The first of those nodes.")
    resource: str | None
    offered: list[int] | None = Field(description="The least and the most that they offer.")
    asked: int | None
    detail: str | None = Field(description="The label or the taints, where the cause is about them.")


class Option(ResponseBody):
    """A parameter that asks about a change: of a query and, with dashes, of a command."""

    name: str
    value: str | None = Field(description="Null for a flag.")


class WayOut(ResponseBody):
    """A change with which the gang fits, verified by the engine."""

    change: str
    command: str
    options: list[Option]


class Refusal(ResponseBody):
    """The reason why there is no placement."""

    reason: Reason
    message: str
    sentence: str = Field(description="The message without what was counted.")
    because: str | None = Field(description="What was counted, in words.")
    path: list[list[str]]
    together: list[list[list[str]]] = Field(description="The paths of groups that do not fit beside each other.")
    level: str | None
    domains: int = Field(description="How many domains of the level there are.")
    best: list[Near]
    holders: list[Holder]
    counted: Tally | None
    causes: list[Cause]
    ways_out: list[WayOut]


class Assignment(ResponseBody):
    """The node that a task would get."""

    task: str
    node: str
    gpus: int = Field(description="The GPUs that it would take there.")
    domains: dict[str, str]
    runs: bool = Field(default=False, description="Whether it runs there already.")


class Constraint(ResponseBody):
    """The outcome of a constraint."""

    path: list[list[str]] = Field(description="Pairs of level and group, from the coarsest down.")
    level: str
    type: Literal["required", "preferred"]
    satisfied: bool
    domains: list[list[str]]
    tasks: list[str] = Field(description="The tasks directly in the group, and in none below it.")


class GangPlan(ResponseBody):
    """The outcome of a group."""

    name: str
    size: str = Field(description="Its tasks, by what each asks for.")
    verdict: Verdict
    optimal: bool
    assignments: list[Assignment]
    constraints: list[Constraint]
    refusal: Refusal | None


class Stats(ResponseBody):
    """The size of the problem, and the time taken."""

    nodes: int
    pool_nodes: int
    pods: int
    elapsed_ms: float


class Plan(ResponseBody):
    """The placement that a workflow would get now, or why it would get none."""

    version: int
    id: str = Field(description="The id of content and answer; a submission with `plan` must still match it.")
    workload: str
    kind: str
    pool: str
    levels: list[str]
    verdict: Verdict
    groups: list[GangPlan]
    warnings: list[Warned]
    stats: Stats
