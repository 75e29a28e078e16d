"""Written manifests are read back unchanged by every available YAML reader, and are reproducible."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.backends.shared.manifest_text import to_json, to_yaml
from coterie.document.located import documents

texts = st.one_of(
    st.text(max_size=40).filter(lambda text: not any(0xD800 <= ord(char) < 0xE000 for char in text)),
    st.text(alphabet=" \t\nab:#-'\"\\|>{}[]&*!%@`0\r\x85\u2028", max_size=30),
    st.sampled_from(
        ["1e3", "0x1F", "012", "1_000", "1:30", "on", "Yes", "~", "null", ".inf", "<<", "=", "y", "-", "?"]
    ),
)
scalars = st.one_of(texts, st.integers(-(2**31), 2**31), st.booleans())
values = st.recursive(
    scalars,
    lambda below: st.one_of(st.lists(below, max_size=4), st.dictionaries(texts, below, max_size=4)),
    max_leaves=12,
)
manifests = st.lists(st.dictionaries(texts, values, min_size=1, max_size=4), min_size=1, max_size=3)


@settings(deadline=None)
@given(manifests)
def test_yaml_reads_back_as_it_was(found: list[dict[str, Any]]) -> None:
    text = to_yaml(found)

    assert list(yaml.safe_load_all(text)) == found
    assert [document.data for document in documents(text, "out.yaml")] == found
    assert to_yaml(found) == text


@settings(deadline=None)
@given(manifests)
def test_json_is_one_list(found: list[dict[str, Any]]) -> None:
    assert json.loads(to_json(found)) == {"apiVersion": "v1", "kind": "List", "items": found}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", "a: plain\n"),
        ("nvcr.io/nvidia/pytorch:25.03-py3", "a: nvcr.io/nvidia/pytorch:25.03-py3\n"),
        ("true", 'a: "true"\n'),
        ("1e3", 'a: "1e3"\n'),
        ('{"x": 1}', "a: '{\"x\": 1}'\n"),
        ("one\ntwo\n", "a: |\n  one\n  two\n"),
        ("one\n\n  two", "a: |-\n  one\n\n    two\n"),
        ("\x1b[31m", 'a: "\\u001b[31m"\n'),
        ([], "a: []\n"),
        ({}, "a: {}\n"),
        ([{"b": 1, "c": [2]}], "a:\n- b: 1\n  c:\n  - 2\n"),
    ],
)
def test_values_look_like_this(value: object, expected: str) -> None:
    assert to_yaml([{"a": value}]) == expected


def test_what_is_used_twice_is_written_twice() -> None:
    shared = ["x"]

    assert to_yaml([{"a": shared, "b": shared}]) == "a:\n- x\nb:\n- x\n"


def test_documents_are_separated() -> None:
    assert to_yaml([{"a": 1}, {"b": 2}]) == "a: 1\n---\nb: 2\n"
