"""The objects that refer to a ClusterTopology, the levels that each names, and the effects of a change.

Pure: objects of a cluster or of a file in, a report out. Objects are read leniently, since one that was admitted by
another version of an operator may still refer to a level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import msgspec

from coterie.backends.base import registry
from coterie.backends.base.topology_resource import TopologyResource
from coterie.errors import field_path
from coterie.frontends.dynamo.written_constraints import graph_constraints, transfer_policy
from coterie.frontends.grove.podcliqueset.model import TopologyConstraint
from coterie.frontends.grove.podcliqueset.written_constraints import set_constraints
from coterie.topology.levels import Topology

Object = Mapping[str, Any]

SET, GRAPH = "PodCliqueSet", "DynamoGraphDeployment"
# A PodGroup that was made for one of these objects is no user of its own.
_MADE_FOR = frozenset({"PodGang", SET})

NO_EFFECT, NOT_PLACED, NOT_PREFERRED, NOT_ROUTED = "none", "not-placed", "not-preferred", "not-routed"


@dataclass(frozen=True, slots=True)
class LevelUse:
    """A level that a part of an object names; `field` is the place of the constraint.

    `required` is None for a router's transfers, which concern no placement. `label` is the node label of a level that
    is named by it, as schedulers do, and empty for one that is named by its domain. `effect` is that of a change:
    `none`, `not-placed` for a required level that would be gone, `not-preferred` for a preference without effect,
    `not-routed` for a router's level.
    """

    field: str
    level: str
    required: bool | None
    label: str = ""
    effect: str = NO_EFFECT


@dataclass(frozen=True, slots=True)
class TopologyUser:
    """An object that refers to a topology; one without uses names no level."""

    kind: str
    namespace: str
    name: str
    uses: tuple[LevelUse, ...]

    @property
    def effect(self) -> str:
        """The worst effect among those of its levels."""
        effects = {use.effect for use in self.uses}
        return next((each for each in (NOT_PLACED, NOT_PREFERRED, NOT_ROUTED) if each in effects), NO_EFFECT)


@dataclass(frozen=True, slots=True)
class LevelChange:
    """The difference between the levels of a topology and those that it would have."""

    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    relabelled: tuple[str, ...] = ()
    reordered: bool = False
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class UserReport:
    """The users of a topology; `change` is None where only the present state was asked for.

    `levels` are None where there is no such topology, or where it is invalid for the reasons in `faults`.
    """

    name: str
    levels: Topology | None
    users: tuple[TopologyUser, ...]
    change: LevelChange | None = None
    faults: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the report as data."""
        levels = (
            None if self.levels is None else [{"domain": each.name, "key": each.label} for each in self.levels.levels]
        )
        users = [{**asdict(user), "effect": user.effect} for user in self.users]
        change = asdict(self.change) if self.change else None
        found = {"topology": self.name, "levels": levels, "faults": self.faults, "change": change, "users": users}
        # Through JSON, so that callers in this process and clients get the same lists.
        return dict(msgspec.json.decode(msgspec.json.encode(found)))


def topology_users(
    name: str,
    before: Topology | None,
    objects: Iterable[Object],
    after: Topology | None = None,
    *,
    change: bool = False,
) -> UserReport:
    """Return the users of a topology, by kind and name.

    With `change`, the effects of its levels becoming those of `after` are included; None stands for its deletion.
    """
    resources = {resource.work[1]: resource for resource in _resources()}
    found = []
    for each in objects:
        uses = tuple(_uses(name, each, resources, before))
        if uses or name in _names(each, resources):
            judged = tuple(judged_use(use, before, after) for use in uses) if change else uses
            metadata = each["metadata"]
            found.append(TopologyUser(each["kind"], str(metadata.get("namespace", "")), str(metadata["name"]), judged))
    found.sort(key=lambda user: (user.kind, user.namespace, user.name))
    return UserReport(name, before, tuple(found), level_change(before, after) if change else None)


def level_change(before: Topology | None, after: Topology | None) -> LevelChange:
    """Return the difference between two states of a topology."""
    old = {level.name: level.label for level in before.levels} if before else {}
    new = {level.name: level.label for level in after.levels} if after else {}
    order = list(new)
    kept = [order.index(name) for name in old if name in new]
    return LevelChange(
        removed=tuple(name for name in old if name not in new),
        added=tuple(name for name in new if name not in old),
        relabelled=tuple(name for name in new if name in old and new[name] != old[name]),
        reordered=any(above > below for above, below in pairwise(kept)),
        deleted=after is None,
    )


def _resources() -> Iterator[TopologyResource]:
    for scheduler in registry.schedulers():
        if (make := registry.traits(scheduler).topology_resource) is not None:
            yield make()


def _written(found: Object) -> Sequence[TopologyConstraint]:
    if found["kind"] == SET:
        return set_constraints(found)
    return graph_constraints(found) if found["kind"] == GRAPH else ()


def _transfers(found: Object) -> Sequence[TopologyConstraint]:
    policy = transfer_policy(found) if found["kind"] == GRAPH else None
    return () if policy is None else (policy,)


def _names(found: Object, resources: Mapping[str, TopologyResource]) -> set[str]:
    resource = resources.get(found["kind"])
    if resource is not None:
        return set() if _made(found) else set(resource.references(found).values())
    return {each.topology for each in (*_written(found), *_transfers(found))}


def _uses(
    name: str, found: Object, resources: Mapping[str, TopologyResource], before: Topology | None
) -> Iterator[LevelUse]:
    resource = resources.get(found["kind"])
    if resource is not None:
        # Schedulers know labels only; users read the names of levels.
        domains = {level.label: level.name for level in before.levels} if before else {}
        for each in () if _made(found) else resource.levels(found):
            if each.topology == name:
                yield LevelUse(each.field, domains.get(each.label, each.label), each.required, each.label)
        return
    written = _written(found)
    # A constraint without a name means the topology that another one of the object names.
    inherited = next((each.topology for each in written if each.topology), "")
    for one in written:
        if (one.topology or inherited) == name:
            for domain, required in ((one.domain, True), (one.preferred, False)):
                if domain:
                    yield LevelUse(field_path(one.path), domain, required)
    for policy in _transfers(found):
        if policy.topology == name and policy.domain:
            yield LevelUse(field_path(policy.path), policy.domain, None)


def _made(found: Object) -> bool:
    owners = found["metadata"].get("ownerReferences")
    listed = owners if isinstance(owners, list) else ()
    return any(owner.get("kind") in _MADE_FOR for owner in listed if isinstance(owner, Mapping))


def judged_use(use: LevelUse, before: Topology | None, after: Topology | None) -> LevelUse:
    """Return a use with its effect; a level that is gone already does not change."""
    if not _has(before, use) or _has(after, use):
        return use
    effects = {True: NOT_PLACED, False: NOT_PREFERRED, None: NOT_ROUTED}
    return replace(use, effect=effects[use.required])


def _has(topology: Topology | None, use: LevelUse) -> bool:
    """Return whether a topology has a level by the label or by the domain that a use names."""
    levels = topology.levels if topology else ()
    return any(level.label == use.label if use.label else level.name == use.level for level in levels)
