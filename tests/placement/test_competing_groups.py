"""Competing groups are placed together, independent of their names and order."""

from __future__ import annotations

from itertools import permutations

import pytest

from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, place
from coterie.placement.explain.decision import decide
from tests.placement.twin import verify
from tests.planning.builders import drawn, gangs
from tests.planning.test_refusals import contradictions

SIX_AND_FIVE = "cluster rack\n  rack r1 [6x1]\n  rack r2 [5x1]"


@pytest.mark.parametrize("names", list(permutations("abc")))
@pytest.mark.parametrize("sizes", sorted(set(permutations((3, 3, 5)))))
def test_three_three_and_five_fit_six_and_five_in_every_naming_order(
    names: tuple[str, ...], sizes: tuple[int, ...]
) -> None:
    drawing = drawn(SIX_AND_FIVE)
    lines = [f"  {name}: {size} x 1gpu required=rack" for name, size in zip(names, sizes, strict=True)]
    (gang,) = gangs("\n".join(["g:", *lines]), drawing)

    found = place(gang, Capacity.now(drawing.domains()))

    assert isinstance(found, Found)
    assert verify(gang, drawing.domains(), found) == []


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_pairs_of_racks_are_shared_out_in_every_order(order: tuple[int, ...]) -> None:
    """Sums of two of the four must be seven and eight: only 5 + 2 and 4 + 4 do."""
    drawing = drawn("cluster rack\n  rack r1 [7x1]\n  rack r2 [8x1]")
    sizes = (5, 4, 4, 2)
    lines = [f"  m{index}: {sizes[index]} x 1gpu required=rack" for index in order]
    (gang,) = gangs("\n".join(["g:", *lines]), drawing)

    found = place(gang, Capacity.now(drawing.domains()))

    assert isinstance(found, Found)
    homes = {int(name[1]): found.nodes[f"{name}-0"][:2] for name in ("m0", "m1", "m2", "m3")}
    assert homes == {0: "r1", 3: "r1", 1: "r2", 2: "r2"}


@pytest.mark.parametrize("order", sorted(set(permutations(("8gpu", "4gpu", "4gpu")))))
def test_mixed_sizes_under_one_constraint_fit_in_every_order(order: tuple[str, ...]) -> None:
    drawing = drawn("cluster rack\n  rack r1 [8 8]")
    (gang,) = gangs(f"g: {' + '.join(order)} required=rack", drawing)

    found = place(gang, Capacity.now(drawing.domains()))

    assert isinstance(found, Found)
    assert verify(gang, drawing.domains(), found) == []


@pytest.mark.parametrize(
    "rows",
    [
        "cluster rack\n  rack r1 [4]  rack - [2]",
        "cluster rack of 4\n  rack r1 [4]  rack r2 [.:wf-12]  rack - [2]",
    ],
    ids=["never", "now"],
)
def test_a_group_in_the_way_of_free_tasks_is_not_said_to_be_too_large(rows: str) -> None:
    """The pair fits r1, and so does the large task, but not both; the pair alone would do anywhere."""
    drawing = drawn(rows)
    (gang,) = gangs("g: 4gpu\n  pair: 2 x 1gpu required=rack", drawing)
    domains = drawing.domains()

    refusal = decide(gang, Capacity.now(domains), Capacity.empty(domains)).refusal

    assert refusal
    assert contradictions(refusal) == []
