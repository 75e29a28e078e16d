"""The fields of Kubernetes' own envelopes that are read: metadata, pages of lists, watch lines, failures."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class Meta(msgspec.Struct, gc=False, rename="camel"):
    """The identity of an object, and its version."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None


class Identified(msgspec.Struct, gc=False):
    """The identity of any object."""

    metadata: Meta


class ListMeta(msgspec.Struct, gc=False, rename="camel"):
    """The version of a list, and the token of its next page."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct, Generic[T], kw_only=True):
    """One page of a list; Go writes an empty list as null in places."""

    items: list[T] | None
    metadata: ListMeta


class Served(msgspec.Struct, gc=False):
    """One kind of an API group, by its plural."""

    name: str


class ApiGroup(msgspec.Struct):
    """The kinds of one version of an API group."""

    resources: list[Served]


class WatchLine(msgspec.Struct):
    """One line of a watch; the meaning of the object depends on the type."""

    type: str
    object: msgspec.Raw


class ObjectVersion(msgspec.Struct, gc=False, rename="camel"):
    """The metadata of a bookmark, which names no object."""

    resource_version: str


class Bookmark(msgspec.Struct, gc=False):
    """A bookmark: no change up to a version."""

    metadata: ObjectVersion


class StatusCause(msgspec.Struct):
    """One cause of a failure: a field, or another manager of it."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, rename="camel"):
    """The object that a failure concerns."""

    name: str = ""
    group: str = ""
    kind: str = ""
    causes: list[StatusCause] | None = None
    retry_after_seconds: int = 0


class ApiStatus(msgspec.Struct):
    """A failure as the API reports it."""

    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None

    @property
    def about(self) -> Details:
        """The object that the failure concerns, as far as it is stated."""
        return self.details or Details()


_STATUS = msgspec.json.Decoder(ApiStatus)
_LINE = msgspec.json.Decoder(WatchLine)
_IDENTIFIED = msgspec.json.Decoder(Identified)
_BOOKMARK = msgspec.json.Decoder(Bookmark)


def read_status(data: bytes) -> ApiStatus | None:
    """Return the failure in a body, or None when the body is not a Status."""
    try:
        status = _STATUS.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return status if status.kind == "Status" else None


def read_line(data: bytes) -> WatchLine:
    """Return one line of a watch; raise msgspec.DecodeError for anything else."""
    return _LINE.decode(data)


def read_meta(data: bytes | msgspec.Raw) -> Meta:
    """Return the identity of an object; raise msgspec.DecodeError when it has none."""
    return _IDENTIFIED.decode(data).metadata


def read_version(data: bytes | msgspec.Raw) -> str:
    """Return the version of a bookmark; raise msgspec.DecodeError when it has none."""
    return _BOOKMARK.decode(data).metadata.resource_version
