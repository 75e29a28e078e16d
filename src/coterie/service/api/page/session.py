"""The session of a browser: its token in a cookie that scripts cannot read and other sites cannot use."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from coterie.service.api.access import Who, answer, session_cookie
from coterie.service.api.models import state as models

router = APIRouter(prefix="/api/v1", tags=["session"])


@router.post("/session", response_model=models.Identity)
async def sign_in(request: Request, caller: Who) -> Response:
    """Keep the token of this request's Authorization header in a cookie, for the web page; it ends with the browser."""
    found = answer({"name": caller.name, "role": caller.role})
    token = request.headers.get("authorization", "").partition(" ")[2].strip()
    if token:
        found.set_cookie(session_cookie(request), token, httponly=True, samesite="strict", secure=_secure(request))
    return found


@router.delete("/session", status_code=204)
async def sign_out(request: Request) -> Response:
    """Forget the token of this browser; the token itself stays valid."""
    found = Response(status_code=204)
    found.delete_cookie(session_cookie(request), httponly=True, samesite="strict", secure=_secure(request))
    return found


def _secure(request: Request) -> bool:
    return request.url.scheme == "https"
