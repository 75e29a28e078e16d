"""Mutations of documents: values replaced or removed, fields renamed, items repeated."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st


def junk(*words: Any) -> st.SearchStrategy[Any]:
    """Return values of every type, and some words that mean something at other places."""
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
        st.sampled_from([*words, "9" * 40, 10**400, -1, "1Gi", [], {}, [None], {"": None}]),
    )


def places(data: Any) -> list[tuple[Any, Any]]:
    """Return every container of a document with each of its keys or indices."""
    found: list[tuple[Any, Any]] = []
    front = [data]
    while front:
        holder = front.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        found.extend((holder, key) for key in keys)
        front.extend(holder[key] for key in keys)
    return found


def mutated(data: st.DataObject, valid: Any, fields: Sequence[str], values: st.SearchStrategy[Any]) -> Any:
    """Return a document with one to three changes; `fields` are the names that others may be changed to."""
    document = copy.deepcopy(valid)
    for _ in range(data.draw(st.integers(1, 3))):
        spots = places(document)
        if not spots:
            break
        holder, key = data.draw(st.sampled_from(spots))
        match data.draw(st.sampled_from(["replace", "remove", "rename", "copy"])):
            case "replace":
                holder[key] = copy.deepcopy(data.draw(values))
            case "remove":
                del holder[key]
            case "rename" if isinstance(holder, dict):
                holder[data.draw(st.sampled_from(fields))] = holder.pop(key)
            case "copy" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
    return document
