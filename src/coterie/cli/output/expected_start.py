"""The expected start of waiting groups, as far as it can be known.

It is known for the first group in the queue of a pool, if the group fits when another workflow ends and that one has a
time limit. The end of work without a time limit is unknown, and so is the start of groups further back in the queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coterie.cli.client.client import Client
from coterie.cli.output.times import duration_text, moment
from coterie.errors import NotFound

Json = dict[str, Any]


def within(client: Client, group: Json, now: float) -> str | None:
    """Return the time within which a group of a `why` answer is expected to be placed; None where it is unknown."""
    ways = (group["refusal"] or {}).get("ways_out", ()) if group.get("position") == 1 else ()
    awaited = [one["value"] for way in ways for one in way.get("options", ()) if one["name"] == "without"]
    ends = [_ends_by(client, owner) for owner in awaited]
    first = min((at for at in ends if at is not None), default=None)
    return duration_text(first - now) if first is not None and first > now else None


def expectations(client: Client, rows: Sequence[Json], now: float) -> dict[str, str]:
    """Return the expected start of the rows of a list for which it is known, by id."""
    found = {}
    for row in rows:
        if row.get("position") == 1:
            for group in client.why(row["id"], None)["groups"]:
                if (time := within(client, group, now)) is not None:
                    found[row["id"]] = time
    return found


def _ends_by(client: Client, workflow: str) -> float | None:
    """Return the latest end of a workflow's running groups."""
    try:
        groups = client.workflow(workflow)["groups"]
    except NotFound:  # pods of others, or it is gone
        return None
    limits = [moment(group.get("ends_by")) for group in groups if group["started"] and not group["ended"]]
    known = [limit for limit in limits if limit is not None]
    return max(known) if known and len(known) == len(limits) else None
