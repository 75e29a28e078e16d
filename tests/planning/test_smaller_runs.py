"""A remedy never suggests a part of a workload that needs its other part."""

from __future__ import annotations

import pytest

from coterie.config.configuration import Pool
from coterie.gang.task_counts import sizes
from coterie.gang.tree import Gang, Path
from coterie.planning.load import read_documents, workload_for
from tests.planning.builders import drawn, gangs

RACKS = drawn("""
    cluster zone > rack of 8
      zone z
        rack r1 [8 8]
        rack r2 [8 8]
""")


def numbers(text: str, path: Path = ()) -> list[int]:
    (gang,) = gangs(text, RACKS)
    return sizes(gang, path)[1]


def test_copies_may_be_fewer() -> None:
    assert numbers("g: 4 x 8gpu") == [1, 2, 3]
    assert numbers("g: 4 x 8gpu required=rack") == [1, 2, 3]


def test_the_last_task_of_its_shape_is_not_left_out() -> None:
    assert numbers("g: 1 x 4cpu + 3 x 8gpu") == [2, 3]
    assert numbers("g: 3 x 8gpu + 1 x 4cpu") == []


TWO = """
g: required=zone
  model-0: 3 x 8gpu required=rack
  model-1: 3 x 8gpu required=rack
"""


@pytest.mark.parametrize("path", [(), (("zone", "default"),), (("zone", "default"), ("rack", "model-1"))])
def test_of_equal_groups_whole_ones_are_left_out(path: Path) -> None:
    assert numbers(TWO, path) == [3]


def test_a_group_without_an_equal_beside_it_may_become_smaller() -> None:
    text = "g: required=zone\n  ps: 2 x 4cpu required=rack\n  workers: 3 x 8gpu required=rack"
    assert numbers(text, (("zone", "default"), ("rack", "workers"))) == [1, 2]
    assert numbers(text) == []


def test_what_runs_is_not_left_out() -> None:
    (gang,) = gangs("g: 3 x 8gpu", RACKS)
    assert sizes(gang, (), {"g-0"})[1] == []


def flow(*tasks: str) -> Gang:
    """Return the gang of a workflow with one group, whose tasks are given as YAML flow mappings."""
    listed = "".join(f"\n    - {{image: i, {one}}}" for one in tasks)
    text = f"workflow:\n  name: w\n  groups:\n  - name: g\n    tasks:{listed}\n"
    [written] = read_documents(text.encode(), "w.yaml").workloads
    return workload_for(written, Pool.for_levels(RACKS.topology), {}, configured=False).gangs[0]


LEAD = "name: t0, lead: true"


@pytest.mark.parametrize(
    ("tasks", "allowed"),
    [
        ([f"{LEAD}, command: [run]", "name: t1, command: [run]", "name: t2, command: [run]"], [1, 2]),
        ([f"{LEAD}, command: [serve]", "name: t1, command: [work]", "name: t2, command: [work]"], [2]),
        ([f"{LEAD}, command: [serve]", "name: t1, command: [work]", "name: t2, command: [judge]"], []),
        (["name: t0, command: [run]", "name: t1, command: [run]", "name: t2, lead: true, command: [run]"], []),
        ([f"{LEAD}, command: [run, '{{{{host:t2}}}}']", "name: t1, command: [a]", "name: t2, command: [a]"], []),
        ([f"{LEAD}, command: [run, '{{{{host:t0}}}}']", "name: t1, command: [run, '{{host:t0}}']"], [1]),
        ([f"{LEAD}, command: [torchrun, --nnodes=2]", "name: t1, command: [torchrun, --nnodes=2]"], []),
        ([f"{LEAD}, command: [torchrun, --nnodes, '2']", "name: t1, command: [torchrun, --nnodes, '2']"], []),
        ([f"{LEAD}, command: [torchrun, '--nnodes=1:2']", "name: t1, command: [torchrun, '--nnodes=1:2']"], [1]),
        (
            [
                f"{LEAD}, command: [run], environment: {{WORLD_SIZE: '2'}}",
                "name: t1, command: [run], environment: {WORLD_SIZE: '2'}",
            ],
            [],
        ),
    ],
    ids=[
        "copies",
        "roles",
        "three-roles",
        "lead-last",
        "named-host",
        "host-kept",
        "nnodes",
        "apart",
        "elastic",
        "world",
    ],
)
def test_tasks_of_a_workflow_are_left_out_only_if_the_others_do_without_them(
    tasks: list[str], allowed: list[int]
) -> None:
    assert sizes(flow(*tasks), ())[1] == allowed
