"""The engine against an exact solver on hundreds of worlds; `tests.property.compare` takes any number."""

from __future__ import annotations

import sys

import pytest

from tests.property.compare import ComparisonCounts, verdicts
from tests.property.worlds.random_worlds import FAMILIES
from tests.random_examples import examples
from tests.seed import SEED

pytestmark = pytest.mark.oracle

# The same worlds in every run: about those the engine must not only be right, but sure.
WORLDS_PER_FAMILY = examples(25)
# New worlds in every run.
NEW_WORLDS = 10
NEW_WORLDS_WITH_RUNNING_TASKS = 300

_HARD = pytest.mark.slow("the exact solver takes up to a second for a world of this family")
_HARD_FAMILIES = frozenset({"contended", "three_partition"})


@pytest.mark.parametrize(
    "family", [pytest.param(each, marks=_HARD if each in _HARD_FAMILIES else ()) for each in FAMILIES]
)
def test_engine_agrees_with_the_solver(family: str) -> None:
    tally = ComparisonCounts()
    first = tuple(FAMILIES).index(family)
    for verdict in verdicts(range(first, WORLDS_PER_FAMILY * len(FAMILIES), len(FAMILIES)), jobs=1):
        tally.add(verdict)
    sys.stdout.write(f"{family}: {tally}\n")
    assert tally.worlds == WORLDS_PER_FAMILY
    assert [(verdict.name, verdict.wrong) for verdict in tally.wrong] == []
    assert tally.unproved == 0


@pytest.mark.slow("asks an exact solver about many new worlds")
@pytest.mark.parametrize("family", FAMILIES)
def test_engine_agrees_with_the_solver_on_worlds_new_in_every_run(family: str) -> None:
    count = NEW_WORLDS_WITH_RUNNING_TASKS if family == "resumed" else NEW_WORLDS
    tally = ComparisonCounts()
    for verdict in verdicts(range(SEED, SEED + count), 1, family):
        tally.add(verdict)
    sys.stdout.write(f"{family}, seeds from {SEED} on: {tally}\n")
    assert [(verdict.name, verdict.wrong) for verdict in tally.wrong] == []
