"""What the planner plans, whichever front end it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coterie.errors import Notice
from coterie.frontends.config import Pool
from coterie.gang.tree import Gang


@dataclass(frozen=True, slots=True)
class Workload:
    """Gangs of one document, in an order in which they can run, with what each waits for.

    `nvlink` is what a workflow itself says about NVLink. `claiming` are the cliques of tasks that have claims to a
    ComputeDomain, with the names that the user gave them. Its pods are in `namespace`, empty where nobody said which.
    `set_name` is what Grove's pods call it: a graph deployment may have a longer name than its set.
    """

    name: str
    kind: str
    pool: Pool
    gangs: tuple[Gang, ...]
    needs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    nvlink: str | None = None
    claiming: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""
    set_name: str = ""
