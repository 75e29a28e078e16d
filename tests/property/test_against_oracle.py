"""The engine against an exact solver: a few hundred worlds in every run; `tests.property.compare` takes any number."""

from __future__ import annotations

import sys

import pytest

from tests.property.compare import Tally, verdicts
from tests.property.worlds import FAMILIES

pytestmark = pytest.mark.oracle

WORLDS_PER_FAMILY = 25


@pytest.mark.parametrize("family", FAMILIES)
def test_engine_agrees_with_the_solver(family: str) -> None:
    tally = Tally()
    first = tuple(FAMILIES).index(family)
    for verdict in verdicts(range(first, WORLDS_PER_FAMILY * len(FAMILIES), len(FAMILIES)), jobs=1):
        tally.add(verdict)
    sys.stdout.write(f"{family}: {tally}\n")
    assert tally.worlds == WORLDS_PER_FAMILY
    assert [(verdict.name, verdict.wrong) for verdict in tally.wrong] == []
    assert tally.unproved == 0
