"""Workflows that cannot be driven: they are left as they are, so that the others go on."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from coterie.errors import CoterieError
from coterie.service.driver.problems import Troubles

_log = logging.getLogger("coterie.aside")
_log.addHandler(logging.NullHandler())


class Aside:
    """The ids of workflows of which something went wrong that no rule foresees, each told as a trouble of its own.

    Nothing that belongs to them is ended, given away or cleaned up. From time to time they are tried again.
    """

    def __init__(self, troubles: Troubles) -> None:
        self._troubles = troubles
        self._idents: set[str] = set()

    def __contains__(self, workflow: str) -> bool:
        return workflow in self._idents

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._idents))

    def put(self, workflow: str, error: Exception) -> None:
        """Leave a workflow alone, and say why."""
        known = isinstance(error, CoterieError)
        if not known:
            _log.error("workflow %s", workflow, exc_info=error)
        why = str(error) if known else f"unexpected {type(error).__name__}: {error}"
        self._idents.add(workflow)
        self._troubles.say(_thing(workflow), f"{why}. It is left as it is and retried every minute.")

    def leave(self, workflow: str) -> None:
        """Forget a workflow that is no longer there."""
        self.take(workflow)
        self.welcome(workflow)

    def take(self, workflow: str) -> None:
        """Try a workflow again; until `welcome`, the trouble with it lasts."""
        self._idents.discard(workflow)

    def close(self) -> None:
        """Forget all, as somebody else may be looking after them from now on."""
        for workflow in self:
            self.leave(workflow)

    def welcome(self, workflow: str) -> None:
        """Note that a workflow is driven, unless it was put here again meanwhile."""
        if workflow not in self._idents:
            self._troubles.solve(_thing(workflow))


def _thing(workflow: str) -> str:
    return f"workflow {workflow}"
