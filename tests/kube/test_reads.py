"""Reads: pages form one list at one version of the cluster."""

from __future__ import annotations

from typing import Any

import httpx2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import NotFound
from coterie.kube.errors import ApiForbidden, Expired, MissingKind
from coterie.kube.kinds import CLUSTER_TOPOLOGY, NODE, POD, POD_GROUP
from coterie.kube.reads import ObjectQuery, find, get, list_all, list_served, serves
from coterie.kube.wire import Identified
from tests.kube.faulty_transport import Script, answer, api, page, status, thing

GONE = status(410, "Expired", "the provided continue parameter is too old")


def names(items: list[Identified]) -> list[str]:
    return [item.metadata.name for item in items]


def test_pages_make_one_list() -> None:
    script = Script([page([thing("a"), thing("b")], 5, "t1"), page([thing("c")], 5, "t2"), page(None, 5)])

    listing = list_all(api(script), ObjectQuery(POD, labels="a=b", fields="status.phase!=Failed"), Identified, page=2)

    assert (names(listing.items), listing.version) == (["a", "b", "c"], "5")
    chosen = {"labelSelector": "a=b", "fieldSelector": "status.phase!=Failed", "limit": "2"}
    assert script.params == [chosen, {**chosen, "continue": "t1"}, {**chosen, "continue": "t2"}]
    assert script.asked[0].url.path == "/api/v1/pods"


def test_a_list_that_expires_in_the_middle_begins_anew() -> None:
    script = Script([page([thing("a")], 5, "t"), GONE, page([thing("a"), thing("b")], 9, "u"), page([thing("c")], 9)])

    listing = list_all(api(script), ObjectQuery(POD), Identified, page=1)

    assert (names(listing.items), listing.version) == (["a", "b", "c"], "9")


def test_a_list_that_expires_again_is_asked_for_whole() -> None:
    first = page([thing("a")], 5, "t")
    script = Script([first, GONE, first, GONE, page([thing("a"), thing("b")], 9)])

    listing = list_all(api(script), ObjectQuery(POD), Identified, page=1)

    assert names(listing.items) == ["a", "b"]
    assert "limit" not in script.params[-1]


def test_a_list_that_never_succeeds_ends() -> None:
    with pytest.raises(Expired):
        list_all(api(Script([GONE])), ObjectQuery(POD), Identified)


@given(st.integers(0, 12), st.integers(1, 5))
def test_any_division_into_pages_gives_the_same_list(count: int, size: int) -> None:
    everything = [thing(f"n{number}") for number in range(count)]

    def handler(request: httpx2.Request) -> httpx2.Response:
        start = int(request.url.params.get("continue", "0"))
        end = start + int(request.url.params["limit"])
        return page(everything[start:end], 3, str(end) if end < count else "")

    listing = list_all(api(handler), ObjectQuery(NODE), Identified, page=size)

    assert names(listing.items) == [f"n{number}" for number in range(count)]


@pytest.mark.parametrize(
    ("query", "path"),
    [
        (ObjectQuery(NODE), "/api/v1/nodes"),
        (ObjectQuery(POD), "/api/v1/pods"),
        (ObjectQuery(POD, "team"), "/api/v1/namespaces/team/pods"),
        (ObjectQuery(POD_GROUP), "/apis/scheduling.run.ai/v2alpha2/podgroups"),
        (ObjectQuery(POD_GROUP, "team"), "/apis/scheduling.run.ai/v2alpha2/namespaces/team/podgroups"),
        (ObjectQuery(CLUSTER_TOPOLOGY), "/apis/grove.io/v1alpha1/clustertopologies"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_where_a_list_is_asked_for(query: ObjectQuery, path: str) -> None:
    script = Script([page([])])

    list_all(api(script), query, Identified)

    assert script.asked[0].url.path == path


def test_an_object_is_read_into_any_shape() -> None:
    class Narrow(msgspec.Struct):
        status: dict[str, str]

    body = thing("p", status={"phase": "Running"}, spec={"much": "more"})

    assert get(api(Script([answer(body)])), POD, "p", Narrow, "n").status == {"phase": "Running"}
    assert get(api(Script([answer(body)])), POD, "p", dict[str, Any], "n") == body


def test_find_gives_none_for_an_absent_object_and_fails_for_an_absent_kind() -> None:
    absent = status(404, "NotFound", details={"name": "p", "kind": "podgroups"})

    assert find(api(Script([absent])), POD_GROUP, "p", Identified, "n") is None
    with pytest.raises(NotFound):
        get(api(Script([absent])), POD_GROUP, "p", Identified, "n")
    with pytest.raises(MissingKind):
        find(api(Script([status(404)])), POD_GROUP, "p", Identified, "n")


def test_without_a_namespace_an_object_is_looked_for_in_that_of_the_context() -> None:
    script = Script([answer(thing("p"))])

    get(api(script), POD, "p", Identified)

    assert script.asked[0].url.path == "/api/v1/namespaces/default/pods/p"


def test_a_kind_that_is_not_served_has_no_list() -> None:
    assert list_served(api(Script([status(404)])), ObjectQuery(POD_GROUP), Identified) is None


def test_what_is_forbidden_is_absent_when_it_is_not_even_served() -> None:
    forbidden = status(403, "Forbidden", 'User "u" cannot list')
    served = answer({"resources": [{"name": "podgroups"}, {"name": "podgroups/status"}]})
    other = answer({"resources": [{"name": "queues"}]})

    assert list_served(api(Script([forbidden, status(404)])), ObjectQuery(POD_GROUP), Identified) is None
    assert list_served(api(Script([forbidden, other])), ObjectQuery(POD_GROUP), Identified) is None
    with pytest.raises(ApiForbidden):
        list_served(api(Script([forbidden, served])), ObjectQuery(POD_GROUP), Identified)


def test_discovery_asks_for_the_group() -> None:
    script = Script([answer({"resources": [{"name": "podgroups"}]})])

    assert serves(api(script), POD_GROUP)
    assert script.asked[0].url.path == "/apis/scheduling.run.ai/v2alpha2"
