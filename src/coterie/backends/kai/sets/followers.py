"""The followers of gangs: bound to the domain of the leader, held back until it is known, or free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from coterie.backends.shared.ownership import RunningTasks
from coterie.errors import Notice
from coterie.gang.tree import Gang, Group
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology

# Node labels and their values.
Labels = tuple[tuple[str, str], ...]

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Followed:
    """The decisions about followers: the node labels that bind them, and the ones held back."""

    bound: Mapping[str, Labels] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    notices: tuple[Notice, ...] = ()


def follow(gangs: Sequence[Gang], chosen: Sequence[Gang], topology: Topology, sight: RunningTasks | None) -> Followed:
    """Decide about all followers among the chosen gangs; their leaders are among all gangs of the workload."""
    by_name = {gang.name: gang for gang in gangs}
    families: dict[str, list[Gang]] = {}
    for gang in chosen:
        if gang.follows in by_name:
            families.setdefault(gang.follows, []).append(gang)
    domains = Domains.of(sight.cluster, topology) if sight and families else None
    bound: dict[str, Labels] = {}
    held: list[str] = []
    notices: list[Notice] = []
    for name, followers in families.items():
        leader = by_name[name]
        running = sight.running(leader) if sight else None
        missing = _missing(leader, running)
        together = [gang for gang in followers if _shared(gang, leader, required=True)]
        free = [gang.name for gang in followers if gang not in together]
        if together:
            level = max(_shared(together[0], leader, required=True), key=lambda group: len(group.path)).level
            labels, why = ((), missing) if missing else _home(level, running or {}, domains)
            if why:
                held += [gang.name for gang in together]
                notices.append(_held(leader, together, level, why))
            else:
                bound |= dict.fromkeys((gang.name for gang in together), labels)
        if free and missing:
            notices.append(_free(leader, free))
        notices += _apart(leader, followers)
    return Followed(bound, frozenset(held), tuple(notices))


def _shared(gang: Gang, leader: Gang, *, required: bool) -> list[Group]:
    """Return the groups that a follower shares with its leader, the coarsest first."""
    theirs = {group.path for group in leader.walk()}
    return [group for group in gang.walk() if group.path in theirs and group.required is required]


def _missing(leader: Gang, running: Mapping[str, str] | None) -> str:
    """Return why a leader is not known to run; empty when all its needed tasks are seen."""
    if running is None:
        return "no cluster was given that shows where it runs"
    needed = Counter(task.clique for task in leader.all_tasks() if task.needed)
    seen = Counter(task.clique for task in leader.all_tasks() if task.name in running)
    count = sum(min(amount, seen[clique]) for clique, amount in needed.items())
    return f"of the {needed.total()} pods it needs, {count or 'none'} run" if count < needed.total() else ""


def _home(level: str, running: Mapping[str, str], domains: Domains | None) -> tuple[Labels, str]:
    """Return the labels of the domain of all running tasks, or why there is no such domain."""
    if domains is None:
        return (), "no cluster was given"
    depth = domains.topology.index(level)
    tier = domains.tiers[depth]
    positions = (domains.position.get(node) for node in running.values())
    found = {-1 if position is None else int(tier.of[position]) for position in positions}
    if -1 in found:
        return (), f"it runs on nodes that are in no {level}"
    if len(found) > 1:
        names = sorted("/".join(tier.values[domain]) for domain in found)
        return (), f"it runs in more than one {level} ({_listed(names)})"
    (domain,) = found
    labels = (each.label for each in domains.topology.levels[: depth + 1])
    return tuple(zip(labels, tier.values[domain], strict=True)), ""


def _held(leader: Gang, followers: Sequence[Gang], level: str, why: str) -> Notice:
    message = (
        f'not written: {_listed([gang.name for gang in followers])}, which must be in the {level} of "{leader.name}", '
        f'and {why}; apply the manifests, and when "{leader.name}" runs there, render again with --cluster SRC'
    )
    return Notice("FollowersHeld", message)


def _free(leader: Gang, names: Sequence[str]) -> Notice:
    message = (
        f'{_listed(names)} should not start before "{leader.name}", and nothing keeps KAI from it; to be sure, render '
        f"{leader.name} first with --group, and the others when it runs"
    )
    return Notice("FollowersFirst", message)


def _apart(leader: Gang, followers: Sequence[Gang]) -> Iterator[Notice]:
    first = {group.level: gang.name for gang in reversed(followers) for group in _shared(gang, leader, required=False)}
    for level, name in first.items():
        message = (
            f'"{name}" prefers the {level} of "{leader.name}", but KAI looks for one {level} for each of the two, and '
            "it need not be the same"
        )
        yield Notice("FollowersApart", message)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
