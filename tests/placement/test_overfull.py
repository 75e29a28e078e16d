"""Overcommitted nodes, which a snapshot may show, have no free capacity."""

from __future__ import annotations

import pytest

from coterie.errors import Reason
from coterie.placement.refusal import Nearest
from coterie.planning.plan import Planner
from tests.planning.builders import cluster, drawn, workload


@pytest.mark.parametrize("used", range(1, 6))
def test_a_refusal_beside_overfull_nodes_counts_nothing_below_zero(used: int) -> None:
    drawing = drawn(f"cluster rack\n  rack r1 [1]\n  pod wf-12 on r1-1 gpu={used}")

    plan = Planner(cluster(drawing)).plan(workload(drawing, "g: 1 x 1gpu + 1 x 1gpu,1cpu"))

    refusal = plan.gangs[0].decision.refusal
    assert refusal
    assert refusal.reason is Reason.NEVER_FITS
    assert refusal.best == (Nearest((), 1, 2),)


@pytest.mark.parametrize("used", [1, 2, 3, 4, 5])
def test_what_must_wait_beside_overfull_nodes_can_wait(used: int) -> None:
    drawing = drawn(f"cluster rack\n  rack r1 [2]\n  pod wf-12 on r1-1 gpu={used}")

    plan = Planner(cluster(drawing)).plan(workload(drawing, "g: 1 x 1gpu + 1 x 1gpu,1cpu"))

    refusal = plan.gangs[0].decision.refusal
    assert refusal
    assert refusal.reason is Reason.NO_CAPACITY
    assert refusal.best == (Nearest((), max(0, 2 - used), 2),)
