"""The invariants of the search: interchangeable domains, and reusable failures."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from coterie.gang.tree import Gang
from coterie.placement.budget import Budget
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, NoPlacement, place
from coterie.placement.packing.feasibility import Packer
from coterie.placement.packing.node_table import EVERYWHERE, Region
from coterie.placement.problem import Problem, compile_gang
from coterie.placement.search.domains import Search
from coterie.placement.search.job import Agenda, Job
from coterie.placement.search.ledger import Ledger
from coterie.placement.search.outline import Outline
from coterie.placement.search.symmetry import Symmetry
from coterie.topology.domains import Domains
from tests.placement import twin
from tests.planning.builders import drawn, gangs, running

# One task of the second group runs in r1; r1 and r2 have one free node each, and are equal in all else.
TWO_RACKS = "cluster rack of 1\n  rack r1 [1 1]\n  rack r2 [1 .:other]"
ZONES = "cluster zone > rack of 1\n  zone a: rack r1 [1 1]  rack r2 [1 .:other]\n  zone b: rack r3 [.:other]"


def asked(rows: str, text: str, where: Mapping[str, str]) -> tuple[Gang, Domains, Found | NoPlacement]:
    """Ask the engine about a gang some of whose tasks run; the answer agrees with enumeration."""
    drawing = drawn(rows)
    (gang,) = gangs(text, drawing)
    running(drawing, gang, where)
    domains = drawing.domains()
    found = place(gang, Capacity.now(domains), anchors=where)
    truth = twin.best(gang, domains, where)
    if isinstance(found, NoPlacement):
        assert found.proved
        assert truth is None
    else:
        assert twin.verify(gang, domains, found, where) == []
        assert found.optimal
        assert twin.vector(domains, found.extra) == truth
    return gang, domains, found


@pytest.mark.parametrize("name", ["a", "zz"])
def test_the_only_home_of_a_waiting_group_is_not_taken_for_its_equal(name: str) -> None:
    text = f"g:\n  {name}: 1 x 1gpu required=rack\n  z: 2 x 1gpu required=rack"
    _, _, found = asked(TWO_RACKS, text, {"z-0": "r1-1"})

    assert isinstance(found, Found)
    assert found.nodes == {f"{name}-0": "r2-1", "z-0": "r1-1", "z-1": "r1-2"}


@pytest.mark.parametrize("name", ["a", "zz"])
def test_a_home_that_is_free_to_a_waiting_preferred_group_is_not_taken_for_its_equal(name: str) -> None:
    text = f"g:\n  {name}: 1 x 1gpu preferred=rack\n  z: 2 x 1gpu preferred=rack"
    _, _, found = asked(TWO_RACKS, text, {"z-0": "r1-1"})

    assert isinstance(found, Found)
    assert found.extra == {"rack": 0}


@pytest.mark.parametrize("kind", ["required", "preferred"])
@pytest.mark.parametrize("name", ["a", "zz"])
def test_the_home_of_a_group_deeper_below_a_waiting_one_is_not_taken_for_its_equal(name: str, kind: str) -> None:
    text = f"g:\n  {name}: 1 x 1gpu {kind}=rack\n  z: required=zone\n    m: 2 x 1gpu {kind}=rack"
    _, _, found = asked(ZONES, text, {"z/m-0": "a-r1-1"})

    assert isinstance(found, Found)
    assert found.nodes["z/m-1"] == "a-r1-2"


# In each zone two racks with a GPU, and a node without a rack that has the only CPUs.
EQUAL_ZONES = """
    cluster zone > rack
      zone a: rack r1 [1]  rack r2 [1]  rack - [.]
      zone b: rack r1 [1]  rack r2 [1]  rack - [.]
