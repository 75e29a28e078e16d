"""The fault of a snapshot is one sentence with a place and a hint, never a traceback."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import Fault, SpecErrors
from coterie.sources.kubectl import read_kubectl
from tests.sources.test_kubectl import listing, node, pod


def faults(data: bytes) -> tuple[Fault, ...]:
    with pytest.raises(SpecErrors) as caught:
        read_kubectl(data, "snapshot.json")
    assert all(fault.place and fault.place.file == "snapshot.json" for fault in caught.value.faults)
    return caught.value.faults


WHOLE = listing(node(), pod())

BROKEN: list[tuple[str, bytes, str]] = [
    ("nothing", b"", "it is empty"),
    ("blank", b" \n\t", "it is empty"),
    ("truncated", WHOLE[:-20], f"the JSON breaks off at byte {len(WHOLE) - 20}"),
    ("truncated early", b'{"kind": "List", "items": [', "the JSON breaks off at byte 27"),
    ("malformed", b'{"kind": List}', "it is not JSON: invalid character at byte 9"),
    (
        "two documents",
        WHOLE + b"\n" + WHOLE,
        f"there is more text after the JSON document, at byte {len(WHOLE) + 1}",
    ),
    ("yaml of kubectl", b"apiVersion: v1\nitems: []\nkind: List\n", "it is YAML, not JSON"),
    ("yaml of ours", b"# my cluster\nnodes:\n- name: n1\n", "it is YAML, not JSON"),
    ("a table", b"NAME   STATUS   ROLES\nn1     Ready    <none>\n", "it is kubectl's table, not JSON"),
    ("compressed", gzip.compress(WHOLE), "it is compressed"),
    ("utf-16 and broken", b"\xff\xfe\x00", "it begins like UTF-16 text but is not valid UTF-16"),
    ("a bare list", b"[1, 2]", "it is a bare list, and a List of nodes and pods is needed"),
    ("a number", b"42", "it is a single value, and a List of nodes and pods is needed"),
    ("null", b"null", "it is a single value, and a List of nodes and pods is needed"),
    ("a text", b'"hello"', "it is a text, and a List of nodes and pods is needed"),
    ("no kind", b"{}", 'it has no "kind", and a List of nodes and pods is needed'),
    (
        "a deployment",
        b'{"kind": "Deployment", "spec": {}}',
        'it is a "Deployment", and a List of nodes and pods is needed',
    ),
    ("a kind that is no text", b'{"kind": 3}', "kind: expected text, got a whole number"),
    ("items that are no list", b'{"kind": "List", "items": {}}', '"items" is not a list'),
    ("no items", b'{"kind": "List"}', "there are neither nodes nor pods in it, and a cluster needs nodes"),
    (
        "null items",
        b'{"kind": "NodeList", "items": null}',
        "there are neither nodes nor pods in it, and a cluster needs nodes",
    ),
    ("only pods", listing(pod()), "there are only pods in it, and a cluster needs nodes"),
    ("one pod", json.dumps(pod()).encode(), "there are only pods in it, and a cluster needs nodes"),
    ("too deep", b'{"kind": "List", "x": ' + b"[" * 100_000, "it is nested too deeply to be a list of nodes and pods"),
    ("a node twice", listing(node(), node(), node()), 'node "n1" is listed 3 times'),
    ("a pod twice", listing(node(), pod(), pod()), 'pod "default/p1" is listed twice'),
    ("a node without name", listing(node("")), 'node name "" is empty: 1 to 253 are allowed'),
    (
        "an item that is no object",
        listing(node(), 7),
        "item 2, of no kind: expected an object, got a whole number",
    ),
    (
        "a label that is no text",
        listing(node(), {"kind": "Node", "metadata": {"name": "n2", "labels": {"a": 1}}}),
        'item 2, node "n2": metadata.labels[...]: expected text, got a whole number',
    ),
    (
        "no metadata",
        listing({"kind": "Node"}),
        'item 1, node: required field "metadata" is missing',
    ),
    (
        "containers that are no list",
        listing(node(), pod(containers="x")),
        'item 2, pod "default/p1": spec.containers: expected a list or nothing, got text',
    ),
    (
        "a node by itself",
        b'{"kind": "Node", "metadata": {"name": 3}}',
        "node: metadata.name: expected text, got a whole number",
    ),
    (
        "bytes that are no text",
        b'{"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "\xff"}}]}',
        "item 1, node: it holds bytes that are not UTF-8 text",
    ),
    (
        "a quantity that is none",
        listing(node(allocatable={"cpu": 8, "memory": "lots"})),
        (
            'node "n1": status.allocatable: "lots" is not a quantity of memory: '
            'write a number with a suffix such as "m", "k", "M", "G", "Ki", "Mi" or "Gi"'
        ),
    ),
    (
        "a request that is no quantity",
        listing(node(), pod(containers=[{"resources": {"requests": {"nvidia.com/gpu": "eight"}}}])),
        (
            'pod "default/p1": requests: "eight" is not a quantity of nvidia.com/gpu: '
            'write a number with a suffix such as "m", "k", "M", "G", "Ki", "Mi" or "Gi"'
        ),
    ),
    (
        "an absurd request",
        listing(node(), pod(containers=[{"resources": {"requests": {"memory": "9Ei"}}}])),
        'pod "default/p1": requests: 9Ei of memory is more than Coterie can count',
    ),
    (
        "an overlong label value",
        listing({"kind": "Node", "metadata": {"name": "n", "labels": {"rack": "9" * 5000}}}),
        f'value "{"9" * 39}…" of label "rack" has 5000 characters: at most 63 are allowed',
    ),
    (
        "an overlong name",
        listing(node("9" * 5000)),
        f'node name "{"9" * 39}…" is 5000 characters long: 1 to 253 are allowed',
    ),
]


@pytest.mark.parametrize(("data", "message"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_broken_snapshot_is_refused_in_one_clear_sentence(data: bytes, message: str) -> None:
    assert [fault.message for fault in faults(data)] == [message]


@pytest.mark.parametrize("data", [data for _, data, _ in BROKEN[:24]], ids=[row[0] for row in BROKEN[:24]])
def test_every_refusal_of_a_whole_document_says_what_to_do_next(data: bytes) -> None:
    assert all(fault.hint for fault in faults(data))


def test_all_wrong_items_are_reported_at_once_and_a_flood_is_cut() -> None:
    wrong = {"kind": "Node", "metadata": {}}
    assert len(faults(listing(wrong, node(), wrong, {"kind": "Pod"}))) == 3
    flood = faults(listing(*[wrong] * 1000))
    assert len(flood) == 51
    assert flood[-1].message == "and 950 more like these"


def test_a_malformed_place_is_given_by_line_and_column() -> None:
    place = faults(b'{\n  "kind": "List",\n  "items": [oops]\n}')[0].place
    assert place is not None
    assert (place.line, place.column) == (3, 13)


def test_byte_order_marks_and_utf_16_are_understood() -> None:
    text = WHOLE.decode()
    for data in (b"\xef\xbb\xbf" + WHOLE, text.encode("utf-16"), b"\xfe\xff" + text.encode("utf-16-be")):
        assert read_kubectl(data, "f").cluster.names == ("n1",)


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["Node", "Pod", "n1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "kind",
                    "metadata",
                    "name",
                    "labels",
                    "spec",
                    "status",
                    "items",
                    "allocatable",
                    "capacity",
                    "cpu",
                    "taints",
                    "conditions",
                    "containers",
                    "resources",
                    "requests",
                    "nodeName",
                    "key",
                    "effect",
                    "type",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(_JSON, max_size=4))
def test_any_json_is_read_or_refused_with_faults(items: list[object]) -> None:
    try:
        read_kubectl(listing(*items), "f")
    except SpecErrors as error:
        assert error.faults  # noqa: PT017 - a refusal is one of two good outcomes


@given(st.binary(max_size=60) | st.integers(0, len(WHOLE)).map(lambda cut: WHOLE[:cut]))
def test_any_bytes_are_read_or_refused_with_faults(data: bytes) -> None:
    try:
        read_kubectl(data, "f")
    except SpecErrors as error:
        assert error.faults  # noqa: PT017 - a refusal is one of two good outcomes
