"""Checks of a workflow whose tasks are to run as pods of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coterie.backends.kai.manifests.render import start_faults
from coterie.backends.shared.task_environment import reserved_notices
from coterie.config.configuration import Pool
from coterie.errors import Fault, Notice
from coterie.frontends.workflow.read import Workflow


class KaiCheck:
    """The checks of KAI."""

    def faults(self, workflow: Workflow, pool: Pool, files: Mapping[str, bytes], processes: int) -> Iterator[Fault]:  # noqa: ARG002 - a limit of this machine
        """Yield the faults that would otherwise appear only when pods are created."""
        return start_faults(workflow, pool, files)

    def notices(self, workflow: Workflow) -> Iterator[Notice]:
        """Yield notices of how pods deviate from the workflow."""
        return reserved_notices(workflow)

    def size_notices(self, workflow: Workflow, processes: int) -> tuple[Notice, ...]:  # noqa: ARG002 - no limit here
        """Return nothing: a cluster runs as many tasks as fit on its nodes."""
        return ()
