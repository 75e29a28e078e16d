"""Names of objects are valid, short enough, and distinct for distinct objects."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.backends.shared.names import LONGEST, free_name, label_value, name_of, slug
from coterie.config.configuration import Pool

DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")

user_names = st.from_regex(r"[a-zA-Z]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9])?", fullmatch=True)
pool_names = st.text(min_size=1, max_size=80)


def scene(workflow: str = "w", namespace: str = "default", pool: str = "p") -> ManifestContext:
    return ManifestContext(namespace, workflow, Pool(pool, "b", "kai"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("My_Flow", "my-flow"), ("a..b", "a-b"), ("-a-", "a"), ("größe", "gr-e"), ("___", ""), ("", "")],
)
def test_a_slug_keeps_what_kubernetes_allows(text: str, expected: str) -> None:
    assert slug(text) == expected


@settings(deadline=None)
@given(st.lists(st.text(max_size=80), max_size=4), st.lists(st.text(max_size=8), max_size=3), st.integers(10, 63))
def test_a_name_is_a_dns_label_whatever_it_is_made_of(words: list[str], identity: list[str], longest: int) -> None:
    name = name_of(words, *identity, longest=longest)

    assert DNS_LABEL.fullmatch(name)
    assert len(name) <= longest


@settings(deadline=None)
@given(user_names, user_names, pool_names)
def test_all_names_of_a_workflow_are_dns_labels(workflow: str, group: str, pool: str) -> None:
    found = scene(workflow, pool=pool)

    for name in (
        found.workflow_id,
        found.queue,
        found.parent_queue,
        found.topology,
        found.gang(group),
        f"{found.gang(group)}-channel",
        found.pod(group, 12),
    ):
        assert DNS_LABEL.fullmatch(name)
    # A Service's name begins with a letter.
    assert found.gang(group)[0].isalpha()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("My_Flow", "train"), ("my-flow", "train")),
        (("flow", "Train_A"), ("flow", "train-a")),
        (("a", "0-b"), ("a-0", "b")),
        (("a-b", "c"), ("a", "b-c")),
        (("w" * 63, "g"), ("w" * 62 + "x", "g")),
    ],
)
def test_workflows_and_groups_that_look_alike_have_different_names(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    assert scene(one[0]).gang(one[1]) != scene(other[0]).gang(other[1])


def test_the_same_workflow_in_two_namespaces_has_different_pod_groups() -> None:
    assert scene(namespace="a").gang("g") != scene(namespace="b").gang("g")


def test_pools_and_namespaces_that_join_to_the_same_text_have_different_queues() -> None:
    assert scene(namespace="a", pool="b-c").queue != scene(namespace="a-b", pool="c").queue
    assert scene(namespace="a", pool="b").queue != scene(namespace="a-b").parent_queue


def test_the_next_attempt_is_another_pod() -> None:
    assert scene().pod("t", 1) != scene().pod("t", 2)


@settings(deadline=None)
@given(st.from_regex(r"[a-zA-Z]([a-zA-Z0-9_-]{0,80}[a-zA-Z0-9])?", fullmatch=True))
def test_a_label_value_is_the_name_itself_where_it_can_be(name: str) -> None:
    assert LABEL_VALUE.fullmatch(label_value(name))
    assert label_value(name) == name or len(name) > LONGEST


def test_a_free_name_is_the_wanted_one_unless_it_is_taken_or_too_long() -> None:
    taken = {"a"}

    assert free_name("b", taken, "x") == "b"
    assert free_name("a", taken, "x") != "a"
    assert DNS_LABEL.fullmatch(free_name("a" * 64, taken, "x"))
    taken.add(free_name("a", taken, "x"))
    assert free_name("a", taken, "x") not in taken
