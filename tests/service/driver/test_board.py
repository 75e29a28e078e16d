"""The turns of the leader: how long each of them performs actions."""

from __future__ import annotations

import pytest

from coterie.service.driver.board import _performing_s


@pytest.mark.parametrize(
    ("rest", "performing"), [(0.0, 0.15), (0.05, 0.15), (0.1, 0.2), (0.2, 0.3), (0.4, 0.4), (9.0, 0.5)]
)
def test_a_turn_performs_actions_for_longer_than_its_rest_took_within_limits(rest: float, performing: float) -> None:
    assert _performing_s(rest) == pytest.approx(performing)
