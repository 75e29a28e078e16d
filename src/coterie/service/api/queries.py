"""The parameters and fields of the requested operation, by the published schema; unknown ones are refused."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError

from coterie.errors import did_you_mean
from coterie.service.api.access import Who

Json = dict[str, Any]


async def known_query(request: Request, _caller: Who) -> None:
    """Raise for parameters that an operation does not have: a misspelt one would silently have no effect."""
    allowed = parameters_of(request)
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in allowed]
    if unknown:
        raise RequestValidationError(
            [
                {"type": "extra_forbidden", "loc": ("query", name), "msg": "there is no such parameter"}
                for name in unknown
            ]
        )


def parameters_of(request: Request) -> list[str]:
    """Return the names of an operation's query parameters."""
    found = _operation(request).get("parameters", ())
    return [each["name"] for each in found if each["in"] == "query"]


def fields_of(request: Request) -> list[str]:
    """Return the names of the fields in an operation's JSON body."""
    content = _operation(request).get("requestBody", {}).get("content", {})
    return list(_properties(content.get("application/json", {}).get("schema", {}), request.app.openapi()))


def words_for(kind: str, name: str, known: list[str]) -> str:
    """Return the alternatives to an unknown parameter or field."""
    if not known:
        return f"There are no {kind} here."
    return f"{did_you_mean(name, known)} Allowed {kind} are: {', '.join(known)}.".strip()


def _operation(request: Request) -> Json:
    path = getattr(request.scope.get("route"), "path", "")
    found: Json = request.app.openapi()["paths"].get(path, {}).get(request.method.lower(), {})
    return found


def _properties(schema: Json, whole: Json) -> Json:
    """Return the fields of an object; an optional one is the first of its alternatives."""
    if "$ref" in schema:
        return _properties(whole["components"]["schemas"][schema["$ref"].rpartition("/")[2]], whole)
    if "anyOf" in schema:
        return _properties(schema["anyOf"][0], whole)
    found: Json = schema.get("properties", {})
    return found
