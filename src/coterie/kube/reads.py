"""Reads of objects: one by name, or all of a kind in pages, decoded directly into the caller's own structs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from coterie.document.json_faults import field_problem
from coterie.errors import NotFound
from coterie.kube.api import DISCOVER, Api, ApiResponse
from coterie.kube.errors import ApiForbidden, Expired, MissingKind, RequestDescription, not_kubernetes
from coterie.kube.kinds import ObjectKind
from coterie.kube.wire import ApiGroup, ListPage

T = TypeVar("T")
Send = Callable[[RequestDescription, Mapping[str, str | None]], ApiResponse]

PAGE = 500


@dataclass(frozen=True, slots=True)
class ObjectQuery:
    """A selection of objects of a kind: one namespace or all, with selectors as kubectl writes them."""

    kind: ObjectKind
    namespace: str | None = None
    labels: str = ""
    fields: str = ""

    def params(self) -> dict[str, str | None]:
        """Return the selectors as request parameters."""
        return {"labelSelector": self.labels or None, "fieldSelector": self.fields or None}


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """All objects at one version of the cluster."""

    items: list[T]
    version: str


def get(api: Api, kind: ObjectKind, name: str, shape: type[T], namespace: str | None = None) -> T:
    """Return one object; raise NotFound if it does not exist."""
    call = api.call_of("get", kind, name, namespace)
    return decoded(call, api.send(call).body, msgspec.json.Decoder(shape))


def find(api: Api, kind: ObjectKind, name: str, shape: type[T], namespace: str | None = None) -> T | None:
    """Return one object, or None if it does not exist; raise MissingKind if the cluster lacks the kind."""
    try:
        return get(api, kind, name, shape, namespace)
    except MissingKind:
        raise
    except NotFound:
        return None


def list_all(api: Api, query: ObjectQuery, shape: type[T], *, send: Send | None = None, page: int = PAGE) -> Listing[T]:
    """Return all objects of a query, page by page.

    A list whose version expires while it is read is restarted; the second time it is requested in one page. `send`
    requests each page, by default with retries.
    """
    call = api.call_of("list", query.kind, namespace=query.namespace)
    ask = send or api.send
    for limit in (page, page, None):
        try:
            return _pages(call, ask, query, shape, limit)
        except Expired:
            if limit is None:
                raise
    raise AssertionError("the last request returns or raises")


def list_served(api: Api, query: ObjectQuery, shape: type[T]) -> Listing[T] | None:
    """Return all objects of a query, or None if the cluster lacks the kind."""
    try:
        return list_all(api, query, shape)
    except MissingKind:
        return None
    except ApiForbidden:
        # Authorization comes before existence: without permission, even a missing kind is forbidden.
        if not serves(api, query.kind):
            return None
        raise


def serves(api: Api, kind: ObjectKind) -> bool:
    """Return whether the cluster has a kind; every authenticated user may ask that."""
    call = api.call_of(DISCOVER, kind)
    try:
        group = decoded(call, api.send(call).body, msgspec.json.Decoder(ApiGroup))
    except MissingKind:
        return False
    return any(found.name == kind.plural for found in group.resources)


def _pages(call: RequestDescription, send: Send, query: ObjectQuery, shape: type[T], limit: int | None) -> Listing[T]:
    items: list[T] = []
    decoder = _page_decoder(shape)
    token: str | None = None
    while True:
        params = {**query.params(), "limit": str(limit) if limit else None, "continue": token}
        found = decoded(call, send(call, params).body, decoder)
        items.extend(found.items or ())
        token = found.metadata.continue_ or None
        if token is None:
            return Listing(items, found.metadata.resource_version)


def decoded(call: RequestDescription, body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Return the decoded body of an answer; an undecodable one did not come from this API."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_kubernetes(call, f"{call.verb} {call.title()}: {field_problem(error)[1]}") from None


def _page_decoder(shape: type[T]) -> msgspec.json.Decoder[ListPage[T]]:
    return msgspec.json.Decoder(ListPage[shape])  # type: ignore[valid-type]
