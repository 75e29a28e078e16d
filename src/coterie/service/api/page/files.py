"""The routes of the web page's files.

The document is the same for every address of the page; the page itself reads the address. Nothing in these files is
secret, so they need no token.
"""

from __future__ import annotations

from typing import cast

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException

from coterie.inspection.page_files import MISSING, REMEDY, PageFiles

router = APIRouter(include_in_schema=False)

# Scripts, styles and requests of this origin alone, and nothing inline.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_DOCUMENT = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_NO_DOCUMENTS = ("/api/", "/assets/")
# The name of an asset changes with its content.
_ASSET = {"Cache-Control": "public, max-age=31536000, immutable"}


@router.get("/")
@router.get("/map")
@router.get("/workflows")
@router.get("/workflows/{_workflow}")
@router.get("/plan")
@router.get("/pools")
@router.get("/pools/{_pool}")
async def document(request: Request) -> Response:
    """Return the page, or a line that says how to get it."""
    found = _files(request)
    if found is None:
        return PlainTextResponse(f"{MISSING}. {REMEDY}\n", 404)
    return Response(found.document, media_type="text/html", headers=_DOCUMENT)


def page_for_browser(request: Request) -> Response | None:
    """Return the page, which says that there is nothing at this address, to a browser that shows one to a person.

    Programs do not ask for a document, and the paths of the API and of assets have none.
    """
    found = _files(request)
    wanted = request.method in {"GET", "HEAD"} and "text/html" in request.headers.get("accept", "")
    if found is None or not wanted or request.url.path.startswith(_NO_DOCUMENTS):
        return None
    return Response(found.document, 404, media_type="text/html", headers=_DOCUMENT)


@router.get("/assets/{name}")
async def asset(name: str, request: Request) -> Response:
    """Return a script, a style sheet or a picture of the page."""
    found = _files(request)
    if found is None or name not in found.assets:
        raise HTTPException(404)
    kind, content = found.assets[name]
    return Response(content, media_type=kind, headers=_ASSET)


def _files(request: Request) -> PageFiles | None:
    return cast("PageFiles | None", request.app.state.page)
