"""Events, and the state of the service."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from coterie.service.api.models.base import ErrorBody, ResponseBody
from coterie.service.security import Role


class Event(ResponseBody):
    """One event."""

    seq: int = Field(description="Increases; a reader that continues from the last one misses nothing.")
    at: str | None
    workflow: str
    pool: str
    kind: str
    message: str
    group: str
    task: str
    attempt: int
    data: dict[str, Any]


class Events(ResponseBody):
    """Events in their order."""

    items: list[Event]
    last: int = Field(description="The newest event of all; a stream `after` it shows what happens from now on.")


class Identity(ResponseBody):
    """The caller."""

    name: str
    role: Role


class Alive(ResponseBody):
    """The answer of a process that is alive."""

    status: Literal["ok"]
    version: str


class Ready(ResponseBody):
    """Whether the service can work."""

    ready: bool
    leader: bool


class NotReady(Ready):
    """The reason why the service cannot work."""

    error: ErrorBody


class Problem(ResponseBody):
    """A problem of the service."""

    since: str | None
    what: str
    message: str


class Health(Ready):
    """The health of the service."""

    holder: str = Field(description="The replica that leads; empty where none does.")
    store: str = Field(description="`ok`, or what is wrong with it.")
    problems: list[Problem]
    running: int = Field(description="Tasks that run.")
    waiting: int = Field(description="Groups that wait for a place.")
