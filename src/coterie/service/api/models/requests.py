"""The bodies of requests."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coterie.service.api.models.base import RequestBody, Short

Priority = Literal["HIGH", "NORMAL", "LOW"]


class Submit(RequestBody):
    """A workflow to run."""

    source: str = Field(description="The workflow file as text.")
    file: Short = Field("workflow.yaml", description="The name of the file, for messages.")
    pool: Short | None = Field(None, description="The pool to run in; the workflow may name it, too.")
    set: list[str] = Field(default_factory=list, description="Values for the template, KEY=VALUE.")
    set_string: list[str] = Field(default_factory=list, description="The same, always as text.")
    priority: Priority = Field("NORMAL", description="Priority in the queue.")
    labels: dict[str, str] = Field(default_factory=dict, description="Labels beside those in the file.")
    label: list[str] = Field(default_factory=list, description="The same, KEY=VALUE, as in a query.")
    files: dict[str, str] = Field(default_factory=dict, description="Files of `localpath`, base64 by path.")


class Cancel(RequestBody):
    """The reason of a cancellation."""

    message: Annotated[str, Field(max_length=1000)] = ""
    force: bool = Field(default=False, description="Kill at once instead of asking tasks to stop.")


class Retry(RequestBody):
    """The scope of a retry: one task, or all that failed."""

    task: Short | None = None
