"""The remaining work of the search."""

from __future__ import annotations

from typing import NamedTuple

from coterie.placement.packing.node_table import Region
from coterie.placement.search.outline import Amounts


class Job(NamedTuple):
    """Pods of one branch to be placed inside a region."""

    branch: int
    region: Region
    amounts: Amounts


Agenda = tuple[Job, ...]
