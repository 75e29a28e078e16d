"""The settings that the rules of PodCliqueSets depend on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from coterie.frontends.grove.topology import KAI, SCHEDULERS

# Schedulers that accept no topology constraint at all.
WITHOUT_TOPOLOGY = frozenset({"volcano", "lpx-scheduler"})


class Form(StrEnum):
    """The API by which a set is judged.

    EITHER accepts the multiple-topology proposal's form (`topologyName` on the set, `packDomain` anywhere) as well as
    today's (`pack.required`, `pack.preferred`, names at every level), and warns where today's clusters would refuse.
    GROVE_HEAD is exactly today's API.
    """

    EITHER = "either"
    GROVE_HEAD = "grove-head"


@dataclass(frozen=True, slots=True)
class GroveSettings:
    """The cluster's configuration, as far as rules depend on it."""

    form: Form = Form.EITHER
    topology_aware_scheduling: bool = True
    auto_mnnvl: bool = True
    default_scheduler: str = KAI
    enabled_schedulers: frozenset[str] = SCHEDULERS

    @property
    def strict(self) -> bool:
        """Whether what today's API refuses is refused, where Coterie itself would only warn."""
        return self.form is Form.GROVE_HEAD
