"""The claims of a refusal are true, and its verdict does not depend on names or order."""

from __future__ import annotations

import sys
from collections import Counter
from random import Random

import pytest

from coterie.placement.refusal import Verdict
from tests.property.claims import decided, shared_with_others, unfounded
from tests.property.laws import renamed, reordered
from tests.property.worlds.random_worlds import world
from tests.seed import SEED

pytestmark = pytest.mark.oracle

WORLDS = {"resumed": 100, "scattered_small": 20, "nested_zones": 20}


@pytest.mark.parametrize("family", WORLDS)
def test_every_reason_is_true(family: str) -> None:
    reasons: Counter[str] = Counter()
    for seed in range(SEED, SEED + WORLDS[family]):
        rng = Random(f"{family} {seed}")  # noqa: S311 - worlds are drawn, not secrets
        asked = shared_with_others(rng, world(seed, family))
        decision = decided(asked)
        assert list(unfounded(asked, decision)) == [], f"{asked}\n{decision}"
        for change in (renamed, reordered):
            other = change(rng, asked)
            verdicts = {decision.verdict, decided(other).verdict}
            # What is undecided within the budget breaks no law.
            assert len(verdicts) == 1 or Verdict.UNDECIDED in verdicts, f"{asked}\n{other}"
        reasons[decision.refusal.reason if decision.refusal else "placed"] += 1
    sys.stdout.write(f"{family}, seeds from {SEED} on: {dict(reasons)}\n")
