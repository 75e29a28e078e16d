"""A gang that fits but that KAI would leave pending is reported beforehand, with verified remedies."""

from __future__ import annotations

from dataclasses import replace

from coterie.backends.kai.forecast.forecast import kai_notices
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, place
from coterie.topology.cluster import STORAGE
from tests.planning.builders import drawn, gangs


def told(cluster: str, gang: str, *, storage: bool = False) -> str:
    """Return the warning about a gang that the engine places, or nothing."""
    drawing = drawn(cluster)
    if storage:
        drawing.nodes = {
            name: replace(node, allocatable={**node.allocatable, STORAGE: 1 << 30})
            for name, node in drawing.nodes.items()
        }
    (one,) = gangs(gang, drawing)
    capacity = Capacity.now(drawing.domains())
    assert isinstance(place(one, capacity), Found)
    notices = kai_notices(one, capacity)
    assert {notice.code for notice in notices} <= {"KaiWouldWait"}
    return "".join(notice.message for notice in notices)


TWO = "cluster zone > rack\n  zone a: rack r1 [8 8]  rack r2 [8]"
MIXED = "g: 1 x 8gpu + 2 x 4gpu required=rack"


def test_what_kai_places_needs_no_warning() -> None:
    assert told(TWO, "g: 2 x 8gpu required=rack") == ""


def test_mixed_sizes_are_named_with_the_count_and_a_level_that_helps() -> None:
    assert told(TWO, MIXED) == (
        'KAI would leave group "g" pending although it fits (B: pods of different sizes): of 3 pods of rack group '
        '"default", each counted as the largest, it finds room for 2 in one rack; to avoid it: rack as preferred, or '
        "zone instead of rack"
    )


def test_a_storage_request_in_one_task_is_offered_where_nodes_have_storage() -> None:
    message = told(TWO, MIXED, storage=True)

    assert 'a small storage request in task "g-0" and no other of them' in message


def test_parts_that_chose_before_are_counted() -> None:
    cluster = "cluster rack\n  rack r1 [9]  rack r2 [6]"
    gang = """
        g:
          a: 5 x 1gpu required=rack
          b: 4 x 1gpu required=rack
          c: 3 x 1gpu required=rack
          d: 3 x 1gpu required=rack
    """

    assert "after" in told(cluster, gang)


def test_an_order_that_strands_a_pod_is_enough_for_a_warning() -> None:
    message = told("cluster\n  [10 10]", "g: 2 x 4gpu + 4 x 3gpu")

    assert "taking one pod after the other" in message
    assert message.endswith("it starts when more is free")
