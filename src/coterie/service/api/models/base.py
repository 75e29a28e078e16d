"""What all bodies share, and the one shape of errors."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

# Names of workflows, pools and tasks are shorter; what is longer names nothing.
Short = Annotated[str, Field(max_length=253)]


class Wish(BaseModel):
    """The body of a request; unknown fields are refused, so that a slip is seen."""

    model_config = ConfigDict(extra="forbid")


class Answer(BaseModel):
    """The body of an answer. Fields may be added; clients let those pass that they do not know."""

    model_config = ConfigDict(extra="allow")


class Location(Answer):
    """Where in a file something stands; lines and columns count from one."""

    file: str
    line: int | None
    column: int | None


class FaultBody(Answer):
    """One of the things that are wrong with what was sent."""

    code: str
    message: str
    file: str | None
    line: int | None
    column: int | None
    hint: str


class ErrorBody(Answer):
    """What went wrong, where, and what to do about it."""

    code: str = Field(description="A word that stays the same; those of a file's faults are in docs/reasons.md.")
    message: str
    hint: str
    location: Location | None = Field(description="Where the first fault stands, when it has a place.")
    errors: list[FaultBody] = Field(description="All faults, when what was sent has several or has places.")
    details: dict[str, Any] = Field(
        description="More for programs: the `workflows` that use a pool; `plan` and `verdict` as they are now."
    )


class Error(Answer):
    """The one shape of all errors."""

    error: ErrorBody
