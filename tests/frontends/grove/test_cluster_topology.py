"""The rules of ClusterTopology and ClusterTopologyBinding. Ids that begin with G are those of the table of cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.errors import Fault, FieldError, SpecErrors, field_path
from coterie.frontends.grove.topology import (
    KAI,
    SCHEDULERS,
    ClusterTopology,
    Reference,
    read_cluster_topology,
    topology_of,
    update_notices,
)
from coterie.frontends.kubernetes.objects import read_resources, resource_of
from coterie.topology.levels import HOSTNAME, Level, Topology
from tests.random_examples import examples

CT, CTB = "ClusterTopology", "ClusterTopologyBinding"
ZONE, BLOCK, RACK, HOST = (
    ("zone", "topology.kubernetes.io/zone"),
    ("block", "fabric.example.com/block"),
    ("rack", "fabric.example.com/rack"),
    ("host", HOSTNAME),
)
LEVELS = (ZONE, BLOCK, RACK, HOST)
LISTS = {CT: ("schedulerReferences", "reference"), CTB: ("schedulerTopologyBindings", "topologyReference")}

Pairs = Sequence[tuple[str, str]]


def made(kind: str = CT, levels: Pairs = LEVELS, bound: Pairs = (), **spec: object) -> dict[str, Any]:
    listed, reference = LISTS[kind]
    references = [{"schedulerName": scheduler, reference: name} for scheduler, name in bound]
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "t"},
        "spec": {
            "levels": [{"domain": domain, "key": key} for domain, key in levels],
            **({listed: references} if bound else {}),
            **spec,
        },
    }


def read(data: dict[str, Any], enabled: frozenset[str] | None = SCHEDULERS) -> ClusterTopology:
    return read_cluster_topology(resource_of(data), enabled)


def faults(data: dict[str, Any], enabled: frozenset[str] | None = SCHEDULERS) -> list[tuple[str, str]]:
    with pytest.raises(SpecErrors) as error:
        read(data, enabled)
    return [said(fault) for fault in error.value.faults]


def said(fault: Fault) -> tuple[str, str]:
    return str(fault.type), fault.field or field_path(fault.path)


def many(count: int) -> list[tuple[str, str]]:
    return [(f"level{number}", f"example.com/l{number}") for number in range(count)]


OLD, NEW = "spec.schedulerTopologyReferences", "spec.schedulerReferences"
LONG = "a" * 63


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(made(CTB, [ZONE, ("zone", "k")]), [("Duplicate", "spec.levels[1].domain")], id="G01 domain twice"),
        pytest.param(made(CTB, [ZONE, ("x", ZONE[1])]), [("Duplicate", "spec.levels[1].key")], id="G02a key twice"),
        pytest.param(
            made(CTB, [ZONE, ZONE]),
            [("Duplicate", "spec.levels[1].domain"), ("Duplicate", "spec.levels[1].key")],
            id="G02b level twice",
        ),
        pytest.param(made(CTB, []), [("Invalid", "spec.levels")], id="G03a no levels"),
        pytest.param(made(CT, []), [("Invalid", "spec.levels")], id="G03a no levels, ClusterTopology"),
        pytest.param(made(CTB, [ZONE, ("Rack", "k")]), [("Invalid", "spec.levels[1].domain")], id="G03b Rack"),
        pytest.param(
            made(CTB, bound=[(KAI, "a"), (KAI, "b")]), [("Duplicate", f"{OLD}[1].schedulerName")], id="G04 twice"
        ),
        pytest.param(
            made(CT, bound=[(KAI, "a"), (KAI, "b")]),
            [("Duplicate", f"{NEW}[1].schedulerName")],
            id="G04 twice, ClusterTopology",
        ),
        pytest.param(
            made(CTB, bound=[("unknown-scheduler", "a")]), [("Invalid", f"{OLD}[0].schedulerName")], id="G05a unknown"
        ),
        pytest.param(
            made(CTB, bound=[("default-scheduler", "a")]),
            [("Invalid", f"{OLD}[0].schedulerName")],
            id="G05b not topology-aware",
        ),
        pytest.param(
            made(CT, bound=[(KAI, "a"), ("volcano", "b")]),
            [("Invalid", f"{NEW}[1].schedulerName")],
            id="G05b not topology-aware, ClusterTopology",
        ),
        pytest.param(made(CT, many(20)), [("Invalid", "spec.levels")], id="G06 20 levels, ClusterTopology"),
        pytest.param(made(CT, many(17)), [("Invalid", "spec.levels")], id="17 levels"),
        pytest.param(made(CT, [("", "k")]), [("Invalid", "spec.levels[0].domain")], id="empty domain"),
        pytest.param(made(CT, [(LONG + "a", "k")]), [("Invalid", "spec.levels[0].domain")], id="64 characters"),
        pytest.param(made(CT, [("1a", "k")]), [("Invalid", "spec.levels[0].domain")], id="begins with a digit"),
        pytest.param(made(CT, [("a_b", "k")]), [("Invalid", "spec.levels[0].domain")], id="underscore"),
        pytest.param(made(CT, [("a\n", "k")]), [("Invalid", "spec.levels[0].domain")], id="line break"),
        pytest.param(made(CT, [("a", "")]), [("Invalid", "spec.levels[0].key")], id="empty key"),
        pytest.param(made(CT, [("a", "/k")]), [("Invalid", "spec.levels[0].key")], id="empty prefix"),
        pytest.param(made(CT, [("a", "X.y/k")]), [("Invalid", "spec.levels[0].key")], id="prefix with capital"),
        pytest.param(
            made(CT, [("a", f"{'.'.join([LONG] * 3)}.{'a' * 61}/{LONG}")]),
            [("Invalid", "spec.levels[0].key")],
            id="key of 317 characters",
        ),
        pytest.param(
            made(CTB, [("a", f"ab.c/{'a' * 59}")]), [("Invalid", "spec.levels[0].key")], id="key of 64, binding"
        ),
        pytest.param(
            made(CT, bound=[(KAI, "")]), [("Required", "spec.schedulerReferences[0].reference")], id="empty reference"
        ),
        pytest.param(
            made(CT, [("A", "a b"), ("A", "a b")], [("x", "y"), ("x", "y")]),
            [
                ("Invalid", "spec.levels[0].domain"),
                ("Invalid", "spec.levels[0].key"),
                ("Invalid", "spec.levels[1].domain"),
                ("Invalid", "spec.levels[1].key"),
                ("Invalid", f"{NEW}[0].schedulerName"),
                ("Duplicate", f"{NEW}[1].schedulerName"),
            ],
            id="all faults at once",
        ),
    ],
)
def test_a_breach_has_the_type_and_the_field_that_an_api_server_gives_it(
    data: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert faults(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param({"spec": None}, ("Required", "spec"), id="empty spec"),
        pytest.param({"spec": []}, ("Invalid", "spec"), id="spec is a list"),
        pytest.param({"spec": {}}, ("Required", "spec.levels"), id="no levels"),
        pytest.param({"spec": {"levels": None}}, ("Required", "spec.levels"), id="levels are nothing"),
        pytest.param({"spec": {"levels": {"a": 1}}}, ("Invalid", "spec.levels"), id="levels are a mapping"),
        pytest.param({"spec": {"levels": ["rack"]}}, ("Invalid", "spec.levels[0]"), id="a level is a text"),
        pytest.param({"spec": {"levels": [{"key": "k"}]}}, ("Required", "spec.levels[0].domain"), id="no domain"),
        pytest.param({"spec": {"levels": [{"domain": "a"}]}}, ("Required", "spec.levels[0].key"), id="no key"),
        pytest.param(
            {"spec": {"levels": [{"domain": 5, "key": "k"}]}}, ("Invalid", "spec.levels[0].domain"), id="a number"
        ),
        pytest.param(made(CT, lvels=[]), ("Invalid", "spec.lvels"), id="misspelt field"),
        pytest.param(
            made(CT, schedulerReferences=[{"schedulerName": KAI}]),
            ("Required", "spec.schedulerReferences[0].reference"),
            id="no reference",
        ),
        pytest.param(made(CT) | {"specs": {}}, ("Invalid", "specs"), id="misspelt spec"),
    ],
)
def test_a_wrong_shape_is_a_fault_of_the_field(data: dict[str, Any], expected: tuple[str, str]) -> None:
    assert faults(made(CT) | data) == [expected]


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (made(CT, schedulerTopologyBindings=[]), "In a ClusterTopology the field is called schedulerReferences."),
        (
            made(CTB, schedulerReferences=[]),
            "In a ClusterTopologyBinding the field is called schedulerTopologyBindings",
        ),
        (made(CT, level=[]), 'Did you mean "levels"?'),
        (
            made(CT) | {"spec": {"levels": [{"domain": "a", "key": "k", "label": "x"}]}},
            "The node label of a level is its key.",
        ),
        (made(CT, bound=[("kai-schedular", "x")]), 'Did you mean "kai-scheduler"?'),
    ],
)
def test_a_hint_says_what_was_meant(data: dict[str, Any], hint: str) -> None:
    with pytest.raises(SpecErrors) as error:
        read(data)
    assert hint in error.value.faults[0].hint


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(made(CT, many(16)), id="16 levels"),
        pytest.param(made(CT, [("rack-", "k")]), id="trailing hyphen"),
        pytest.param(made(CT, [(LONG, "k")]), id="domain of 63"),
        pytest.param(made(CT, [("a", f"{'.'.join([LONG] * 3)}.{'a' * 60}/{LONG}")]), id="key of 316"),
        pytest.param(made(CTB, [("a", f"ab.c/{'a' * 58}")]), id="key of 63, binding"),
        pytest.param(made(CT, [RACK, ZONE]), id="G39 the order of names is a convention only"),
        pytest.param(made(CT, schedulerReferences=None), id="an empty list of references"),
        pytest.param(made(CT) | {"status": {"anything": [1]}}, id="a status"),
        pytest.param(made(CT) | {"metadata": {"name": "t", "labels": {"a": "b"}, "uid": "5"}}, id="metadata"),
    ],
)
def test_what_keeps_the_rules_is_read(data: dict[str, Any]) -> None:
    assert read(data).notices == ()


def test_both_kinds_are_one_model() -> None:
    found = read(made(CT, bound=[(KAI, "own")]))
    assert found == read(made(CTB, bound=[(KAI, "own")]))
    assert (found.name, found.references) == ("t", (Reference(KAI, "own"),))
    assert found.levels[0] == Level(*ZONE)
    assert topology_of(found) == Topology.of(*LEVELS)


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        pytest.param(many(20), "at most 16 levels, not 20", id="G06 20 levels, binding"),
        pytest.param([HOST, RACK], "only as the last level", id="hostname first"),
    ],
)
def test_what_kai_refuses_is_admitted_with_a_warning(levels: Pairs, words: str) -> None:
    (notice,) = read(made(CTB, levels)).notices
    assert notice.code == "RefusedByKai"
    assert words in notice.message
    assert read(made(CTB, levels), SCHEDULERS - {KAI}).notices == ()


def test_a_scheduler_must_be_enabled_unless_the_object_is_in_a_cluster_already() -> None:
    data = made(CTB, bound=[(KAI, "own")])
    assert faults(data, frozenset({"default-scheduler"})) == [("Invalid", f"{OLD}[0].schedulerName")]
    assert read(data, None).reference(KAI) == "own"


@pytest.mark.parametrize(
    ("levels", "codes"),
    [
        pytest.param([ZONE, BLOCK, HOST], ["LevelsRemoved"], id="G07 a level is dropped"),
        pytest.param([ZONE, RACK, BLOCK, HOST], ["LevelsReordered"], id="another order"),
        pytest.param([HOST, ZONE], ["LevelsRemoved", "LevelsReordered"], id="both"),
        pytest.param([ZONE, ("spine", "s"), BLOCK, RACK, HOST], [], id="G09 a level more"),
        pytest.param([*LEVELS[:3], ("host", "other")], [], id="another label"),
    ],
)
def test_an_update_is_admitted_and_says_what_it_takes_away(levels: Pairs, codes: list[str]) -> None:
    notices = update_notices(read(made(CTB)), read(made(CTB, levels)))
    assert [notice.code for notice in notices] == codes


def test_an_update_obeys_the_rules_of_a_creation() -> None:
    assert faults(made(CTB, [ZONE, ZONE])) == [
        ("Duplicate", "spec.levels[1].domain"),
        ("Duplicate", "spec.levels[1].key"),
    ]


def test_a_fault_in_a_file_has_its_line() -> None:
    text = b"""\
