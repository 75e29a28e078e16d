"""Gangs that fit together although not one after the other: those that have a place move, and lose nothing by it.

Gangs side by side are to the engine one gang whose parts share no group, and for one gang it is complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from coterie.gang import edits
from coterie.gang.tree import Gang
from coterie.placement.capacity import Capacity
from coterie.placement.cost import extra_domains
from coterie.placement.engine import Absent, Found, place
from coterie.placement.family import decide_family, share
from coterie.placement.quota import Quota
from coterie.placement.refusal import Decision, Verdict
from coterie.topology.cluster import GPU
from coterie.topology.domains import Domains


@dataclass(frozen=True, slots=True)
class Settled:
    """A gang with those that follow it, in that order, and what was decided about each of them."""

    family: tuple[Gang, ...]
    decisions: tuple[Decision, ...]

    @property
    def placed(self) -> frozenset[str]:
        """The names of the gangs that have a place."""
        pairs = zip(self.family, self.decisions, strict=True)
        return frozenset(gang.name for gang, decision in pairs if decision.found)


@dataclass(frozen=True, slots=True)
class Room:
    """Where families may go together: what is free without them, and which of their tasks run already.

    `quota` is as for the newcomers alone, with what the others take counted as used. Gangs with constraints do not see
    the `hidden` nodes.
    """

    now: Capacity
    empty: Capacity
    anchors: Mapping[str, str]
    quota: Quota | None = None
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Together:
    """Families with places beside each other, the newcomers last, and the steps that it took to find them."""

    families: tuple[Settled, ...]
    steps: int


def place_together(others: Sequence[Settled], newcomers: Sequence[Gang], room: Room, budget: int) -> Together | Absent:
    """Place a family beside others that may move, or say that its needed tasks have no place even so.

    What the others have they keep: none of their gangs or wanted tasks is left out for the newcomers.
    """
    parts = [_kept(one, str(number), room) for number, one in enumerate(others)]
    leader, *followers = _marked(newcomers, str(len(others)), room)
    needed = edits.joined([*parts, edits.chosen(leader, room.anchors)])
    answer = place(needed, room.now, anchors=room.anchors, budget=budget)
    if isinstance(answer, Absent):
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
    return Together((*moved, Settled(tuple(newcomers), tuple(shares))), steps)


def _marked(family: Sequence[Gang], mark: str, room: Room) -> list[Gang]:
    hidden = room.hidden if any(gang.groups for gang in family) else frozenset[str]()
    return [edits.without_nodes(edits.set_apart(gang, mark), hidden) for gang in family]


def _kept(one: Settled, mark: str, room: Room) -> Gang:
    """Return what has a place in a family as one gang that needs all of it."""
    gangs = [
        edits.mapped(edits.only_tasks(gang, decision.found.nodes), lambda task: replace(task, needed=True))
        for gang, decision in zip(_marked(one.family, mark, room), one.decisions, strict=True)
        if decision.found
    ]
    return edits.joined(gangs)


def _beside(parts: Sequence[Gang], quota: Quota | None) -> Quota | None:
    """Return the quota for newcomers and others as one gang: what the others take is asked for, not used."""
    if quota is None:
        return None
    taken = sum(task.shape.amount(GPU) for part in parts for task in part.all_tasks())
    return Quota(quota.used - taken, quota.limit)


def _moved(one: Settled, found: Found, domains: Domains) -> Settled:
    decisions = []
    for gang, before in zip(one.family, one.decisions, strict=True):
        own = _share(gang, found, domains) if before.found else None
        if own and before.found:
            # That no more of its wanted tasks have room was not asked again.
            own = replace(own, optimal=own.optimal and before.found.optimal)
        decisions.append(replace(before, found=own))
    return Settled(one.family, tuple(decisions))


def _share(gang: Gang, found: Found, domains: Domains) -> Found:
    """Return the part of a placement that is one gang's, with its own cost."""
    own = share(gang, found)
    return replace(own, extra=extra_domains(gang.walk(), own.positions, domains))
