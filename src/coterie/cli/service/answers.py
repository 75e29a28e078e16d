"""What the service answers when something is wrong, turned back into the error that it was."""

from __future__ import annotations

import json
from typing import Any

import httpx2

from coterie.errors import CoterieError, Fault, NotFound, Place, Reason, SpecErrors, Unavailable, UsageError
from coterie.frontends.page import Page
from coterie.service.errors import Conflict, Forbidden, Unauthorized

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
_TOKEN_HINT = "Pass --token or set $COTERIE_TOKEN; an admin makes one with `coterie token create`."  # noqa: S105 - no secret


def raise_for(answer: httpx2.Response, url: str, source: bytes = b"") -> None:
    """Raise the error that an answer tells of; `source` is the user's text, from which lines are shown."""
    if answer.status_code < 400:
        if answer.content and "json" not in answer.headers.get("content-type", "") and _expects_json(answer):
            raise _stranger(url)
        return
    error = _error(answer)
    if error is None:
        raise _KINDS.get(answer.status_code, CoterieError)(
            f"{url} answered {answer.status_code}, and not as a Coterie service does", "Check --server."
        )
    message, hint = str(error.get("message", "")), str(error.get("hint") or "")
    if answer.status_code == 422 and error.get("errors"):
        raise SpecErrors([_fault(one, source) for one in error["errors"]])
    if answer.status_code == 401:
        hint = _TOKEN_HINT
    raise _KINDS.get(answer.status_code, CoterieError)(message, hint)


def _expects_json(answer: httpx2.Response) -> bool:
    return "text/event-stream" not in answer.headers.get("content-type", "") and not answer.url.path.endswith("/logs")


def _stranger(url: str) -> CoterieError:
    return CoterieError(f"what answers at {url} is no Coterie service", "Check --server.")


def _error(answer: httpx2.Response) -> Json | None:
    try:
        found = json.loads(answer.content)["error"]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def _fault(one: Json, source: bytes) -> Fault:
    code = one.get("code")
    reason = Reason(code) if code in list(Reason) else Reason.INVALID_SPEC
    return Fault(str(one.get("message", "")), reason, str(one.get("hint") or ""), _place(one, source))


def _place(one: Json, source: bytes) -> Place | None:
    file, line, column = one.get("file"), one.get("line"), one.get("column")
    if not file:
        return None
    if source and line:
        return Page.of(source.decode("utf-8-sig", "replace"), file).place(line, column or 1)
    return Place(file, line, column)
