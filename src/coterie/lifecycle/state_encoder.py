"""The successive states of a workflow as JSON; of a large workflow, a step encodes only what it changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from coterie.lifecycle.codec import IN_PARTS, VERSION, encoded
from coterie.lifecycle.state import GroupState, State

# How many tasks are stored together: a change of one of them writes them all.
PART_TASKS = 32

Json = Any


@dataclass(frozen=True, slots=True)
class StatePart:
    """A part of a state: its JSON data, and the positions of the groups that begin in it."""

    data: list[Json]
    groups: range


@dataclass(frozen=True, slots=True)
class EncodedState:
    """A state as JSON data, which the caller must not change: complete, or without its `parts`.

    Parts that did not change since the last saved state are left out.
    """

    data: dict[str, Json]
    parts: Mapping[int, StatePart]

    @property
    def divided(self) -> bool:
        """Whether the state has parts."""
        return bool(self.data["version"] == IN_PARTS)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Consecutive tasks of one group; the first ones are stored with the group's own fields."""

    group: int
    tasks: slice

    def __len__(self) -> int:
        """Return the number of its tasks."""
        return int(self.tasks.stop - self.tasks.start)

    @property
    def begins(self) -> bool:
        """Whether it has the first task of its group."""
        return bool(self.tasks.start == 0)


class StateEncoder:
    """The successive states of one workflow as JSON: what did not change is encoded once.

    A state of more than `PART_TASKS` tasks is divided into parts of that size, so that a step writes no more of a large
    workflow than of a small one. `from_json` reads it with the list of its parts in place of their number.
    """

    def __init__(self) -> None:
        self._groups: tuple[GroupState, ...] = ()
        self._parts: list[list[_Piece]] = []
        self._parts_of: list[range] = []  # by group
        self._encoded: list[list[dict[str, Json]]] = []
        self._unsaved: set[int] = set()  # parts

    @staticmethod
    def of(state: State, stored: Mapping[str, Json]) -> StateEncoder:
        """Return the encoder of a stored state: its parts are encoded and saved again only where they change."""
        found = StateEncoder()
        if stored.get("version") == IN_PARTS:
            found._divide(state.groups)
            found._groups, found._encoded = state.groups, list(stored["parts"])
        # Another release may have divided it differently.
        if [[len(piece["tasks"]) for piece in part] for part in found._encoded] != [
            list(map(len, part)) for part in found._parts
        ]:
            return StateEncoder()
        return found

    def saved(self) -> None:
        """Take the state that was encoded last as saved."""
        self._unsaved.clear()

    def encode(self, state: State) -> EncodedState:
        """Return a state as JSON data."""
        if self._parts and len(self._groups) == len(state.groups):
            changed = set(self._changed(state.groups))
            again = {
                number: [
                    _encoded_again(piece, self._groups[piece.group], state.groups[piece.group], known)
                    for piece, known in zip(self._parts[number], self._encoded[number], strict=True)
                ]
                for number in changed
            }
            for number, part in again.items():
                self._encoded[number] = part
        else:
            self._divide(state.groups)
            changed = set(range(len(self._parts)))
            self._encoded = [[_encoded(piece, state.groups[piece.group]) for piece in pieces] for pieces in self._parts]
        self._groups = state.groups
        self._unsaved |= changed
        rest = encoded(replace(state, groups=()))
        if len(self._parts) == 1:
            return EncodedState({"version": VERSION, **rest, "groups": self._encoded[0]}, {})
        del rest["groups"]
        parts = {number: StatePart(self._encoded[number], self._beginning(number)) for number in sorted(self._unsaved)}
        return EncodedState({"version": IN_PARTS, **rest, "parts": len(self._parts)}, parts)

    def _divide(self, groups: tuple[GroupState, ...]) -> None:
        self._parts, self._parts_of, room = [[]], [], PART_TASKS
        for index, group in enumerate(groups):
            first, size = 0, len(group.tasks)
            begun = len(self._parts) - bool(room)
            while first < size:
                if not room:
                    self._parts.append([])
                    room = PART_TASKS
                last = min(size, first + room)
                self._parts[-1].append(_Piece(index, slice(first, last)))
                first, room = last, room - (last - first)
            self._parts_of.append(range(begun, len(self._parts)))

    def _changed(self, groups: tuple[GroupState, ...]) -> Iterator[int]:
        """Yield the parts of changed groups; of a group in several parts, the first and those with changed tasks."""
        for index, (old, new) in enumerate(zip(self._groups, groups, strict=True)):
            if old is not new:
                first, *others = self._parts_of[index]
                yield first
                for number in others:
                    tasks = self._parts[number][0].tasks
                    if old.tasks[tasks] != new.tasks[tasks]:
                        yield number

    def _beginning(self, number: int) -> range:
        begun = [piece.group for piece in self._parts[number] if piece.begins]
        return range(begun[0], begun[-1] + 1) if begun else range(0)


def _encoded(piece: _Piece, group: GroupState) -> dict[str, Json]:
    return {**_head(piece, group), "tasks": [encoded(task) for task in group.tasks[piece.tasks]]}


def _encoded_again(piece: _Piece, old: GroupState, new: GroupState, known: dict[str, Json]) -> dict[str, Json]:
    if old is new:
        return known
    compared = zip(old.tasks[piece.tasks], new.tasks[piece.tasks], known["tasks"], strict=True)
    return {**_head(piece, new), "tasks": [entry if was is now else encoded(now) for was, now, entry in compared]}


def _head(piece: _Piece, group: GroupState) -> dict[str, Json]:
    found: dict[str, Json] = encoded(replace(group, tasks=())) if piece.begins else {}
    return found
