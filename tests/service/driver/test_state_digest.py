"""The digest of successive states: groups that did not change are not counted again, and none is forgotten."""

from __future__ import annotations

import random

from coterie.lifecycle import (
    CancelAsked,
    Created,
    Ended,
    GroupRules,
    Observation,
    Placed,
    Refused,
    Running,
    Spec,
    Submitted,
    TaskRules,
    advance,
    initial,
)
from coterie.service.driver.workflows.state_digest import DigestEncoder, digest_of
from tests.seed import SEED

KNOWN = {"shapes": [[["nvidia.com/gpu", 2]], [["cpu", 1]]], "shape_of": {"t1-0": 1}, "file": "w.yaml"}


def test_the_digest_of_successive_states_equals_that_of_each_alone() -> None:
    dice = random.Random(SEED)  # noqa: S311 - test data
    groups = tuple(
        GroupRules(f"g{index}", tasks=tuple(TaskRules(f"t{index}-{place}", lead=not place) for place in range(3)))
        for index in range(4)
    )
    spec = Spec(groups)
    encoder, state = DigestEncoder(), initial(spec)
    told: list[Observation] = [Submitted()]
    seen = set()
    for turn in range(60):
        state, _ = advance(spec, state, told, float(turn))
        digest = encoder.of(state, KNOWN)
        assert digest == digest_of(state, KNOWN)
        seen.add(str(digest["tasks"]))
        group = dice.choice(groups)
        task = dice.choice(group.tasks).name
        told = [
            dice.choice(
                (
                    Placed(group.name, 1, tuple((each.name, "n1") for each in group.tasks)),
                    Refused(group.name, 1, "NoCapacity", "full", never=dice.random() < 0.2),
                    Created(group.name, 1),
                    Running(task, 1, "n1"),
                    Ended(task, 1, 0),
                )
            )
        ]
        if turn == 50:
            told = [CancelAsked("enough")]
    assert len(seen) > 2
