"""The quarantine of workflows that cannot be driven, so that the others are."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from coterie.errors import CoterieError
from coterie.service.driver.problems import ServiceProblems

_log = logging.getLogger("coterie.quarantine")
_log.addHandler(logging.NullHandler())


class Quarantine:
    """The ids of workflows with unexpected errors, each reported as a separate problem.

    None of their tasks or capacity is ended, released or cleaned up. They are retried at intervals.
    """

    def __init__(self, problems: ServiceProblems) -> None:
        self._problems = problems
        self._idents: set[str] = set()

    def __contains__(self, workflow: str) -> bool:
        return workflow in self._idents

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._idents))

    def put(self, workflow: str, error: Exception) -> None:
        """Put a workflow in quarantine, with its error."""
        known = isinstance(error, CoterieError)
        if not known:
            _log.error("workflow %s cannot be driven", workflow, exc_info=error)
        why = str(error) if known else f"unexpected {type(error).__name__}: {error}"
        self._idents.add(workflow)
        self._problems.say(_thing(workflow), f"{why}. It is left as it is and retried every minute.")

    def leave(self, workflow: str) -> None:
        """Forget a workflow that no longer exists."""
        self.take(workflow)
        self.mark_driven(workflow)

    def take(self, workflow: str) -> None:
        """Retry a workflow; until `mark_driven`, its problem lasts."""
        self._idents.discard(workflow)

    def close(self) -> None:
        """Forget all, since another leader may drive them from now on."""
        for workflow in self:
            self.leave(workflow)

    def mark_driven(self, workflow: str) -> None:
        """Record that a workflow is driven, unless it was put in quarantine again meanwhile."""
        if workflow not in self._idents:
            self._problems.solve(_thing(workflow))


def _thing(workflow: str) -> str:
    return f"workflow {workflow}"
