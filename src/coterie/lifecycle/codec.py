"""States and specs as JSON; values that equal their default are omitted, and unknown fields are refused."""

from __future__ import annotations

from collections.abc import Mapping
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
Path = tuple[str | int, ...]


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
        found = _decoded(kind, {key: value for key, value in data.items() if key != "version"}, ())
    except ValueError as error:
        raise UsageError(f"{what} cannot be read: {error}", "It is damaged.") from None
    return cast("Stored", found)


def _encoded(value: object) -> Json:
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _encoded(found)
            for field in fields(value)
            if (found := getattr(value, field.name)) != field.default
        }
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    return value.value if isinstance(value, StrEnum) else value


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _decoded(kind: Any, data: Json, path: Path) -> object:  # noqa: ANN401 - a type hint is of any shape
    if is_dataclass(kind) and isinstance(kind, type):
        return _instance(kind, data, path)
    if get_origin(kind) is UnionType:
        inner, *rest = [one for one in get_args(kind) if one is not NoneType]
        if rest:
            raise TypeError(kind)
        return None if data is None else _decoded(inner, data, path)
    if get_origin(kind) is tuple:
        return _sequence(get_args(kind), data, path)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        if data not in list(kind):
            raise ValueError(f"{field_path(path)} is {data!r}, which is not known")
        return kind(data)
    if kind is float and type(data) is int:
        return float(data)
    if type(data) is not kind:
        raise ValueError(f"{field_path(path)} is not of type {kind.__name__}")
    return data


def _sequence(kinds: tuple[Any, ...], data: Json, path: Path) -> tuple[object, ...]:
    if not isinstance(data, list | tuple):
        raise ValueError(f"{field_path(path)} is not a list")  # noqa: TRY004 - one kind of error for damaged data
    if kinds[1:] == (Ellipsis,):
        kinds = (kinds[0],) * len(data)
    if len(kinds) != len(data):
        raise ValueError(f"{field_path(path)} has {len(data)} entries instead of {len(kinds)}")
    return tuple(
        _decoded(kind, item, (*path, index)) for index, (kind, item) in enumerate(zip(kinds, data, strict=True))
    )


def _instance(kind: type, data: Json, path: Path) -> object:
    if not isinstance(data, Mapping):
        raise ValueError(f"{field_path(path) or 'it'} is not an object")  # noqa: TRY004 - as above
    hints = _hints(kind)
    if unknown := sorted(str(key) for key in data if key not in hints):
        raise ValueError(f"{field_path((*path, unknown[0]))} is not known")
    known = {field.name: field for field in fields(kind)}
    if missing := [name for name, field in known.items() if name not in data and field.default is MISSING]:
        raise ValueError(f"{field_path((*path, missing[0]))} is missing")
    return kind(**{name: _decoded(hints[name], value, (*path, name)) for name, value in data.items()})
