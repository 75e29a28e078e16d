"""The few fields of Kubernetes' own envelopes that are read: metadata, pages of lists, watch lines, failures."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class Meta(msgspec.Struct, gc=False, rename="camel"):
    """Who an object is, and which version of it this is."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None


class Identified(msgspec.Struct, gc=False):
    """Any object, as far as its identity."""

    metadata: Meta


class ListMeta(msgspec.Struct, gc=False, rename="camel"):
    """At which version a list was made, and where it goes on."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[T], kw_only=True):
    """One page of a list. Go writes an empty list as null in places."""

    items: list[T] | None
    metadata: ListMeta


class Served(msgspec.Struct, gc=False):
    """One kind of an API group, by its plural."""

    name: str


class Group(msgspec.Struct):
    """The kinds that a version of an API group has."""

    resources: list[Served]


class Line(msgspec.Struct):
    """One line of a watch; what the object is depends on the type."""

    type: str
    object: msgspec.Raw


class Version(msgspec.Struct, gc=False, rename="camel"):
    """The metadata of a bookmark, which names no object."""

    resource_version: str


class Bookmark(msgspec.Struct, gc=False):
    """Word that nothing happened up to a version."""

    metadata: Version


class Cause(msgspec.Struct):
    """One cause of a failure: a field, or another manager of it."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, rename="camel"):
    """What a failure is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    causes: list[Cause] | None = None
    retry_after_seconds: int = 0


class Status(msgspec.Struct):
    """A failure as the API tells it."""

    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None

    @property
    def about(self) -> Details:
        """What the failure is about, as far as it is told."""
        return self.details or Details()


_STATUS = msgspec.json.Decoder(Status)
_LINE = msgspec.json.Decoder(Line)
_IDENTIFIED = msgspec.json.Decoder(Identified)
_BOOKMARK = msgspec.json.Decoder(Bookmark)


def read_status(data: bytes) -> Status | None:
    """Return the failure that a body tells, or None when it is not the API's way of telling one."""
    try:
        status = _STATUS.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return status if status.kind == "Status" else None


def read_line(data: bytes) -> Line:
    """Read one line of a watch; raise msgspec.DecodeError when it is none."""
    return _LINE.decode(data)


def read_meta(data: bytes | msgspec.Raw) -> Meta:
    """Read who an object is; raise msgspec.DecodeError when it does not say."""
    return _IDENTIFIED.decode(data).metadata


def read_version(data: bytes | msgspec.Raw) -> str:
    """Read the version of a bookmark; raise msgspec.DecodeError when it has none."""
    return _BOOKMARK.decode(data).metadata.resource_version
