"""Checks of a workflow by the backend that is to run it, before it is accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from coterie.errors import Fault, Notice

# A workflow as its front end reads it, which this layer does not know.
Workflow_contra = TypeVar("Workflow_contra", contravariant=True)


class SubmissionCheck(Protocol[Workflow_contra]):
    """The checks of one backend."""

    def faults(self, workflow: Workflow_contra, files: Mapping[str, bytes], processes: int) -> Iterable[Fault]:
        """Yield what would otherwise show only when tasks start; `files` are those that the workflow names."""

    def notices(self, workflow: Workflow_contra) -> Iterable[Notice]:
        """Yield where the backend does something else than the workflow says."""

    def size_notices(self, workflow: Workflow_contra, processes: int) -> Iterable[Notice]:
        """Yield which groups are too wide, for somebody who only asks where the tasks would go."""
