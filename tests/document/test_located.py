"""Located YAML: the core schema, positions of values and keys, and refused documents."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.document.located import decode, documents, load
from coterie.errors import Fault, SpecErrors
from tests.frontends.workflow.samples import refusal


def fault_of(text: str) -> Fault:
    with pytest.raises(SpecErrors) as caught:
        load(text, "f.yaml")
    assert len(caught.value.faults) == 1
    return caught.value.faults[0]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("1:30", "1:30"),
        ("2001-01-01", "2001-01-01"),
        ("1_000", "1_000"),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("-3", -3),
        ("3.10", 3.1),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ("'12'", "12"),
        ("! 12", "12"),
        ("!!str 12", "12"),
        ("!!int 12", 12),
    ],
)
def test_scalars_follow_the_core_schema(written: str, value: object) -> None:
    found = load(f"a: {written}", "f").data["a"]
    assert found == value
    assert isinstance(found, type(value))


def test_a_number_remembers_an_unusual_spelling() -> None:
    data = load("a: 3.10\nb: 012\nc: 7\n", "f").data
    assert data["a"].written == "3.10"
    assert data["b"].written == "012"
    assert not hasattr(data["c"], "written")


def test_keys_are_text_as_written() -> None:
    assert load("1: a\nyes: b\n~: c\n", "f").data == {"1": "a", "yes": "b", "~": "c"}


TEXT = """\
# a comment
tasks:
- name: one
  command: [run, "fast"]
