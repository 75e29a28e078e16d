"""Joint placement of gangs that do not fit in sequence: already placed ones may move, without losing anything.

Gangs side by side are to the engine one gang whose parts share no group, and for one gang it is complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from coterie.gang import edits
from coterie.gang.tree import Gang
from coterie.placement.capacity import Capacity
from coterie.placement.cost import extra_domains
from coterie.placement.engine import Found, NoPlacement, place
from coterie.placement.family import decide_family, share
from coterie.placement.quota import Quota
from coterie.placement.refusal import Decision, Verdict
from coterie.topology.domains import Domains


@dataclass(frozen=True, slots=True)
class DecidedFamily:
    """A gang with its followers, in that order, and the decision about each of them."""

    family: tuple[Gang, ...]
    decisions: tuple[Decision, ...]

    @property
    def placed(self) -> frozenset[str]:
        """The names of the placed gangs."""
        pairs = zip(self.family, self.decisions, strict=True)
        return frozenset(gang.name for gang, decision in pairs if decision.found)


@dataclass(frozen=True, slots=True)
class JointCapacity:
    """The context of a joint placement: the capacity without the families, and their running tasks.

    `quota` is as for the newcomers alone, with the usage of the others included. The `hidden` nodes are invisible to
    gangs with constraints.
    """

    now: Capacity
    empty: Capacity
    anchors: Mapping[str, str]
    quota: Quota | None = None
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class JointPlacement:
    """Jointly placed families, the newcomers last, and the steps of the search."""

    families: tuple[DecidedFamily, ...]
    steps: int


def place_together(
    others: Sequence[DecidedFamily], newcomers: Sequence[Gang], room: JointCapacity, budget: int
) -> JointPlacement | NoPlacement:
    """Place a family beside others that may move, or return that its needed tasks do not fit even so.

    The others lose nothing: none of their gangs or optional tasks is left out for the newcomers.
    """
    parts = [_kept(one, str(number), room) for number, one in enumerate(others)]
    leader, *followers = _marked(newcomers, str(len(others)), room)
    needed = edits.joined([*parts, edits.chosen(leader, room.anchors)])
    answer = place(needed, room.now, anchors=room.anchors, budget=budget)
    if isinstance(answer, NoPlacement):
        return answer
    found, after, steps = answer, list[Decision](), answer.steps
    if followers or any(not task.needed for task in leader.all_tasks()):
        first, *after = decide_family(
            [edits.joined([*parts, leader]), *followers],
            room.now,
            room.empty,
            anchors=room.anchors,
            quota=_beside(parts, room.quota),
            budget=budget,
        )
        found = first.found or answer
        steps += found.steps
    moved = [_moved(one, found, room.now.domains) for one in others]
    placed = (Decision(Verdict.PLACED, found=found), *after)
    shares = (
        replace(one, found=_share(gang, one.found, room.now.domains)) if one.found else one
        for gang, one in zip(newcomers, placed, strict=True)
    )
    return JointPlacement((*moved, DecidedFamily(tuple(newcomers), tuple(shares))), steps)


def _marked(family: Sequence[Gang], mark: str, room: JointCapacity) -> list[Gang]:
    hidden = room.hidden if any(gang.groups for gang in family) else frozenset[str]()
    return [edits.without_nodes(edits.set_apart(gang, mark), hidden) for gang in family]


def _kept(one: DecidedFamily, mark: str, room: JointCapacity) -> Gang:
    """Return the placed part of a family as one gang that needs all of it."""
    gangs = [
        edits.mapped(edits.only_tasks(gang, decision.found.nodes), lambda task: replace(task, needed=True))
        for gang, decision in zip(_marked(one.family, mark, room), one.decisions, strict=True)
        if decision.found
    ]
    return edits.joined(gangs)


def _beside(parts: Sequence[Gang], quota: Quota | None) -> Quota | None:
    """Return the quota for newcomers and others as one gang: the others' GPUs are requested, not used."""
    if quota is None:
        return None
    taken = sum(task.shape.gpus for part in parts for task in part.all_tasks())
    return Quota(quota.used - taken, quota.limit)


def _moved(one: DecidedFamily, found: Found, domains: Domains) -> DecidedFamily:
    decisions = []
    for gang, before in zip(one.family, one.decisions, strict=True):
        own = _share(gang, found, domains) if before.found else None
        if own and before.found:
            # Whether more of its optional tasks fit was not searched again.
            own = replace(own, optimal=own.optimal and before.found.optimal)
        decisions.append(replace(before, found=own))
    return DecidedFamily(one.family, tuple(decisions))


def _share(gang: Gang, found: Found, domains: Domains) -> Found:
    """Return the part of a placement that is one gang's, with its own cost."""
    own = share(gang, found)
    return replace(own, extra=extra_domains(gang.walk(), own.positions, domains))
