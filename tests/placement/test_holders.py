"""The holders that block a gang: those of capacity it could use, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coterie.gang import edits
from coterie.gang.tree import Shape, Task
from coterie.placement.capacity import Capacity
from coterie.placement.explain.decision import decide
from tests.planning.builders import drawn, gangs

ROWS = """
cluster rack of 8
  rack r1 [8 .:inside]
  rack r2 [.:outside .:outside]
"""


@pytest.mark.parametrize(
    ("rack", "excluded", "wanted"),
    [
        ("", [], ["outside", "inside"]),
        ("r1", [], ["inside"]),
        ("r2", [], ["outside"]),
        ("", ["r2-1", "r2-2"], ["inside"]),
    ],
)
def test_holders_of_nodes_that_a_gang_may_not_use_are_not_in_its_way(
    rack: str, excluded: list[str], wanted: list[str]
) -> None:
    drawing = drawn(ROWS)
    domains = drawing.domains()
    (gang,) = gangs("g: 2 x 8gpu", drawing)
    selector = ((drawing.topology.levels[0].label, rack),) if rack else ()

    def narrow(shape: Shape) -> Shape:
        return replace(shape, selector=selector, excluded=frozenset(excluded))

    def narrowed(task: Task) -> Task:
        return replace(task, shape=narrow(task.shape))

    decision = decide(edits.mapped(gang, narrowed), Capacity.now(domains), Capacity.empty(domains))

    assert decision.refusal
    assert [holder.owner for holder in decision.refusal.holders] == wanted