- {name: two}
"""


@pytest.mark.parametrize(
    ("path", "key", "expected"),
    [
        ((), False, (2, 1, 5)),
        (("tasks",), True, (2, 1, 5)),
        (("tasks", 0, "name"), False, (3, 9, 3)),
        (("tasks", 0, "name"), True, (3, 3, 4)),
        (("tasks", 0, "command", 1), False, (4, 18, 6)),
        (("tasks", 1, "name"), False, (5, 10, 3)),
        (("tasks", 1, "image"), False, (5, 3, 4)),
        (("tasks", 7, "image"), False, (2, 1, 5)),
        (("nowhere", "at", "all"), False, (2, 1, 5)),
    ],
)
def test_every_value_and_key_has_a_place_and_unknown_paths_their_nearest_ancestor(
    path: tuple[str | int, ...], key: object, expected: tuple[int, int, int]
) -> None:
    place = load(TEXT, "f.yaml").place(path, key=bool(key))
    assert (place.line, place.column, place.length) == expected
    assert place.file == "f.yaml"


def test_a_frame_is_the_line_and_the_one_before() -> None:
    assert load(TEXT, "f").place(("tasks", 0, "name")).frame == ((2, "tasks:"), (3, "- name: one"))
    assert load("a: 1", "f").place(("a",)).frame == ((1, "a: 1"),)


def test_what_an_alias_holds_is_placed_at_its_anchor_and_the_alias_itself_where_it_stands() -> None:
    document = load("a: &x {b: 1}\nc: *x\n", "f")
    assert document.data == {"a": {"b": 1}, "c": {"b": 1}}
    assert document.place(("c",)).line == 2
    assert document.place(("c", "b")).line == 1


def test_merge_keys_fill_in_what_is_not_written_out() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  <<: [*a, *b]\n  x: 0\nd: {<<: *b}\n"
    document = load(text, "f")
    assert document.data["c"] == {"x": 0, "y": 1, "z": 2}
    assert document.data["d"] == {"y": 2, "z": 2}
    assert document.place(("c", "z")).line == 2


def test_a_quoted_merge_key_is_a_key_like_any_other() -> None:
    assert load('"<<": {a: 1}', "f").data == {"<<": {"a": 1}}


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("", "the file is empty", 1),
        ("# only words\n", "the file is empty", 1),
        ("a: 1\nb: 2\na: 3\n", '"a" is given twice, first in line 1', 3),
        ("a: {b: 1,\n  'b': 2}", '"b" is given twice', 2),
        ("a: !!python/object:os.system {}", 'the tag "!!python/object:os.system" is not allowed', 1),
        ("a: !custom x", 'the tag "!custom" is not allowed', 1),
        ("!x a: 1", 'the tag "!x" is not allowed', 1),
        ("a: *b", 'there is no anchor "&b" before this alias', 1),
        ("a: &b [*b]", "inside the value that it refers to", 1),
        ("a: &b\n  c: {d: *b}", "inside the value that it refers to", 2),
        ("a: 1\n? [b]\n: c", "cannot be the key of a mapping", 2),
        ("- &a a\n- *a : 1", "an alias cannot be the key of a mapping", 2),
        ("a: {{b}}", "cannot be the key of a mapping", 1),
        ("a:\n\t- b", "not valid YAML", 2),
        ("a: b: c", "not valid YAML", 1),
        ("a: [1, 2", "not valid YAML", 1),
        ("a: 'open", "not valid YAML", 1),
        ("a\x00b", "U+0000 is not allowed", 1),
        ("a: 1\nb: \x1b[0m", "U+001B is not allowed", 2),
        ("a: \ud800", "U+D800 is not allowed", 1),
        ("a: 1\n---\nb: 2\n---\nc: 3\n", "holds 3", 3),
        ("a: !!int x", "x cannot be read as int", 1),
        ("a: " + "9" * 5000, "cannot be read as int", 1),
        ("<<: 3", 'the merge key "<<" takes a mapping', 1),
        ("a: [<<]\n<<: [1]", 'the merge key "<<" takes a mapping', 2),
        ("[" * 10_000, "at most 64 levels", 1),
        ("- " * 10_000 + "x", "at most 64 levels", 1),
        ("\n".join(" " * depth + "a:" for depth in range(1000)), "at most 64 levels", 65),
        ("x" * 2000 + ": 1", "not valid YAML", 1),
        ("? " + "x" * 2000 + "\n: 1", "longer than 1024", 1),
        ("a: " + "x" * (4 << 20), "too large", None),
        ("- a\n" * 200_001, "more than 200,000 values", 200_000),
    ],
)
def test_bad_text_is_refused_with_its_place(text: str, message: str, line: int | None) -> None:
    fault = fault_of(text)
    assert message in fault.message
    assert fault.place is not None
    assert fault.place.line == line
    assert fault.place.file == "f.yaml"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a:\n\t- b", "indented with spaces"),
        ("a: {{b}}/c", "quotes around a value that begins with"),
        ("a: b: c", "quotes around text that contains"),
        ("a: [1", "quotes and brackets are closed"),
        ("a: *.py", 'quotes around text that begins with "*"'),
        ("a: *py", 'quotes around text that begins with "*"'),
        ("a: !x", 'quotes around text that begins with "!"'),
    ],
)
def test_a_hint_says_what_to_do_about_bad_text(text: str, hint: str) -> None:
    assert hint in fault_of(text).hint


def test_an_alias_bomb_is_refused_at_once() -> None:
    names = "abcdefghij"
    lines = [f"{names[0]}: &{names[0]} [x, x, x, x, x, x, x, x, x, x]"]
    for inner, outer in pairwise(names):
        lines.append(f"{outer}: &{outer} [{', '.join([f'*{inner}'] * 10)}]")
    # There would be room for it nowhere.
    assert "more than 200,000 values once its aliases are expanded" in fault_of("\n".join(lines)).message


def test_a_stream_gives_its_documents_without_empty_ones() -> None:
    found = documents("a: 1\n---\n---\n# nothing\n---\nb: 2\n", "f")
    assert [document.data for document in found] == [{"a": 1}, {"b": 2}]
    assert found[1].place(("b",)).line == 6


def test_anchors_end_with_their_document() -> None:
    with pytest.raises(SpecErrors, match="no anchor"):
        documents("a: &x 1\n---\nb: *x\n", "f")


def test_lines_that_a_template_changed_are_shown_as_written_and_marked_whole() -> None:
    document = load("a: 1\nb: {c: long, d: 2}\n", "f", shown="a: 1\nb: {{ stuff }}\n")
    assert document.place(("a",)).column == 4
    place = document.place(("b", "d"))
    assert (place.line, place.column, place.length) == (2, 1, 14)
    assert place.frame[-1] == (2, "b: {{ stuff }}")


def test_utf8_is_decoded_with_or_without_a_mark() -> None:
    assert decode("ä".encode(), "f") == "ä"
    assert decode(b"\xef\xbb\xbfa: 1", "f") == "a: 1"


@pytest.mark.parametrize(
    ("data", "message", "line"),
    [
        (b"a: 1\nb: \xff", "not UTF-8 text: byte 0xff at offset 8", 2),
        ("a: 1".encode("utf-16"), "not UTF-8", 1),
        (b"\x1f\x8b\x08\x00", "not UTF-8", 1),
        (b"a" * (10 << 20), "too large", None),
    ],
)
def test_bytes_that_are_no_text_are_refused(data: bytes, message: str, line: int | None) -> None:
    with pytest.raises(SpecErrors) as caught:
        decode(data, "f.yaml")
    fault = caught.value.faults[0]
    assert message in fault.message
    assert fault.place is not None
    assert fault.place.line == line


@given(st.text(alphabet=st.sampled_from(" \n\t:-[]{}&*!|>'\"%@`#,?<ab01.~\x00\x85\u2028\ufeff")))
def test_no_text_raises_anything_but_spec_errors(text: str) -> None:
    faults = refusal(lambda: [document.place(("a", 0, "b")) for document in documents(text, "f")])
    assert all(fault.place is not None for fault in faults)


plain: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="abc yes\n", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="abc", max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(plain)
def test_what_json_writes_is_read_back(data: Any) -> None:
    text = json.dumps({"root": data})
    document = load(text, "f")
    assert document.data == {"root": data}
