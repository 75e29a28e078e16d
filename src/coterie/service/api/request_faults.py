"""Faults of a request in plain words, by the type that its validation gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The first matching prefix of a type counts; names in braces are filled in from the context of a fault.
_PROBLEMS = {
    "missing": "it is missing",
    "extra_forbidden": "there is no such field",
    "bool": "must be true or false",
    "int": "must be a whole number",
    "float": "must be a number",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "string_pattern_mismatch": "does not have the right form",
    "string": "must be text",
    "too_long": "must have at most {max_length} entries",
    "too_short": "must have at least {min_length} entries",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "datetime": "must be a time",
    "json": "is not JSON",
    "list": "must be a list",
    "dict": "must be a JSON object",
    "model": "must be a JSON object",
}


def problem(fault: Mapping[str, Any]) -> str:
    """Return the fault of a part of a request."""
    kind, context = str(fault["type"]), fault.get("ctx") or {}
    if kind == "extra_forbidden" and fault["loc"][0] == "query":
        return "there is no such parameter"
    words = next((words for beginning, words in _PROBLEMS.items() if kind.startswith(beginning)), "is not valid")
    try:
        return words.format_map(context)
    except KeyError:
        return "is not valid"
