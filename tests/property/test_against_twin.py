"""Laws that the engine must obey on every world small enough to enumerate."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.gang.tree import Gang, Path, Shape
from coterie.placement.capacity import Capacity
from coterie.placement.engine import Found, NoPlacement, place
from coterie.topology.cluster import GPU
from tests.placement import twin
from tests.property.judge import answer, without_task
from tests.property.laws import renamed, reordered
from tests.property.worlds.pieces import GIB, node
from tests.property.worlds.random_worlds import EngineQuestion, small_worlds, tiny_worlds
from tests.random_examples import examples

randoms = st.randoms(use_true_random=False)
thorough = settings(max_examples=examples(150), deadline=None)


@given(tiny_worlds())
@thorough
def test_engine_agrees_with_enumeration(world: EngineQuestion) -> None:
    truth = twin.best(world.gang, world.domains, world.anchors, world.room)
    found = answer(world)
    if isinstance(found, NoPlacement):
        assert found.proved, f"{world}"
        assert truth is None, f"{world}"
    else:
        assert found.optimal, f"{world}"
        assert twin.verify(world.gang, world.domains, found, world.anchors, world.room) == [], f"{world}"
        assert twin.vector(world.domains, found.extra) == truth, f"{world}"


@given(small_worlds())
@thorough
def test_every_placement_keeps_every_rule(world: EngineQuestion) -> None:
    found = answer(world)
    if isinstance(found, Found):
        assert twin.verify(world.gang, world.domains, found, world.anchors, world.room) == [], f"{world}"


@given(small_worlds())
@thorough
def test_the_same_question_gets_the_identical_answer(world: EngineQuestion) -> None:
    again = replace(world)  # with a cluster and domains of its own
    assert answer(world) == answer(again), f"{world}"


@given(tiny_worlds(), randoms)
@thorough
def test_the_order_of_nodes_and_tasks_does_not_matter(world: EngineQuestion, rng: Random) -> None:
    shuffled = reordered(rng, world)
    before, after = answer(world), answer(shuffled)
    assert type(before) is type(after), f"{world}"
    if isinstance(before, Found) and isinstance(after, Found):
        assert _by_class(shuffled.gang, after) == _by_class(world.gang, before), f"{world}"
        assert after.extra == before.extra, f"{world}"


@given(tiny_worlds(), randoms)
@thorough
def test_names_change_neither_verdict_nor_cost(world: EngineQuestion, rng: Random) -> None:
    other = renamed(rng, world)
    before, after = answer(world), answer(other)
    assert type(before) is type(after), f"{world}\nrenamed: {other}"
    if isinstance(before, Found) and isinstance(after, Found):
        assert after.extra == before.extra, f"{world}\nrenamed: {other}"


@given(small_worlds(), randoms)
@thorough
def test_more_capacity_never_takes_a_placement_away(world: EngineQuestion, rng: Random) -> None:
    larger = _larger(rng, world)
    if isinstance(answer(world), Found):
        assert isinstance(answer(larger), Found), f"{world}\nlarger: {larger}"


@given(small_worlds(), randoms)
@thorough
def test_one_task_less_never_takes_a_placement_away(world: EngineQuestion, rng: Random) -> None:
    gone = rng.choice(world.gang.all_tasks()).name
    rest = {task: there for task, there in world.anchors.items() if task != gone}
    fewer = replace(world, gang=without_task(world.gang, gone), anchors=rest)
    if isinstance(answer(world), Found) and fewer.gang.all_tasks():
        assert isinstance(answer(fewer), Found), f"{world}\nwithout {gone}"


@given(small_worlds())
@thorough
def test_what_the_empty_cluster_cannot_hold_never_fits_now(world: EngineQuestion) -> None:
    if isinstance(place(world.gang, Capacity.empty(world.domains)), NoPlacement):
        assert isinstance(place(world.gang, Capacity.now(world.domains)), NoPlacement), f"{world}"


def _by_class(gang: Gang, found: Found) -> Counter[tuple[Path, Shape, str]]:
    """Return how many tasks of each class went to each node; which of them went where is a matter of names."""
    return Counter((path, task.shape, found.nodes[task.name]) for path, task in twin.leaves(gang))


def _larger(rng: Random, world: EngineQuestion) -> EngineQuestion:
    """Return the world with a node more, a larger node, a pod less, or a node back in service."""
    at = rng.randrange(len(world.nodes))
    grown = {name: amount + (1 if name == GPU else 0) for name, amount in world.nodes[at].allocatable.items()}
    ways = [
        replace(world, nodes=(*world.nodes, node("new", {}, 8, 64_000, 64 * GIB))),
        replace(world, nodes=(*world.nodes[:at], replace(world.nodes[at], allocatable=grown), *world.nodes[at + 1 :])),
        replace(
            world,
            nodes=tuple(replace(one, cordoned=False, ready=True, taints=()) for one in world.nodes),
        ),
        replace(world, pods=tuple(pod for pod in world.pods if pod.member is not None)),
    ]
    return rng.choice(ways)
