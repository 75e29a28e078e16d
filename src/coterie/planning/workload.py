"""The planner's input, the same for every front end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coterie.config.configuration import Pool
from coterie.errors import Fault, Notice
from coterie.gang.tree import Gang
from coterie.topology.pod_affinity import AffinityTerm, PodTraits


@dataclass(frozen=True, slots=True)
class Workload:
    """Gangs of one document, in a runnable order, with the dependencies of each.

    `nvlink` is the workflow's own setting for NVLink, by group. `claiming` are the cliques of tasks that have claims
    to a ComputeDomain, with the names that the user gave them. Its pods are in `namespace`, empty where none is set.
    `set_name` is the name on Grove's pods: a graph deployment may have a longer name than its set. `traits` are those
    of the pods by task, and `refusals` the faults of terms that cannot be honoured.
    """

    name: str
    kind: str
    pool: Pool
    gangs: tuple[Gang, ...]
    needs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    nvlink: Mapping[str, str | None] = field(default_factory=dict)
    claiming: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""
    set_name: str = ""
    traits: Mapping[str, PodTraits] = field(default_factory=dict)
    refusals: Mapping[AffinityTerm, Fault] = field(default_factory=dict)
