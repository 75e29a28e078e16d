"""The peak demand of groups that can run at the same time is that of the worst set of them."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.planning.concurrency import MOST_SETS, ancestors, peak
from coterie.topology.cluster import Ints
from tests.random_examples import examples


@st.composite
def histories(draw: st.DrawFn) -> tuple[dict[str, Ints], dict[str, frozenset[str]]]:
    """Return what some groups hold on two nodes, and which of them each waits for directly."""
    names = [f"g{number}" for number in range(draw(st.integers(1, 6)))]
    needs = {
        name: frozenset(draw(st.sets(st.sampled_from(names[:index])))) if index else frozenset()
        for index, name in enumerate(names)
    }
    held = {name: np.array([draw(st.lists(st.integers(0, 5), min_size=2, max_size=2))]) for name in names}
    return held, needs


@given(histories())
@settings(max_examples=examples(100), deadline=None)
def test_the_peak_is_the_largest_sum_over_sets_without_order(
    history: tuple[dict[str, Ints], dict[str, frozenset[str]]],
) -> None:
    held, needs = history
    before = ancestors(needs)
    names = list(held)
    sets = chain.from_iterable(combinations(names, size) for size in range(1, len(names) + 1))
    free = [some for some in sets if not any(one in before[other] for one in some for other in some)]
    expected = np.max([np.sum([held[name] for name in some], axis=0) for some in free], axis=0)

    found = peak(held, before)

    assert found is not None
    assert (found == expected).all()


def test_ancestors_reach_all_the_way_back() -> None:
    needs = {"c": frozenset({"b"}), "b": frozenset({"a"}), "a": frozenset[str](), "d": frozenset({"a", "c"})}

    assert ancestors(needs) == {
        "a": frozenset(),
        "b": frozenset({"a"}),
        "c": frozenset({"a", "b"}),
        "d": frozenset({"a", "b", "c"}),
    }


def test_nobody_holds_nothing() -> None:
    assert peak({}, {}) is None


def test_with_very_many_sets_everything_is_assumed_to_run_at_once() -> None:
    """Pairs of a chain of two each: 2 ** 9 ways to be at work together."""
    pairs = range(9)
    needs = {f"b{number}": frozenset({f"a{number}"}) for number in pairs}
    held = {f"{letter}{number}": np.array([[1]]) for number in pairs for letter in "ab"}
    assert 2 ** len(pairs) > MOST_SETS

    found = peak(held, ancestors(needs))

    assert found is not None
    assert found.tolist() == [[18]]


def test_many_groups_at_once_take_no_longer_than_their_sum() -> None:
    """Also beside a few that are ordered."""
    held = {f"g{number}": np.array([[1]]) for number in range(400)} | {"x": np.array([[2]]), "y": np.array([[5]])}

    found = peak(held, ancestors({"y": frozenset({"x"})}))

    assert found is not None
    assert found.tolist() == [[405]]
