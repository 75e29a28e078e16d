"""Terminal text fits, is aligned, and contains no control characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.rendering.cells import shares
from coterie.rendering.text import columns, cut, pad, table, visible, wrapped


@given(st.text())
def test_a_visible_name_is_one_line_without_control_characters(name: str) -> None:
    shown = visible(name)

    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    assert visible(shown) == shown


@given(st.text(st.characters(exclude_categories=["C"])), st.integers(0, 30))
def test_cut_text_fits_and_begins_like_the_whole(text: str, limit: int) -> None:
    short = cut(text, limit)

    assert columns(short) <= limit
    assert short == text or text.startswith(short.removesuffix("…"))


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("█▒░", 3)])
def test_columns_count_what_a_terminal_shows(text: str, width: int) -> None:
    assert columns(text) == width
    assert columns(pad(text, 9)) == columns(pad(text, 9, right=True)) == 9


@given(st.lists(st.text("ab", max_size=12), min_size=1), st.integers(5, 30))
def test_wrapped_lines_fit_unless_one_word_does_not_and_lose_no_word(words: list[str], width: int) -> None:
    lines = list(wrapped(" ".join(words), width, "  ", "* "))

    assert " ".join(lines).split() == ["*", *"".join(f"{word} " for word in words).split()] or not lines[0][2:].strip()
    assert all(columns(line) <= width or len(line.split()) <= 2 for line in lines)


def test_a_table_lines_up_its_columns_and_numbers_to_the_right() -> None:
    assert list(table([["NAME", "N"], ["a", "1"], ["日本語", "100"]], numbers=frozenset({1}))) == [
        "NAME      N",
        "a         1",
        "日本語  100",
    ]
    assert list(table([])) == []


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=6), st.integers(1, 20))
def test_shares_fill_the_cells_and_hide_nothing_that_there_is_a_cell_for(amounts: list[int], cells: int) -> None:
    shared = shares(amounts, cells)

    assert sum(shared) == min(cells, sum(amounts))
    assert all(share >= 0 for share in shared)
    there = sum(amount > 0 for amount in amounts)
    if there * 2 <= cells:
        assert all(share > 0 for share, amount in zip(shared, amounts, strict=True) if amount)
