"""Where the workflows of a list run: a list itself does not say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.cli.service.client import Client
from coterie.errors import NotFound
from coterie.topology.ranges import fold

Json = dict[str, Any]

# Who lists more of them is not made to wait for all.
_MOST = 60


class Places:
    """The nodes of workflows that hold some, by id; one whose row has not changed is not asked about again."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, tuple[Json, str]] = {}

    def of(self, rows: Sequence[Json]) -> Mapping[str, str]:
        """Return the nodes of those rows that run, as ranges."""
        running = [row for row in rows if row["started"] and not row["ended"]][:_MOST]
        self._known = {
            row["id"]: known if (known := self._known.get(row["id"])) and known[0] == row else (row, self._nodes(row))
            for row in running
        }
        return {ident: nodes for ident, (_, nodes) in self._known.items()}

    def _nodes(self, row: Json) -> str:
        try:
            view = self._client.workflow(row["id"])
        except NotFound:  # deleted in the meantime
            return ""
        tasks = [task for group in view["groups"] for task in group["tasks"]]
        return fold({task["node"] for task in tasks if task["node"] and not task["ended"]})