"""


@pytest.mark.parametrize("kind", ["required", "preferred"])
def test_two_racks_of_one_zone_are_not_two_racks_of_different_zones(kind: str) -> None:
    """Both zone groups need a GPU beside the CPUs of their zone, so the tasks of a must leave one in each."""
    cells = [f"      node {zone}-{rack}-1 cpu=0" for zone in "ab" for rack in ("r1", "r2")]
    groups = [f"  {name}: 1 x 1gpu + 1 x 64cpu {kind}=zone" for name in ("b", "c")]
    text = "\n".join(["g:", "  a: 2 x 1gpu preferred=rack", *groups])
    _, _, found = asked("\n".join([EQUAL_ZONES.strip("\n"), *cells]), text, {})

    assert isinstance(found, Found)
    assert {found.nodes[task][0] for task in ("a-0", "a-1")} == {"a", "b"}


@pytest.mark.parametrize(
    ("homes", "size", "sets"),
    [
        ((), 1, {(0,)}),
        ((), 2, {(0, 1), (0, 2)}),
        ((), 3, {(0, 1, 2), (0, 2, 3)}),
        ((2,), 1, {(0,), (3,)}),
        ((2,), 2, {(0, 1), (0, 3)}),
    ],
)
def test_sets_of_racks_are_tried_that_differ_by_more_than_an_exchange_of_equal_ones(
    homes: tuple[int, ...], size: int, sets: set[tuple[int, ...]]
) -> None:
    """Racks 0 and 1 are in one zone, 2 and 3 in the other; what already runs in a rack is in each of its sets."""
    drawing = drawn("cluster zone > rack\n  zone a: rack r1 [1]  rack r2 [1]\n  zone b: rack r1 [1]  rack r2 [1]")
    (gang,) = gangs("g:\n  a: 2 x 1gpu preferred=rack\n  b: 2 x 1gpu required=zone", drawing)
    domains = drawing.domains()
    capacity, budget = Capacity.now(domains), Budget(1000)
    problem = compile_gang(gang, domains, {})
    packer = Packer(capacity, problem.shapes, budget)
    search = Search(problem, capacity, {1: 3}, packer, budget)
    others = [rack for rack in range(4) if rack not in homes]

    assert set(search._spreads.sets(1, others, size, {0: 0}, homes, set())) == sets


class States:
    """States of a search for a gang of `a`, whose task is already placed in a rack, and `z`, which waits."""

    def __init__(self, anchors: Mapping[str, str]) -> None:
        drawing = drawn(TWO_RACKS if anchors else "cluster rack of 1\n  rack r1 [1 .:other]\n  rack r2 [1 .:other]")
        (gang,) = gangs("g:\n  a: 1 x 1gpu required=rack\n  z: 2 x 1gpu required=rack", drawing)
        running(drawing, gang, anchors)
        domains = drawing.domains()
        positions = {task: domains.position[node] for task, node in anchors.items()}
        self.problem: Problem = compile_gang(gang, domains, positions)
        self.capacity = Capacity.now(domains)
        self.outline = Outline.of(self.problem, ())
        self.agenda: Agenda = (Job(2, EVERYWHERE, self.outline.everything(2)),)

    def symmetry(self, rack: int | None) -> Symmetry:
        """Return the symmetry of the state in which the task of `a` is bound to a rack, if to any."""
        packer = Packer(self.capacity, self.problem.shapes, Budget(1000))
        ledger = Ledger(self.problem, self.capacity, packer)
        if rack is not None:
            assert ledger.commit(0, Region(0, (rack,)), 1)
        return Symmetry(self.problem, self.capacity, self.outline, ledger, packer.rows)


def test_equal_racks_are_twins_where_no_waiting_group_has_a_home() -> None:
    states = States({})
    symmetry = states.symmetry(None)
    named = symmetry.named(states.agenda)

    assert symmetry.twin(0, 0, named) == symmetry.twin(0, 1, named)


def test_a_rack_is_no_twin_of_the_home_of_a_waiting_group() -> None:
    states = States({"z-0": "r1-1"})
    symmetry = states.symmetry(None)
    named = symmetry.named(states.agenda)

    assert symmetry.domain(0, 0) == symmetry.domain(0, 1)
    assert (0, 0) in named
    assert (0, 1) not in named
    assert symmetry.twin(0, 0, named) != symmetry.twin(0, 1, named)


def test_a_failure_in_one_rack_is_that_in_its_equal() -> None:
    states = States({})

    assert states.symmetry(0).state(states.agenda) == states.symmetry(1).state(states.agenda)


def test_a_failure_in_the_home_of_a_waiting_group_is_none_elsewhere() -> None:
    states = States({"z-0": "r1-1"})

    assert states.symmetry(0).state(states.agenda) != states.symmetry(1).state(states.agenda)


def test_homes_matter_only_while_their_group_waits() -> None:
    states = States({"z-0": "r1-1"})

    assert states.symmetry(0).state(()) == states.symmetry(1).state(())