apiVersion: v1
kind: List
items:
- apiVersion: grove.io/v1alpha1
  kind: ClusterTopologyBinding
  metadata: {name: t}
  spec:
    levels:
    - {domain: zone, key: a}
    - {domain: zone, key: b}
    schedulerTopologyBindings:
    - {schedulerName: volcano, topologyReference: v}
"""
    (resource,) = read_resources(text, "t.yaml").resources
    with pytest.raises(SpecErrors) as error:
        read_cluster_topology(resource)
    places = [(fault.place.line, fault.place.column) for fault in error.value.faults if fault.place]
    assert places == [(10, 16), (12, 23)]
    assert error.value.faults[1].path == ("spec", "schedulerTopologyBindings", 0, "schedulerName")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(["levels", "domain", "key", *LISTS[CT], *LISTS[CTB], "schedulerName", "zone", KAI])
SPEC = st.recursive(
    JSON | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=16,
)


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from([CT, CTB]), SPEC)
def test_any_spec_at_all_is_read_or_refused_with_typed_faults(kind: str, spec: object) -> None:
    found: Sequence[Fault] = ()
    try:
        read(made(kind) | {"spec": spec})
    except SpecErrors as error:
        found = error.faults
    assert all(isinstance(fault.type, FieldError) and fault.message and fault.place for fault in found)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.from_regex(r"\A[a-z][a-z0-9-]{0,62}\Z"), st.sampled_from("abcdefgh")), min_size=1))
def test_levels_are_admitted_just_when_no_domain_and_no_key_repeats(levels: list[tuple[str, str]]) -> None:
    unique = all(len(set(column)) == len(levels) for column in zip(*levels, strict=True))
    if unique:
        assert topology_of(read(made(CTB, levels))).levels == tuple(Level(*pair) for pair in levels)
    else:
        assert {kind for kind, _ in faults(made(CTB, levels))} == {"Duplicate"}
