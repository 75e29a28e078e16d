"""The base of all bodies, and the single format of errors."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

_IN_API = "The parts of a request that replace the options and commands in the hint."
# Names of workflows, pools and tasks are shorter; a longer text names nothing.
Short = Annotated[str, Field(max_length=253)]


class RequestBody(BaseModel):
    """The body of a request; unknown fields are refused, so that a misspelling is noticed."""

    model_config = ConfigDict(extra="forbid")


class ResponseBody(BaseModel):
    """The body of an answer; fields may be added, and clients ignore unknown ones."""

    model_config = ConfigDict(extra="allow")


class Location(ResponseBody):
    """A position in a file; lines and columns count from one."""

    file: str
    line: int | None
    column: int | None


class FaultBody(ResponseBody):
    """One fault of the request."""

    code: str
    message: str
    file: str | None
    line: int | None
    column: int | None
    hint: str
    in_api: list[str] = Field(description=_IN_API)


class ErrorBody(ResponseBody):
    """An error: its message, its location, and a hint."""

    code: str = Field(description="A word that stays the same; those of a file's faults are in docs/reasons.md.")
    message: str
    hint: str
    in_api: list[str] = Field(description=_IN_API)
    location: Location | None = Field(description="The location of the first fault, if it has one.")
    errors: list[FaultBody] = Field(description="All faults, if there are several or they have locations.")
    details: dict[str, Any] = Field(
        description="More for programs: the `workflows` that use a pool; `plan` and `verdict` as they are now."
    )


class Error(ResponseBody):
    """The single format of all errors."""

    error: ErrorBody
