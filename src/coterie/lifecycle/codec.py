"""States and specs as JSON; values that equal their default are omitted, and unknown fields are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from coterie.errors import UsageError, field_path
from coterie.lifecycle.spec import Spec
from coterie.lifecycle.state import GroupState, State

VERSION = 1

Json = Any
Stored = TypeVar("Stored", State, Spec)
Decoder = Callable[[Json], object]


def to_json(value: State | Spec) -> dict[str, Json]:
    """Return a state or a spec as JSON data."""
    return {"version": VERSION, **_encoded(value)}


class StateEncoder:
    """`to_json` for the successive states of one workflow: a part that did not change is encoded once."""

    def __init__(self) -> None:
        self._groups: tuple[GroupState, ...] = ()
        self._encoded: list[dict[str, Json]] = []

    def to_json(self, state: State) -> dict[str, Json]:
        """Return a state as JSON data, which the caller must not change."""
        if len(self._groups) != len(state.groups):
            self._encoded = [_encoded(group) for group in state.groups]
        else:
            for index, (old, new) in enumerate(zip(self._groups, state.groups, strict=True)):
                if old is not new:
                    self._encoded[index] = _group_again(old, new, self._encoded[index])
        self._groups = state.groups
        rest = _encoded(replace(state, groups=()))
        return {"version": VERSION, **rest, "groups": list(self._encoded)}


def _group_again(old: GroupState, new: GroupState, encoded: dict[str, Json]) -> dict[str, Json]:
    known = encoded["tasks"]
    if len(known) != len(new.tasks):
        return cast("dict[str, Json]", _encoded(new))
    tasks = [
        entry if was is now else _encoded(now) for was, now, entry in zip(old.tasks, new.tasks, known, strict=True)
    ]
    return {**_encoded(replace(new, tasks=())), "tasks": tasks}


def from_json(kind: type[Stored], data: object) -> Stored:
    """Return the value given to `to_json`; raise `UsageError` for data of another version or damaged data."""
    what = f"a stored workflow {kind.__name__.lower()}"
    if not isinstance(data, Mapping) or "version" not in data:
        raise UsageError(f"{what} has no version", "It was not written by Coterie, or is damaged.")
    if type(data["version"]) is not int or data["version"] != VERSION:
        raise UsageError(
            f"{what} has version {data['version']}, but this Coterie reads version {VERSION}",
            "Use the release of Coterie that wrote it, or a newer one.",
        )
    try:
        found = _decoder(cast("Any", kind))({key: value for key, value in data.items() if key != "version"})
    except ValueError as error:
        raise UsageError(f"{what} cannot be read: {error}", "It is damaged.") from None
    return cast("Stored", found)


def _encoded(value: object) -> Json:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple:
        return [_encoded(item) for item in cast("tuple[object, ...]", value)]
    if (written := _written(cast("Any", kind))) is None:
        return value.value if isinstance(value, StrEnum) else value
    return {name: _encoded(found) for name, default in written if (found := getattr(value, name)) != default}


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
