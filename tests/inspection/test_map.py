"""The map as data: a node has the GPUs that it offers, whatever its pods hold."""

from __future__ import annotations

from coterie.inspection.map import map_json, scene_of
from coterie.inspection.node_map import node_map
from tests.planning.builders import drawn


def test_an_overfull_node_has_no_more_gpus_than_it_offers() -> None:
    drawing = drawn("cluster rack of 4\n  rack r1 [4 4]\n  pod job on r1-1 gpu=9")

    shown = map_json(scene_of(drawing.domains(), 1), drawing.topology, guessed=False)

    assert shown["gpus"] == {"used": 9, "free": 4, "out_of_service": 0, "total": 8}
    assert shown["domains"][0]["nodes"][0]["gpus"] == {"used": 9, "free": 0, "out_of_service": 0, "total": 4}

    (overfull, other) = node_map(drawing.domains(), 1, pool="p").json()["nodes"]
    assert (overfull["gpus"], [each["gpus"] for each in overfull["held"]], other["gpus"]) == (4, [9], 4)
