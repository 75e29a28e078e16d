"""States and specs as JSON; values that equal their default are omitted, and unknown fields are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from itertools import chain
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from coterie.errors import UsageError, field_path
from coterie.lifecycle.spec import Spec
from coterie.lifecycle.state import State

VERSION = 1
# The version of a state whose groups are stored in parts: releases that do not know them must not read it.
IN_PARTS = 2

Json = Any
Stored = TypeVar("Stored", State, Spec)
Decoder = Callable[[Json], object]


def to_json(value: State | Spec) -> dict[str, Json]:
    """Return a state or a spec as JSON data."""
    return {"version": VERSION, **encoded(value)}


def stored_tasks(data: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    """Yield the tasks of a stored state without decoding it; data of another form raises a lookup or type error."""
    groups = chain.from_iterable(data["parts"]) if "parts" in data else data["groups"]
    return (task for group in groups for task in group["tasks"])


def _joined(data: Mapping[str, Json]) -> dict[str, Json]:
    """Return a state in parts as a whole; raise `ValueError` where it is damaged."""
    groups: list[dict[str, Json]] = []
    try:
        for piece in chain.from_iterable(data["parts"]):
            if "name" in piece:
                groups.append({**piece, "tasks": list(piece["tasks"])})
            else:
                groups[-1]["tasks"] += piece["tasks"]
    except (LookupError, TypeError):
        raise _DamagedError("cannot be put together", "parts") from None
    return {**{key: value for key, value in data.items() if key != "parts"}, "version": VERSION, "groups": groups}


def from_json(kind: type[Stored], data: object) -> Stored:
    """Return the value given to `to_json`; raise `UsageError` for data of another version or damaged data."""
    what = f"a stored workflow {kind.__name__.lower()}"
    if not isinstance(data, Mapping) or "version" not in data:
        raise UsageError(f"{what} has no version", "It was not written by Coterie, or is damaged.")
    in_parts = kind is State and data["version"] == IN_PARTS
    if type(data["version"]) is not int or (data["version"] != VERSION and not in_parts):
        known = f"versions {VERSION} and {IN_PARTS}" if kind is State else f"version {VERSION}"
        raise UsageError(
            f"{what} has version {data['version']}, but this Coterie reads {known}",
            "Use the release of Coterie that wrote it, or a newer one.",
        )
    try:
        whole = _joined(data) if in_parts else data
        found = _decoder(cast("Any", kind))({key: value for key, value in whole.items() if key != "version"})
    except ValueError as error:
        raise UsageError(f"{what} cannot be read: {error}", "It is damaged.") from None
    return cast("Stored", found)


def encoded(value: object) -> Json:
    """Return a value of the life cycle as JSON data, without a version."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple:
        return [encoded(item) for item in cast("tuple[object, ...]", value)]
    if (written := _written(cast("Any", kind))) is None:
        return value.value if isinstance(value, StrEnum) else value
    return {name: encoded(found) for name, default in written if (found := getattr(value, name)) != default}


_PLAIN = frozenset({str, int, float, bool, NoneType})


@cache
def _written(kind: type) -> tuple[tuple[str, object], ...] | None:
    """Return the fields of a dataclass with their defaults; None for any other type."""
    return tuple((field.name, field.default) for field in fields(kind)) if is_dataclass(kind) else None


class _DamagedError(ValueError):
    """Raised for data that is not of its type; its path is completed on the way up."""

    def __init__(self, words: str, *path: str | int) -> None:
        super().__init__(words)
        self._words, self._path = words, path

    def within(self, step: str | int) -> _DamagedError:
        """Return the error with one more step before its path."""
        return _DamagedError(self._words, step, *self._path)

    def __str__(self) -> str:
        """Return the place of the damage, and the damage."""
        return f"{field_path(self._path) or 'it'} {self._words}"


@cache
def _decoder(kind: Any) -> Decoder:  # noqa: ANN401 - a type hint is of any shape
    """Return the function that decodes data of a type: built once, since states are read very often."""
    if is_dataclass(kind) and isinstance(kind, type):
        return _instance(kind)
    if get_origin(kind) is UnionType:
        inner, *rest = [one for one in get_args(kind) if one is not NoneType]
        if rest:
            raise TypeError(kind)
        decode = _decoder(inner)
        return lambda data: None if data is None else decode(data)
    if get_origin(kind) is tuple:
        kinds = get_args(kind)
        return _list(_decoder(kinds[0])) if kinds[1:] == (Ellipsis,) else _row([_decoder(one) for one in kinds])
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _choice(kind)
    return _value(kind)


def _choice(kind: type[StrEnum]) -> Decoder:
    known = {one.value: one for one in kind}

    def decode(data: Json) -> object:
        found = known.get(data) if isinstance(data, str) else None
        if found is None:
            raise _DamagedError(f"is {data!r}, which is not known")
        return found

    return decode


def _value(kind: type) -> Decoder:
    def decode(data: Json) -> object:
        if type(data) is kind:
            return data
        if kind is float and type(data) is int:
            return float(data)
        raise _DamagedError(f"is not of type {kind.__name__}")

    return decode


def _list(item: Decoder) -> Decoder:
    def decode(data: Json) -> object:
        if not isinstance(data, list | tuple):
            raise _DamagedError("is not a list")
        found: list[object] = []
        try:
            for each in data:
                found.append(item(each))  # noqa: PERF401 - the length is the place of a fault
        except _DamagedError as error:
            raise error.within(len(found)) from None
        return tuple(found)

    return decode


def _row(items: list[Decoder]) -> Decoder:
    def decode(data: Json) -> object:
        if not isinstance(data, list | tuple):
            raise _DamagedError("is not a list")
        if len(items) != len(data):
            raise _DamagedError(f"has {len(data)} entries instead of {len(items)}")
        found: list[object] = []
        try:
            for item, each in zip(items, data, strict=True):
                found.append(item(each))
        except _DamagedError as error:
            raise error.within(len(found)) from None
        return tuple(found)

    return decode


def _instance(kind: type) -> Decoder:
    hints = get_type_hints(kind)
    known = {field.name: _decoder(hints[field.name]) for field in fields(kind)}
    needed = {field.name for field in fields(kind) if field.default is MISSING}

    def decode(data: Json) -> object:
        if not isinstance(data, dict | Mapping):
            raise _DamagedError("is not an object")
        if unknown := data.keys() - known.keys():
            raise _DamagedError("is not known", min(map(str, unknown)))
        if not needed <= data.keys():
            raise _DamagedError("is missing", next(name for name in known if name in needed and name not in data))
        values: dict[str, object] = {}
        name = ""
        try:
            for name, value in data.items():
                values[name] = known[name](value)
        except _DamagedError as error:
            raise error.within(name) from None
        return kind(**values)

    return decode
