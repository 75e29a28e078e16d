"""The pruning of the search loses nothing: without it, and with more of it, the answer is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from coterie.placement.budget import Budget
from coterie.placement.capacity import Capacity
from coterie.placement.packing.feasibility import Packer
from coterie.placement.problem import compile_gang
from coterie.placement.search.bounds import Bounds
from coterie.placement.search.domains import Search
from coterie.placement.search.symmetry import Symmetry
from tests.placement import twin
from tests.property.judge import answer, claim
from tests.property.worlds.random_worlds import EngineQuestion, world
from tests.seed import SEED

WORLDS = 150
# What is left of the search without its means takes long on a few worlds, which then say nothing.
BUDGET = 20_000
# As many tasks as can be put on nodes in all ways in little time.
MOST_WAITING = 5


def _worlds() -> Iterator[EngineQuestion]:
    return (world(SEED + number, "resumed") for number in range(WORLDS))


def _without_symmetry(patch: pytest.MonkeyPatch) -> None:
    numbers = count()
    patch.setattr(Symmetry, "twin", lambda *_: next(numbers))


def _without_memory(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Symmetry, "failed", lambda *_: False)


def _without_bounds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Bounds, "infeasible", lambda *_: False)


def _from_the_first_step_on(patch: pytest.MonkeyPatch) -> None:
    """Memory and bounds are otherwise looked at only after a dead end."""
    made = Search.__init__

    def eager(search: Search, *given: object, **named: object) -> None:
        made(search, *given, **named)  # type: ignore[arg-type]
        search._backtracked = True

    patch.setattr(Search, "__init__", eager)


@pytest.mark.parametrize("change", [_without_symmetry, _without_memory, _without_bounds, _from_the_first_step_on])
def test_the_answer_does_not_depend_on_what_keeps_the_search_small(
    change: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list(_worlds())
    usual = [claim(answer(one)) for one in asked]
    change(monkeypatch)
    other = [claim(answer(one, BUDGET)) for one in asked]
    wrong = [
        f"{one}\nusually {before}, then {after}"
        for one, before, after in zip(asked, usual, other, strict=True)
        if before and after and before != after
    ]
    assert wrong == []
    assert sum(after is not None for after in other) > WORLDS // 2


def test_no_placement_costs_less_than_the_bound_says() -> None:
    looked = 0
    for one in _worlds():
        if len(one.gang.all_tasks()) - len(one.anchors) > MOST_WAITING:
            continue
        costs = set(twin.every(one.gang, one.domains, one.anchors, one.room))
        problem = compile_gang(
            one.gang, one.domains, {task: one.domains.position[node] for task, node in one.anchors.items()}
        )
        levels = problem.preferred_levels()
        if not costs or not levels:
            continue
        capacity = Capacity.now(one.domains)
        budget = Budget(BUDGET)
        packer = Packer(capacity, problem.shapes, budget)
        least = Search(problem, capacity, dict.fromkeys(levels, 0), packer, budget).hold_to_least()
        names = one.topology.names
        bound = tuple(least.get(level, 0) for level in range(len(names) - 1, -1, -1))
        assert all(all(mine >= low for mine, low in zip(cost, bound, strict=True)) for cost in costs), f"{one}"
        looked += 1
    assert looked > WORLDS // 10
