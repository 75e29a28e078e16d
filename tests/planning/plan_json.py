"""Strict reading of a plan's JSON: its keys, their types, and complete sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

# What a template leaves behind when something was missing. Numbers below zero are not preceded by a letter.
_HOLES = re.compile(r"""''|""|``|\bNone\b|\bnan\b|(?<![\w\]./-])-\d|  |\(\)|\[\]|\{\}|: ?$|\s$|^\s| ,| \.|\.\.""")

# A key that ends in a question mark may be missing.
Schema = Any
LEVEL_OR_NULL = (str, type(None))
PATH: Schema = [[str]]
REFUSAL: Schema = {
    "reason": str,
    "message": str,
    "sentence": str,
    "because": LEVEL_OR_NULL,
    "path": PATH,
    "together": [PATH],
    "level": LEVEL_OR_NULL,
    "domains": int,
    "best": [{"domain": [str], "fits": int, "wanted": int}],
    "holders": [{"owner": str, "gpus": int, "domain": [str]}],
    "counted": (Mapping, type(None)),
    "causes": [
        {
            "cause": str,
            "nodes": int,
            "names": [str],
            "resource": LEVEL_OR_NULL,
            "offered": (list, type(None)),
            "asked": (int, type(None)),
            "detail": LEVEL_OR_NULL,
        }
    ],
    "ways_out": [{"change": str, "command": str, "options": [{"name": str, "value": LEVEL_OR_NULL}]}],
}
GROUP: Schema = {
    "name": str,
    "size": str,
    "verdict": str,
    "optimal": bool,
    "assignments": [{"task": str, "node": str, "gpus": int, "domains": Mapping, "runs?": bool}],
    "constraints": [
        {
            "path": PATH,
            "level": str,
            "type": str,
            "satisfied": bool,
            "domains": [[LEVEL_OR_NULL]],
            "tasks": [str],
        }
    ],
    "refusal": (REFUSAL, None),
}
PLAN: Schema = {
    "version": int,
    "workload": str,
    "kind": str,
    "pool": str,
    "levels": [str],
    "verdict": str,
    "groups": [GROUP],
    "warnings": [{"code": str, "message": str, "line": (int, type(None))}],
    "stats": {"nodes": int, "pool_nodes": int, "pods": int, "elapsed_ms": (int, float)},
}
ERRORS: Schema = {
    "version": int,
    "errors": [
        {
            "code": str,
            "message": str,
            "file": (str, type(None)),
            "line": (int, type(None)),
            "column": (int, type(None)),
            "hint": str,
        }
    ],
}


def breaches(value: Any, schema: Schema, where: str = "$") -> Iterator[str]:
    """Yield every place at which a value has not the keys and types of a schema."""
    if isinstance(schema, dict):
        here = value if isinstance(value, dict) else {}
        keys = {key.rstrip("?"): inner for key, inner in schema.items() if key[-1] != "?" or key[:-1] in here}
        if not isinstance(value, dict) or list(value) != list(keys):
            yield f"{where}: {value!r} has not exactly the keys {list(schema)}"
            return
        for key, inner in keys.items():
            yield from breaches(value[key], inner, f"{where}.{key}")
    elif isinstance(schema, list):
        if not isinstance(value, list):
            yield f"{where}: {value!r} is no list"
            return
        for index, item in enumerate(value):
            yield from breaches(item, schema[0], f"{where}[{index}]")
    elif isinstance(schema, tuple) and schema[-1] is None:
        if value is not None:
            yield from breaches(value, schema[0], where)
    elif not isinstance(value, schema) or (isinstance(value, bool) and schema is not bool):
        yield f"{where}: {value!r} is not of type {schema}"


def holes(value: Any, where: str = "$") -> Iterator[str]:
    """Yield every sentence with a hole in it, and every number below zero."""
    if isinstance(value, str):
        if where.endswith(("message", "change")) and (found := _HOLES.search(value)):
            yield f"{where}: {found[0]!r} in {value!r}"
    elif isinstance(value, int | float) and value < 0:
        yield f"{where}: {value}"
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from holes(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from holes(inner, f"{where}[{index}]")
