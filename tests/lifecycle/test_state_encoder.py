"""Successive states as JSON: what is saved of each, part by part, is always the whole state."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from coterie.lifecycle import (
    CancelAsked,
    Created,
    EncodedState,
    Ended,
    GroupRules,
    Observation,
    Placed,
    Refused,
    Running,
    Spec,
    State,
    StateEncoder,
    Submitted,
    TaskRules,
    advance,
    from_json,
    initial,
    state_encoder,
    stored_tasks,
    to_json,
)
from tests.seed import SEED


class SavedState:
    """A state as a store has it: a row, and a row for each part."""

    def __init__(self) -> None:
        self.data: dict[str, Any] = {}
        self.parts: dict[int, Any] = {}

    def save(self, encoded: EncodedState) -> None:
        """Write a state."""
        self.data = json.loads(json.dumps(encoded.data))
        self.parts |= {number: json.loads(json.dumps(part.data)) for number, part in encoded.parts.items()}
        self.parts = {number: part for number, part in self.parts.items() if number < self.data.get("parts", 0)}

    def read(self) -> dict[str, Any]:
        """Return the state as `from_json` reads it."""
        if "parts" not in self.data:
            return self.data
        assert sorted(self.parts) == list(range(self.data["parts"]))
        return {**self.data, "parts": [self.parts[number] for number in sorted(self.parts)]}


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_what_was_saved_part_by_part_is_the_whole_state(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_encoder, "PART_TASKS", size)
    dice = random.Random(SEED)  # noqa: S311 - test data
    groups = tuple(
        GroupRules(f"g{index}", tuple(TaskRules(f"t{index}-{place}", lead=not place) for place in range(tasks)))
        for index, tasks in enumerate((1, 7, 2, 3, 1))
    )
    spec = Spec(groups)
    encoder, saved, state = StateEncoder(), SavedState(), initial(spec)
    told: list[Observation] = [Submitted()]
    for turn in range(80):
        after, _ = advance(spec, state, told, float(turn))
        encoded = encoder.encode(after)
        # A save that fails is repeated with further observations, of a state that was computed anew.
        if turn and dice.random() < 0.3:
            after, _ = advance(spec, state, told, float(turn))
            encoded = encoder.encode(after)
        saved.save(encoded)
        encoder.saved()
        state = after
        assert from_json(State, saved.read()) == state
        assert list(stored_tasks(saved.read())) == list(stored_tasks(to_json(state)))
        # The next one to save it may be another process, of another release.
        if dice.random() < 0.2:
            monkeypatch.setattr(state_encoder, "PART_TASKS", size + dice.randrange(2))
            state = from_json(State, saved.read())
            encoder = StateEncoder.of(state, saved.read())
        begun = [index for part in encoded.parts.values() for index in part.groups]
        assert len(set(begun)) == len(begun)
        group = dice.choice(groups)
        task = dice.choice(group.tasks).name
        told = [
            dice.choice(
                (
                    Placed(group.name, 1, tuple((each.name, "n1") for each in group.tasks)),
                    Refused(group.name, 1, "NoCapacity", "full"),
                    Created(group.name, 1),
                    Running(task, 1, "n1"),
                    Ended(task, 1, 0),
                )
            )
        ]
        if turn == 70:
            told = [CancelAsked("enough")]


@pytest.mark.parametrize("shape", ["single tasks", "one group"])
def test_a_step_encodes_as_much_of_a_large_workflow_as_of_a_small_one(shape: str) -> None:
    assert _written(shape, 1600) == _written(shape, 200) == _written(shape, 200, restart=True)


def _written(shape: str, tasks: int, *, restart: bool = False) -> int:
    """Return how many bytes the end of one task writes, also as the first step after a restart."""
    names = [f"t{number:04}" for number in range(tasks)]
    if shape == "single tasks":
        groups = tuple(GroupRules(name, (TaskRules(name),)) for name in names)
    else:
        rules = tuple(TaskRules(name) for name in names)
        groups = (GroupRules("g", rules, barrier=False, ignore_nonlead_status=False),)
    spec = Spec(groups)
    placed = [Placed(group.name, 1, tuple((task.name, "n1") for task in group.tasks)) for group in groups]
    state, _ = advance(spec, initial(spec), [Submitted(), *placed], 1.0)
    encoder, saved = StateEncoder(), SavedState()
    saved.save(encoder.encode(state))
    assert sum(map(len, saved.parts.values())) >= len(groups)
    encoder.saved()
    if restart:
        state = from_json(State, saved.read())
        encoder = StateEncoder.of(state, saved.read())
    state, _ = advance(spec, state, [Ended(names[100], 1, 0)], 2.0)
    found = encoder.encode(state)
    written = [{**found.data, "parts": 0, "events": 0}, *(part.data for part in found.parts.values())]
    return sum(len(json.dumps(each)) for each in written)
