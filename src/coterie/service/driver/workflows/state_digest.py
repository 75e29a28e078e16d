"""The digest of a state: the part that lists show, so that they need not read the state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coterie.lifecycle import GroupState, State, Status, Waiting
from coterie.service.queue.order import queued_amount
from coterie.topology.cluster import gpu_count

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _GroupDigest:
    """The part of a digest that one group determines; `queued` is its entry where it is in the queue."""

    tasks: int
    running: int
    completed: int
    failed: int
    cleaning: bool
    waiting: Waiting | None
    queued: list[Any] | None


class DigestEncoder:
    """`digest_of` for the successive states of one workflow: a group that did not change is counted once."""

    def __init__(self) -> None:
        self._groups: tuple[GroupState, ...] = ()
        self._known: list[_GroupDigest] = []

    def of(self, state: State, known: Mapping[str, Any]) -> Json:
        """Return the digest of a state; `known` is the one before, or the part that no state changes."""
        amounts, shapes = [gpu_count(shape) for shape in known["shapes"]], known["shape_of"]

        def counted(group: GroupState) -> _GroupDigest:
            statuses = [task.status for task in group.tasks]
            return _GroupDigest(
                len(statuses),
                statuses.count(Status.RUNNING),
                statuses.count(Status.COMPLETED),
                sum(status.failed for status in statuses),
                group.cleaning,
                group.waiting,
                queued_amount(group, state.submitted or 0.0, amounts, shapes),
            )

        if len(self._groups) != len(state.groups):
            self._known = [counted(group) for group in state.groups]
        else:
            for index, (old, new) in enumerate(zip(self._groups, state.groups, strict=True)):
                if old is not new:
                    self._known[index] = counted(new)
        self._groups = state.groups
        return self._whole(state, known)

    def _whole(self, state: State, known: Mapping[str, Any]) -> Json:
        groups = self._known
        waits = [(index, each.waiting) for index, each in enumerate(groups) if each.waiting]
        first = next((each for each in waits if each[1].never), next(iter(waits), None))
        return {
            **known,
            "message": state.message,
            "cleaning": state.status.final and any(each.cleaning for each in groups),
            "queued": [each.queued for each in groups if each.queued is not None],
            "waiting": {
                "group": state.groups[first[0]].name,
                "reason": first[1].reason,
                "message": first[1].message,
                "since": first[1].since,
                "never": first[1].never,
            }
            if first
            else None,
            "tasks": {
                "total": sum(each.tasks for each in groups),
                "running": sum(each.running for each in groups),
                "completed": sum(each.completed for each in groups),
                "failed": sum(each.failed for each in groups),
            },
        }


def digest_of(state: State, known: Mapping[str, Any]) -> Json:
    """Return the digest of a state; `known` is the one before, or the part that no state changes."""
    return DigestEncoder().of(state, known)
