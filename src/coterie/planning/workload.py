"""What the planner plans, whichever front end it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coterie.config.configuration import Pool
from coterie.errors import Fault, Notice
from coterie.gang.tree import Gang
from coterie.topology.pod_affinity import AffinityTerm, PodTraits


@dataclass(frozen=True, slots=True)
class Workload:
    """Gangs of one document, in an order in which they can run, with what each waits for.

    `nvlink` is what a workflow itself says about NVLink. `claiming` are the cliques of tasks that have claims to a
    ComputeDomain, with the names that the user gave them. Its pods are in `namespace`, empty where nobody said which.
    `set_name` is what Grove's pods call it: a graph deployment may have a longer name than its set.
    `traits` are those of the pods by task, and `refusals` what is said of a term of theirs that cannot be honoured.
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
    traits: Mapping[str, PodTraits] = field(default_factory=dict)
    refusals: Mapping[AffinityTerm, Fault] = field(default_factory=dict)
