"""The single format of errors: code, message, hint, location, all faults of a document, and details for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from coterie.errors import (
    Conflict,
    CoterieError,
    Forbidden,
    Hint,
    NeverFits,
    NotFound,
    PlanStale,
    SpecErrors,
    Unauthorized,
    Unavailable,
    UsageError,
    field_path,
)
from coterie.planning.report import errors_json
from coterie.service.api.hints import for_both, in_api
from coterie.service.api.page.files import page_for_browser
from coterie.service.api.queries import fields_of, parameters_of, words_for
from coterie.service.api.request_faults import problem

Json = dict[str, Any]

SCHEMA = "/api/v1/openapi.json"

# The first match counts.
_STATUS: Sequence[tuple[type[CoterieError], int, str]] = (
    (SpecErrors, 422, "InvalidSpec"),
    (UsageError, 400, "BadRequest"),
    (NotFound, 404, "NotFound"),
    (PlanStale, 409, "PlanStale"),
    (NeverFits, 409, "NeverFits"),
    (Conflict, 409, "Conflict"),
    (Forbidden, 403, "Forbidden"),
    (Unauthorized, 401, "Unauthorized"),
    (Unavailable, 503, "Unavailable"),
)
_INVALID = "InvalidRequest"
_WORDS = {405: "MethodNotAllowed", 413: "TooLarge", 415: "UnsupportedMediaType"}
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "5"}}
_MOST_FAULTS = 100
_LIST = ("workflow", "coterie list")
_POOLS = ("pool", "coterie pool list")
# The object named by the path segment after each of these.
_NAMED = {
    "/api/v1/workflows/": _LIST,
    "/api/v1/pools/": _POOLS,
    "/api/v1/topologies/": _POOLS,
    "/api/workflow/": _LIST,
    "/api/pool/": _POOLS,
}
# Hints for the faults of a request, by the prefix of their type.
_ADVICE = {
    "missing": "It is required.",
    "bool": "Write true or false.",
    "int": "Write a whole number.",
    "datetime": "Write ISO 8601, such as 2026-01-31T12:00:00Z, or seconds since 1970.",
    "json": "Send a JSON object.",
    "string_too_long": "Write less.",
    "too_long": "Send fewer.",
}

_log = structlog.get_logger("coterie.http")


def install(app: FastAPI) -> None:
    """Make an application report every error in this format."""
    app.add_exception_handler(CoterieError, _coterie)
    app.add_exception_handler(RequestValidationError, _request)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unexpected)


def status_of(error: CoterieError) -> tuple[int, str]:
    """Return the status and the code of an error's response."""
    return next(((status, code) for kind, status, code in _STATUS if isinstance(error, kind)), (500, "Unexpected"))


def _coterie(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, CoterieError)  # noqa: S101 - the handler is registered for it alone
    status, code = status_of(error)
    details = error.details if isinstance(error, Conflict) else {}
    if not isinstance(error, SpecErrors):
        return _answer(status, code, str(error), error.hint, details=details, headers=_HEADERS.get(status))
    listed: list[Json] = [
        {**one, **_hint(fault.hint)}
        for fault, one in zip(error.faults, errors_json(error.faults)["errors"], strict=True)
    ]
    place = next((fault.place for fault in error.faults if fault.place), None)
    location = {"file": place.file, "line": place.line, "column": place.column} if place else None
    return _answer(status, listed[0]["code"], str(error), error.faults[0].hint, listed=listed, location=location)


def _request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - the handler is registered for it alone
    nowhere = {"file": None, "line": None, "column": None}
    listed: list[Json] = [
        {
            "code": _INVALID,
            "message": f"{field_path(map(_short, one['loc']))}: {problem(one)}",
            **nowhere,
            **_hint(_advice(one, request)),
        }
        for one in error.errors()[:_MOST_FAULTS]
    ]
    message = "; ".join(one["message"] for one in listed[:3])
    return _answer(422, _INVALID, message, listed[0]["hint"], listed=listed)


def _advice(fault: Mapping[str, Any], request: Request) -> str:
    kind, loc = str(fault["type"]), fault["loc"]
    if kind == "extra_forbidden" and len(loc) == 2:
        known = ("parameters", parameters_of(request)) if loc[0] == "query" else ("fields", fields_of(request))
        return words_for(known[0], str(loc[1])[:80], known[1])
    found = next((words for beginning, words in _ADVICE.items() if kind.startswith(beginning)), "")
    return found or f"See the schema: {SCHEMA}."


def _short(step: str | int) -> str | int:
    return step if isinstance(step, int) else step[:80].encode("utf-8", "replace").decode()


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - the handler is registered for it alone
    if error.status_code == 404:
        page = page_for_browser(request)
        if page is not None:
            return page
        return _coterie(request, _nowhere(request))
    code = _WORDS.get(error.status_code, "BadRequest")
    headers = dict(error.headers) if error.headers else None
    return _answer(error.status_code, code, str(error.detail), f"All paths are listed in {SCHEMA}.", headers=headers)


def _nowhere(request: Request) -> NotFound:
    """Return the message for an unknown path: a name that contains a slash leads to a path without a route."""
    path = request.scope.get("raw_path", b"").decode("latin-1").partition("?")[0] or request.url.path
    for beginning, (what, command) in _NAMED.items():
        name = unquote(path.removeprefix(beginning).partition("/")[0]) if path.startswith(beginning) else ""
        if "/" in name:
            hint = Hint(f'No {what} has a "/" in its name. List them: {command}', command)
            return NotFound(f'there is no {what} "{name[:200]}"', hint)
    return NotFound(f'there is no path "{request.url.path[:200]}"', f"All paths are listed in {SCHEMA}.")


def _gone(_: Request, __: Exception) -> JSONResponse:
    """Answer a client that disconnected while sending; the answer is not read."""
    return _answer(400, "BadRequest", "the request ended too early", "Send it again.")


def _unexpected(request: Request, error: Exception) -> JSONResponse:
    """Answer for an internal error; only the log has the details."""
    _log.error("unexpected", path=request.url.path[:300], error=type(error).__name__)
    return _answer(500, "Unexpected", "the service failed to answer this request", "See its log, and please report it.")


def body_of(code: str, message: str, hint: str) -> Json:
    """Return an error without a located fault, in the single format."""
    return {"code": code, "message": message, **_hint(hint), "location": None, "errors": [], "details": {}}


def _hint(hint: str) -> Json:
    words = in_api(hint)
    return {"hint": for_both(hint, words), "in_api": words}


def _answer(
    status: int,
    code: str,
    message: str,
    hint: str,
    *,
    listed: Sequence[Json] = (),
    location: Json | None = None,
    details: Json | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    error = {
        **body_of(code, message, hint),
        "location": location,
        "errors": list(listed),
        "details": details or {},
    }
    return JSONResponse({"error": error}, status, headers)
