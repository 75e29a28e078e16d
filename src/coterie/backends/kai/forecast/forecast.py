"""The forecast of gangs that fit but that KAI would not place, with verified changes that help.

Every offered change has been evaluated by the same rule. Pods are taken in the order of their labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from coterie.backends.kai.forecast import (
    ForecastPlacement,
    ForecastReason,
    ForecastRefusal,
    ForecastUnknown,
    kai_would_place,
)
from coterie.backends.kai.mixed_sizes import pod_order
from coterie.backends.kai.pod_group import PodGroupPart, pod_group_of
from coterie.errors import Notice
from coterie.gang.tree import Gang, Group, Task
from coterie.placement.capacity import Capacity
from coterie.placement.whatif import Coarsen, Prefer, changed_gang, relaxations
from coterie.topology.cluster import STORAGE

# The largest number of helpful changes to name.
_OFFERED = 2


def kai_notices(gang: Gang, capacity: Capacity, running: Mapping[str, str] | None = None) -> list[Notice]:
    """Yield a warning when KAI would leave a gang pending that the engine has placed on this capacity.

    `running` has the nodes of running tasks.
    """

    def answer(asked: Gang) -> ForecastPlacement | ForecastRefusal | ForecastUnknown:
        return kai_would_place(_ordered(pod_group_of(asked, capacity.domains.topology)), capacity, running=running)

    refused = answer(gang)
    if isinstance(refused, ForecastUnknown):
        message = f'whether KAI would place group "{gang.name}" is not known: the search would take too long'
        return [Notice("KaiNotChecked", message)]
    if isinstance(refused, ForecastPlacement):
        return []
    works = (
        words
        for words, changed in _changes(gang, refused.part, capacity)
        if isinstance(answer(changed), ForecastPlacement)
    )
    helps = list(islice(works, _OFFERED))
    advice = f"to avoid it: {', or '.join(helps)}" if helps else "it starts when more is free"
    message = (
        f'KAI would leave group "{gang.name}" pending although it fits{_trap(refused)}: {_reason(refused)}; {advice}'
    )
    return [Notice("KaiWouldWait", message)]


def _ordered(part: PodGroupPart) -> PodGroupPart:
    parts = tuple(map(_ordered, part.parts))
    return replace(part, parts=parts, tasks=tuple(sorted(part.tasks, key=pod_order)))


def _mixed(part: PodGroupPart) -> bool:
    return len({task.shape.requests for task in part.all_tasks()}) > 1


def _trap(refused: ForecastRefusal) -> str:
    """Return the section of the page on KAI that describes the refusal, in brackets; empty where none does."""
    if refused.why is ForecastReason.COMMON_DOMAIN_TOO_FINE:
        return " (A: one domain only)"
    if refused.before:
        return " (D: siblings)"
    return " (B: pods of different sizes)" if _mixed(refused.part) else ""


def _reason(refused: ForecastRefusal) -> str:
    part, level = refused.part, refused.part.constraint.required
    who = part.called or "the group"
    where = f"one {level}" if level else "the cluster"
    others = len(refused.before)
    after = f" after {others} other {'part has' if others == 1 else 'parts have'} taken theirs" if others else ""
    match refused.why:
        case ForecastReason.COMMON_DOMAIN_TOO_FINE:
            return f"all nodes for {who} share a domain below the {level}, and KAI looks no higher"
        case ForecastReason.NO_NODE_FOR_A_POD:
            return f"taking one pod after the other, it finds no node for one of {who}{after}"
        case _ if refused.most is None:
            return f"by its count there is no room in {where} for {who}{after}"
        case _:
            count = f"{refused.wanted} pods of {who}" + (", each counted as the largest," * _mixed(part))
            return f"of {count} it finds room for {refused.most} in {where}{after}"


def _changes(gang: Gang, part: PodGroupPart, capacity: Capacity) -> Iterator[tuple[str, Gang]]:
    """Yield changes that may help, as text and applied, the smallest first."""
    tasks = list(part.all_tasks())
    stored = {bool(task.shape.amount(STORAGE)) for task in tasks}
    if _mixed(part) and stored == {False} and STORAGE in capacity.domains.cluster.resources:
        # Where some request a resource and others do not, KAI compares sums and no longer counts the largest.
        words = f'a small storage request in task "{tasks[0].name}" and no other of them, so that KAI compares sums'
        yield words, _storing(gang, tasks[0].name)
    topology = capacity.domains.topology
    for change in relaxations(gang, topology):
        changed = changed_gang(change, gang, topology)
        if changed is not None:
            yield _words(change), changed


def _words(change: Prefer | Coarsen) -> str:
    match change:
        case Prefer(level):
            return f"{level} as preferred"
        case Coarsen(level, to):
            return f"{to} instead of {level}"


def _storing(gang: Gang, name: str) -> Gang:
    """Return the gang with one byte of storage requested by one of its tasks."""

    def asked(tasks: tuple[Task, ...]) -> tuple[Task, ...]:
        return tuple(
            replace(task, shape=replace(task.shape, requests=tuple(sorted((*task.shape.requests, (STORAGE, 1))))))
            if task.name == name
            else task
            for task in tasks
        )

    def below(groups: tuple[Group, ...]) -> tuple[Group, ...]:
        return tuple(replace(group, groups=below(group.groups), tasks=asked(group.tasks)) for group in groups)

    return replace(gang, groups=below(gang.groups), tasks=asked(gang.tasks))
