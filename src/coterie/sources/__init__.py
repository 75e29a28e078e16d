"""Where a cluster comes from: bytes of a file or of `kubectl` in, one `Snapshot` out.

A reader never leaves a wrong input half read: it raises `SpecErrors` with every fault it found.
"""

from __future__ import annotations

from dataclasses import dataclass

from coterie.errors import Notice
from coterie.topology.cluster import Cluster
from coterie.topology.levels import Topology


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster at one moment, the levels that its source itself names, and what the user should know about it."""

    cluster: Cluster
    topology: Topology | None = None
    notices: tuple[Notice, ...] = ()
