"""Quantities are exact, rounded to the safe side, and never exceed an int64."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.topology.quantity import LARGEST, Quantity, amount, parse_quantity

VALUES: list[tuple[Quantity, int | Fraction]] = [
    ("0", 0),
    ("7", 7),
    ("007", 7),
    ("+7", 7),
    ("-7", -7),
    ("1.5", Fraction(3, 2)),
    (".5", Fraction(1, 2)),
    ("5.", 5),
    ("1e3", 1000),
    ("12E2", 1200),
    ("1E-3", Fraction(1, 1000)),
    ("1e+2", 100),
    ("1E", 10**18),
    ("1n", Fraction(1, 10**9)),
    ("1u", Fraction(1, 10**6)),
    ("1500m", Fraction(3, 2)),
    ("2000m", 2),
    ("3k", 3000),
    ("3M", 3 * 10**6),
    ("3G", 3 * 10**9),
    ("3T", 3 * 10**12),
    ("3P", 3 * 10**15),
    ("3E", 3 * 10**18),
    ("3Ki", 3 << 10),
    ("3Mi", 3 << 20),
    ("3Gi", 3 << 30),
    ("3Ti", 3 << 40),
    ("3Pi", 3 << 50),
    ("3Ei", 3 << 60),
    ("1.5Gi", 3 << 29),
    ("0.1", Fraction(1, 10)),
    (8, 8),
    (0.1, Fraction(1, 10)),
    (2.0, 2),
    (1e21, 10**21),
]


@pytest.mark.parametrize(("text", "value"), VALUES, ids=[str(text) for text, _ in VALUES])
def test_a_quantity_has_exactly_the_value_that_kubernetes_gives_it(text: Quantity, value: int | Fraction) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "+",
        "1 ",
        " 1",
        "1K",
        "1ki",
        "1KI",
        "1mi",
        "1Mib",
        "1e",
        "1e1.5",
        "1e3Ki",
        "one",
        "1,5",
        "0x10",
        "1_000",
        "٣",
        "1e9999",
        "1" * 100,
        "--1",
        "1m1",
        "1Ki1",
        "\n1",
        "1\n",
        True,
        float("nan"),
        float("inf"),
    ],
)
def test_what_is_no_quantity_is_refused_in_one_sentence(text: Quantity) -> None:
    with pytest.raises(ValueError, match="is not a quantity: write a number"):
        parse_quantity(text)


ROUNDED: list[tuple[str, Quantity, int, int]] = [
    # resource, quantity, as asked for, as offered
    ("cpu", "2", 2000, 2000),
    ("cpu", "0.5", 500, 500),
    ("cpu", "100m", 100, 100),
    ("cpu", "1n", 1, 0),
    ("cpu", "1500u", 2, 1),
    ("memory", "1Ki", 1024, 1024),
    ("memory", "100m", 1, 0),
    ("ephemeral-storage", "1G", 10**9, 10**9),
    ("nvidia.com/gpu", "8", 8, 8),
    ("nvidia.com/gpu", "500m", 1, 0),
    ("pods", 110, 110, 110),
    ("memory", "4Ei", LARGEST, LARGEST),
]


@pytest.mark.parametrize(("resource", "text", "asked", "offered"), ROUNDED)
def test_what_is_asked_for_rounds_up_and_what_is_offered_rounds_down(
    resource: str, text: Quantity, asked: int, offered: int
) -> None:
    assert amount(resource, text) == asked
    assert amount(resource, text, offered=True) == offered


@pytest.mark.parametrize("text", ["5Ei", "8E", "1e999", 1 << 20_000], ids=["5Ei", "8E", "1e999", "huge"])
def test_more_than_can_be_counted_is_the_most_on_offer_and_an_error_to_ask_for(text: Quantity) -> None:
    assert amount("memory", text, offered=True) == LARGEST
    with pytest.raises(ValueError, match="of memory is more than Coterie can count"):
        amount("memory", text)


@pytest.mark.parametrize("text", ["-1", -3, "-1Gi", -(1 << 20_000)], ids=["-1", "-3", "-1Gi", "huge"])
def test_a_negative_amount_is_refused(text: Quantity) -> None:
    with pytest.raises(ValueError, match="is negative"):
        amount("memory", text)


@given(st.text(max_size=12) | st.from_regex(r"[+-]?[0-9]{0,5}\.?[0-9]{0,5}[eEinumkKMGTP]{0,2}[+-]?[0-9]{0,3}"))
def test_any_text_gives_a_countable_amount_or_a_clear_refusal(text: str) -> None:
    try:
        asked, offered = amount("cpu", text), amount("cpu", text, offered=True)
    except ValueError as error:
        assert str(error)  # noqa: PT017 - the refusal is one of two good outcomes
    else:
        assert 0 <= offered <= asked <= LARGEST
        assert asked - offered <= 1
