"""A PodCliqueSet with all defaults filled in, and the topology that each of its constraints refers to.

Every part knows its `path` in the object, so that a rule can point at the user's text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from coterie.document.located import Path
from coterie.frontends.kubernetes.objects import Resource

TEMPLATE: Path = ("spec", "template")
MNNVL_GROUP = "grove.io/mnnvl-group"
MNNVL_NONE = "none"
QUEUE = "kai.scheduler/queue"
DEFAULT_TERMINATION_DELAY_NS = 4 * 3600 * 10**9


class Startup(StrEnum):
    """The order in which the cliques of a gang start."""

    ANY_ORDER = "CliqueStartupTypeAnyOrder"
    IN_ORDER = "CliqueStartupTypeInOrder"
    EXPLICIT = "CliqueStartupTypeExplicit"


class UpdateStrategy(StrEnum):
    """The rollout of a changed template to running pods."""

    ROLLING_RECREATE = "RollingRecreate"
    ON_DELETE = "OnDelete"


class SharingScope(StrEnum):
    """The scope in which a device claim is shared."""

    ALL_REPLICAS = "AllReplicas"
    PER_REPLICA = "PerReplica"


@dataclass(frozen=True, slots=True)
class TopologyConstraint:
    """A topologyConstraint as written: `legacy` is packDomain, `pack` is whether there is a pack block at all."""

    path: Path = field(compare=False)
    topology: str = ""
    required: str = ""
    preferred: str = ""
    legacy: str = ""
    pack: bool = False

    @property
    def domain(self) -> str:
        """The required domain in either form; empty where nothing is required."""
        return self.required or self.legacy

    @property
    def domain_path(self) -> Path:
        """The path of the required domain."""
        return (*self.path, "pack", "required") if self.required else (*self.path, "packDomain")

    @property
    def preferred_path(self) -> Path:
        """The path of the preferred domain."""
        return (*self.path, "pack", "preferred")

    @property
    def name_path(self) -> Path:
        """The path of the topology's name, whether or not it is set."""
        return (*self.path, "topologyName")


@dataclass(frozen=True, slots=True)
class Effective:
    """The effective constraint of a resource: the topology's name may be inherited, its domains never are."""

    topology: str
    required: str = ""
    preferred: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """An autoscaler's bounds."""

    path: Path = field(compare=False)
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class SharedClaim:
    """A device claim that pods share; `cliques` and `groups` are None without a filter."""

    path: Path = field(compare=False)
    name: str
    namespace: str
    scope: str
    cliques: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ClaimTemplate:
    """A template of device claims."""

    path: Path = field(compare=False)
    name: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Clique:
    """Pods of one kind; `pod_spec` is the user's unchanged mapping, `min_written` is false for a default."""

    path: Path = field(compare=False)
    name: str
    role: str
    replicas: int
    min_available: int
    pod_spec: Mapping[str, Any] = field(repr=False)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    constraint: TopologyConstraint | None = None
    starts_after: tuple[str, ...] = ()
    scale: Scale | None = None
    sharing: tuple[SharedClaim, ...] = ()
    min_written: bool = True

    @property
    def spec_path(self) -> Path:
        """The path of the clique's own spec."""
        return (*self.path, "spec")

    @property
    def pod_path(self) -> Path:
        """The path of the pod spec."""
        return (*self.path, "spec", "podSpec")

    @property
    def scheduler(self) -> str:
        """The scheduler that the pods name; empty where they name none."""
        return str(self.pod_spec.get("schedulerName") or "")


@dataclass(frozen=True, slots=True)
class ScalingGroup:
    """Cliques that are scaled together; the replicas of its members count per replica of the group."""

    path: Path = field(compare=False)
    name: str
    clique_names: tuple[str, ...]
    replicas: int = 1
    min_available: int = 1
    annotations: Mapping[str, str] = field(default_factory=dict)
    constraint: TopologyConstraint | None = None
    scale: Scale | None = None
    sharing: tuple[SharedClaim, ...] = ()
    min_written: bool = True


@dataclass(frozen=True)
class PodCliqueSet:
    """A whole set; `resource` is its source."""

    name: str
    namespace: str
    replicas: int
    cliques: tuple[Clique, ...]
    groups: tuple[ScalingGroup, ...] = ()
    constraint: TopologyConstraint | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    startup: str = Startup.ANY_ORDER
    update_strategy: str = UpdateStrategy.ROLLING_RECREATE
    termination_delay_ns: int = DEFAULT_TERMINATION_DELAY_NS
    publish_not_ready: bool = True
    priority_class: str = ""
    claim_templates: tuple[ClaimTemplate, ...] = ()
    sharing: tuple[SharedClaim, ...] = ()
    resource: Resource | None = field(default=None, repr=False, compare=False)

    @cached_property
    def by_name(self) -> Mapping[str, Clique]:
        """Cliques by name; of two with one name, the first."""
        found: dict[str, Clique] = {}
        for clique in self.cliques:
            found.setdefault(clique.name, clique)
        return found

    @cached_property
    def group_of(self) -> Mapping[str, ScalingGroup]:
        """The scaling group of each clique that is in one, by the clique's name; of two, the first."""
        return {name: group for group in reversed(self.groups) for name in group.clique_names}

    @property
    def standalone(self) -> tuple[Clique, ...]:
        """The cliques that are in no scaling group."""
        return tuple(clique for clique in self.cliques if clique.name not in self.group_of)

    def members(self, group: ScalingGroup) -> tuple[Clique, ...]:
        """Return the cliques of a scaling group, in the group's order."""
        return tuple(self.by_name[name] for name in group.clique_names if name in self.by_name)

    def constraints(self) -> Iterator[TopologyConstraint]:
        """Yield every constraint that is set: the set's, the cliques', the scaling groups'."""
        cliques, groups = (each.constraint for each in self.cliques), (each.constraint for each in self.groups)
        yield from (each for each in (self.constraint, *cliques, *groups) if each is not None)

    def effective(self, owner: Clique | ScalingGroup | None = None) -> Effective | None:
        """Return the constraint of the set (without an owner), a clique or a scaling group itself; None for none.

        A clique inherits the name of its scaling group's topology if that has one, else of the set's.
        """
        constraint = self.constraint if owner is None else owner.constraint
        if constraint is None or not (constraint.domain or constraint.preferred):
            return None
        return Effective(constraint.topology or self._inherited(owner), constraint.domain, constraint.preferred)

    def _inherited(self, owner: Clique | ScalingGroup | None) -> str:
        above = [self.constraint] if owner is not None else []
        if isinstance(owner, Clique) and (group := self.group_of.get(owner.name)) is not None:
            above.insert(0, group.constraint)
        return next((each.topology for each in above if each is not None and each.topology), "")
