"""One shape for every error: code, message, hint, location, and all faults of a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from coterie.errors import CoterieError, Fault, NotFound, SpecErrors, Unavailable, UsageError, field_path
from coterie.planning.report import errors_json
from coterie.service.errors import Conflict, Forbidden, Unauthorized

SCHEMA = "/api/v1/openapi.json"

# The first that fits counts.
_STATUS: Sequence[tuple[type[CoterieError], int, str]] = (
    (SpecErrors, 422, "InvalidSpec"),
    (UsageError, 400, "BadRequest"),
    (NotFound, 404, "NotFound"),
    (Conflict, 409, "Conflict"),
    (Forbidden, 403, "Forbidden"),
    (Unauthorized, 401, "Unauthorized"),
    (Unavailable, 503, "Unavailable"),
)
_WORDS = {404: "NotFound", 405: "MethodNotAllowed", 413: "TooLarge", 415: "UnsupportedMediaType"}
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "5"}}
_MOST_FAULTS = 100

_log = structlog.get_logger("coterie.http")


def install(app: FastAPI) -> None:
    """Let an application answer with this shape, whatever goes wrong."""
    app.add_exception_handler(CoterieError, _coterie)
    app.add_exception_handler(RequestValidationError, _request)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unexpected)


def status_of(error: CoterieError) -> tuple[int, str]:
    """Return the status and the code with which an error is answered."""
    return next(((status, code) for kind, status, code in _STATUS if isinstance(error, kind)), (500, "Unexpected"))


def _coterie(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, CoterieError)  # noqa: S101 - the handler is registered for it alone
    status, code = status_of(error)
    faults = error.faults if isinstance(error, SpecErrors) else ()
    return _answer(status, code, str(error), error.hint, faults, _HEADERS.get(status))


def _request(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - the handler is registered for it alone
    listed = error.errors()[:_MOST_FAULTS]
    faults = [Fault(f"{field_path(map(_short, one['loc']))}: {one['msg']}") for one in listed]
    hint = f"What is expected is written in {SCHEMA}."
    return _answer(422, "InvalidRequest", "; ".join(fault.message for fault in faults[:3]), hint, faults)


def _short(step: str | int) -> str | int:
    return step if isinstance(step, int) else step[:80].encode("utf-8", "replace").decode()


def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - the handler is registered for it alone
    code = _WORDS.get(error.status_code, "BadRequest")
    headers = dict(error.headers) if error.headers else None
    return _answer(error.status_code, code, str(error.detail), f"All paths are listed in {SCHEMA}.", (), headers)


def _gone(_: Request, __: Exception) -> JSONResponse:
    """Answer a client that went away while it was sending; nobody reads it."""
    return _answer(400, "BadRequest", "the request ended too early", "Send it again.", ())


def _unexpected(request: Request, error: Exception) -> JSONResponse:
    """Answer for a fault of the service itself; only its log says more."""
    _log.error("unexpected", path=request.url.path[:300], error=type(error).__name__)
    return _answer(500, "Unexpected", "the service failed on this request", "Its log says more; please report it.", ())


def _answer(
    status: int, code: str, message: str, hint: str, faults: Sequence[Fault], headers: dict[str, str] | None = None
) -> JSONResponse:
    listed: list[dict[str, Any]] = errors_json(faults)["errors"] if faults else []
    place = next((fault.place for fault in faults if fault.place), None)
    location = {"file": place.file, "line": place.line, "column": place.column} if place else None
    if faults and code == "InvalidSpec":
        code = faults[0].code.value
        hint = hint or faults[0].hint
    error = {"code": code, "message": message, "hint": hint, "location": location, "errors": listed}
    return JSONResponse({"error": error}, status, headers)
