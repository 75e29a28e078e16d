"""Short forms distinguish names, and can be expanded again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.topology.abbreviations import MARK, NOTE, Abbreviations, abbreviated, full_name

CLIQUES = {
    "3f2a9c1e-77d0-4b1c-9a52-0e6f1b2a5c6d.0": "…5c6d.0",
    "b81d44f0-0c3a-4e8e-8f6b-6a7c2d901f3e.0": "…1f3e.0",
    "07c5e6aa-51b9-4d0f-b1de-93a4f7780b42.32766": "…0b42.32766",
}

FORMS: list[tuple[str, dict[str, str]]] = [
    ("cliques of different clusters keep the end of the id", CLIQUES),
    (
        "cliques of one cluster look the same way",
        {f"3f2a9c1e-77d0-4b1c-9a52-0e6f1b2a5c6d.{clique}": f"…5c6d.{clique}" for clique in range(3)},
    ),
    (
        "more of an id is shown where its end is not enough",
        {
            "3f2a9c1e-77d0-4b1c-9a52-0e6f1b2a5c6d.0": "…2a5c6d.0",
            "b81d44f0-0c3a-4e8e-8f6b-6a7c2d905c6d.0": "…905c6d.0",
        },
    ),
    (
        "a domain name that nodes share is left out",
        {f"ip-10-0-{net}-{at}.ec2.internal": f"ip-10-0-{net}-{at}…" for net in (1, 12) for at in (3, 14)},
    ),
    (
        "what short names share at the end is left out too",
        {f"n{number}.fleet.example.internal": f"n{number}…" for number in (1, 11)},
    ),
    (
        "as many parts are kept as tell nodes apart",
        {f"gb200-prod-rack-{r:02}-node-{n:02}": f"…{r:02}-node-{n:02}" for r in (1, 2) for n in (3, 4)},
    ),
    (
        "both ends may be left out",
        {f"gb200-prod-rack-{r:02}-node-{n}.gpu.example": f"…{r:02}-node-{n}…" for r in (1, 2) for n in (3, 4)},
    ),
    ("short names are left alone", {name: name for name in ("a", "a1", "rack2", "us-central1-a-rack12")}),
    ("short names beside long ones are left alone", {**CLIQUES, "rack2": "rack2"}),
    ("a name that stands alone is left alone", dict.fromkeys(CLIQUES.keys() & {min(CLIQUES)}, min(CLIQUES))),
    (
        "a name is left alone where a form would save next to nothing",
        {name: name for at in "12" for side in "bx" if (name := f"a{side}-cd-ef-gh-ij-kl-mn-{at}")},
    ),
    ("there may be no names", {}),
]


@pytest.mark.parametrize("forms", [forms for _, forms in FORMS], ids=[rule for rule, _ in FORMS])
def test_a_form_shows_what_differs(forms: dict[str, str]) -> None:
    assert abbreviated(forms) == forms


WORDS = st.sampled_from(["gb200", "rack", "node", "a", "07", "12", "0", "1", "5c6d", "0e6f1b2a5c6d", "example", ""])
NAMES = st.sets(
    st.one_of(
        st.lists(WORDS, max_size=8).map("-".join),
        st.lists(WORDS, max_size=8).map(lambda words: ".".join(words) + ".cluster.example"),
        st.uuids().map(lambda uuid: f"{uuid}.0"),
        st.text(max_size=30),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(NAMES)
def test_names_that_differ_have_forms_that_differ(names: set[str]) -> None:
    forms = abbreviated(names)

    assert forms.keys() == names
    assert len(set(forms.values())) == len(names)


@settings(deadline=None)
@given(NAMES)
def test_a_form_is_never_longer_than_its_name_nor_another_name(names: set[str]) -> None:
    for name, form in abbreviated(names).items():
        assert len(form) <= len(name)
        assert form == name or form not in names


@settings(deadline=None)
@given(NAMES)
def test_forms_are_not_shortened_again(names: set[str]) -> None:
    forms = set(abbreviated(names).values())

    assert abbreviated(forms) == {form: form for form in forms}


@settings(deadline=None)
@given(NAMES)
def test_forms_do_not_depend_on_the_order_of_names(names: set[str]) -> None:
    assert abbreviated(sorted(names)) == abbreviated(sorted(names, reverse=True))


@settings(deadline=None)
@given(NAMES)
def test_a_form_without_its_marks_is_part_of_one_name_of_those_with_the_same_end(names: set[str]) -> None:
    for name, form in abbreviated(names).items():
        if form.startswith(MARK) and not form.endswith(MARK):
            assert [other for other in names if other.endswith(form.removeprefix(MARK))] == [name]


@settings(deadline=None)
@given(NAMES)
def test_a_form_can_be_given_back_for_its_name(names: set[str]) -> None:
    for name, form in abbreviated(names).items():
        assert full_name(form, names) == name


def test_a_form_can_be_given_back_from_a_terminal_without_the_mark() -> None:
    assert full_name("...5c6d.0", CLIQUES) == "3f2a9c1e-77d0-4b1c-9a52-0e6f1b2a5c6d.0"
    assert full_name("…ffff.0", CLIQUES) == "…ffff.0"


def test_names_with_dots_that_look_like_the_mark_are_left_alone() -> None:
    names = {"", "000000000000000000..."}
    assert abbreviated(names) == {name: name for name in names}


def test_names_of_a_kind_are_shortened_among_themselves() -> None:
    short = Abbreviations(CLIQUES, ["zone-a", "zone-b"], (f"gb200-prod-rack-01-node-{n:02}" for n in (1, 2)))

    assert short.domain(["zone-a", min(CLIQUES)]) == "zone-a/…0b42.32766"
    assert short.domain(["zone-a", None]) == "zone-a/(no label)"
    assert short.names(["gb200-prod-rack-01-node-02"]) == ["…node-02"]


def test_a_name_of_two_kinds_has_one_form() -> None:
    hosts = [f"gb200-prod-rack-{r:02}-node-{n:02}" for r in (1, 2) for n in (1, 2)]
    short = Abbreviations(hosts[:2], ["zone-a"], hosts)

    assert short.names(hosts[:2]) == ["…01-node-01", "…01-node-02"]


def test_names_in_a_sentence_are_shortened_whatever_stands_around_them() -> None:
    first, second, _ = CLIQUES
    short = Abbreviations(CLIQUES)

    said = short.sentence(f'the best, z1/{first}, fits 3 ("{second}": 2), not x{first} nor {second}.')

    assert said == f'the best, z1/…5c6d.0, fits 3 ("…1f3e.0": 2), not x{first} nor …1f3e.0.'


def test_the_note_is_there_once_a_form_was_shown() -> None:
    short = Abbreviations(CLIQUES)
    short.name("rack2")
    assert list(short.note()) == []

    short.name(min(CLIQUES))
    assert list(short.note()) == [NOTE]


def test_many_names_are_shortened_in_no_time() -> None:
    names = [f"gb200-prod-useast1-block-{n // 720}-rack-{n // 18:03}-node-{n % 18:02}" for n in range(10_000)]

    assert abbreviated(names)[names[19]] == "…001-node-01"
