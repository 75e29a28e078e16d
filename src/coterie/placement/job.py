"""What the search still has to do."""

from __future__ import annotations

from typing import NamedTuple

from coterie.placement.outline import Amounts
from coterie.placement.packing import Region


class Job(NamedTuple):
    """Pods of one branch to put inside a region; `among` limits a spread branch to the domains still to be tried."""

    branch: int
    region: Region
    amounts: Amounts
    among: tuple[int, ...] | None = None


Agenda = tuple[Job, ...]
