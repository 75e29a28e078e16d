"""The outcomes of a PodGroup under KAI's rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from coterie.backends.kai.pod_group import PodGroupPart


class ForecastReason(StrEnum):
    """The reason why KAI gives up on a part."""

    COMMON_DOMAIN_TOO_FINE = "the nodes share a domain below the required level, and KAI looks no higher"
    NOT_ENOUGH_IN_COMMON = "the domain that all nodes share has too little room by KAI's count"
    NO_DOMAIN_COUNTS_ENOUGH = "no domain has enough room by KAI's count"
    NO_NODE_FOR_A_POD = "a pod found no node in a domain that had enough room by KAI's count"


@dataclass(frozen=True, slots=True)
class ForecastPlacement:
    """Every minimum is met; `nodes` is by task, `domains` are those of the constrained parts, by name.

    A domain is written as KAI does, label values from the coarsest level down joined with dots, and "root" for the
    whole topology. `waiting` are tasks above the minimum that did not fit.
    """

    nodes: Mapping[str, str]
    domains: Mapping[str, str]
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForecastRefusal:
    """A gang that cannot start; `part` failed in the attempt that came furthest, after those in `before` were placed.

    `wanted` pods were to be placed at once; `most` is what the best domain holds, where KAI counts pods.
    """

    part: PodGroupPart
    why: ForecastReason
    wanted: int
    most: int | None = None
    before: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForecastUnknown:
    """Undecided: more candidates than the budget allows."""
