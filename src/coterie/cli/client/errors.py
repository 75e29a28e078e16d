"""The errors of the service, turned back into exceptions."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx2

from coterie.document.page import Page
from coterie.errors import (
    Conflict,
    CoterieError,
    Fault,
    Forbidden,
    NeverFits,
    NotFound,
    Place,
    PlanStale,
    Reason,
    SpecErrors,
    Unauthorized,
    Unavailable,
    UsageError,
)
from coterie.service.api.hints import for_commands

Json = dict[str, Any]

_KINDS: dict[int, type[CoterieError]] = {
    400: UsageError,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: Unavailable,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}
_CONFLICTS: dict[str, type[Conflict]] = {"PlanStale": PlanStale, "NeverFits": NeverFits}
_WORD = re.compile(r"[^\s,:{}\[\]]+")
_TOKEN_HINT = "Pass --token or set $COTERIE_TOKEN; an admin can create one with `coterie token create`."  # noqa: S105 - no secret


def raise_for(answer: httpx2.Response, url: str, page: Page | None = None) -> None:
    """Raise the error in an answer; `page` is the user's text, from which lines are shown."""
    if answer.status_code < 400:
        if answer.content and "json" not in answer.headers.get("content-type", "") and _expects_json(answer):
            raise _stranger(url)
        return
    error = _error(answer)
    if error is None:
        raise _KINDS.get(answer.status_code, CoterieError)(
            f"{url} answered {answer.status_code}, which is not an answer of a Coterie service", "Check --server."
        )
    message, hint = str(error.get("message", "")), _hint(error)
    if answer.status_code == 422 and error.get("errors"):
        raise SpecErrors([_fault(one, page) for one in error["errors"]])
    if (conflict := _CONFLICTS.get(str(error.get("code")))) is not None:
        raise conflict(message, hint, error.get("details"))
    if answer.status_code == 401:
        hint = _TOKEN_HINT
    raise _KINDS.get(answer.status_code, CoterieError)(message, hint)


def _expects_json(answer: httpx2.Response) -> bool:
    return "text/event-stream" not in answer.headers.get("content-type", "") and not answer.url.path.endswith("/logs")


def _stranger(url: str) -> CoterieError:
    return CoterieError(f"the server at {url} is not a Coterie service", "Check --server.")


def _error(answer: httpx2.Response) -> Json | None:
    try:
        found = json.loads(answer.content)["error"]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def _hint(error: Json) -> str:
    """Return a hint without its part for direct API callers."""
    return for_commands(str(error.get("hint") or ""), error.get("in_api") or ())


def _fault(one: Json, page: Page | None) -> Fault:
    code = one.get("code")
    reason = Reason(code) if code in list(Reason) else Reason.INVALID_SPEC
    return Fault(str(one.get("message", "")), reason, _hint(one), _place(one, page))


def _place(one: Json, page: Page | None) -> Place | None:
    """Return the place of a fault, with its lines where they are those of the page: a template's are not the file's."""
    file, line, column = one.get("file"), one.get("line"), one.get("column") or 1
    if not file:
        return None
    if page is None or not line or file != page.file:
        return Place(file, line, one.get("column"))
    source = Page(file, page.shown or page.lines)  # places in a template are those of the user's file
    text = source.lines[line - 1] if line <= len(source.lines) else ""
    word = _WORD.match(text, column - 1)
    return source.place(line, column, len(word[0]) if word else 1)
