"""The checks of a workflow by its backend, before it is accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from coterie.errors import Fault, Notice

# A workflow as its front end reads it, a type that this layer does not know.
Workflow_contra = TypeVar("Workflow_contra", contravariant=True)
# Its pool, as the configuration reads it.
Pool_contra = TypeVar("Pool_contra", contravariant=True)


class SubmissionCheck(Protocol[Workflow_contra, Pool_contra]):
    """The checks of one backend."""

    def faults(
        self, workflow: Workflow_contra, pool: Pool_contra, files: Mapping[str, bytes], processes: int
    ) -> Iterable[Fault]:
        """Yield the faults that would otherwise appear only when tasks start; `files` are those it names."""

    def notices(self, workflow: Workflow_contra) -> Iterable[Notice]:
        """Yield notices where the backend deviates from the workflow."""

    def size_notices(self, workflow: Workflow_contra, processes: int) -> Iterable[Notice]:
        """Yield notices of groups that are too wide, for a plan without a submission."""
