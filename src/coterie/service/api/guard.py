"""The guard before all routes: it refuses foreign hosts, foreign origins, and bodies that are too large.

A page on another site can make a browser send requests here. It cannot choose the Host header, which defeats DNS names
that are made to point at this machine, and it cannot hide the Origin header, which defeats the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coterie.service.api.access import SAFE
from coterie.service.api.errors import body_of

# Answers are data: browsers must not guess another type, cache them, or embed them in a page.
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)

# A name or an address, IPv6 in brackets, and a port; nothing may stand between them.
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]/@]+))(?::[0-9]{1,5})?", re.ASCII)

Refused = tuple[int, str, str, str]


class Guard:
    """ASGI middleware; `hosts` are the names under which the service is reached, None accepts any."""

    def __init__(self, app: ASGIApp, hosts: Collection[str] | None, most_bytes: int) -> None:
        self._app = app
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._most = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in _HEADERS if each[0] not in there)]
            await send(message)

        refused = self._refused(scope, headers)
        if refused is not None:
            await _answer(sealed, *refused)
            return
        await self._app(scope, self._counted(receive), sealed)

    def _refused(self, scope: Scope, headers: dict[str, list[str]]) -> Refused | None:
        hosts = headers.get("host", [])
        host = hosts[0] if len(hosts) == 1 else ""
        if self._hosts is not None and host_name(host) not in self._hosts:
            hint = (
                f"It answers to: {', '.join(sorted(self._hosts))}. Another is allowed with `coterie serve --host-name`."
            )
            return 421, "WrongHost", f'this service is not called "{host_name(host)[:80]}"', hint
        origins = headers.get("origin", [])
        if scope["method"] not in SAFE and any(_authority(origin) != host.lower() for origin in origins):
            hint = "Pages of other sites may not change anything here."
            return 403, "WrongOrigin", f'pages of "{origins[0][:80]}" may not make this request', hint
        lengths = headers.get("content-length", ["0"])
        if not all(length.isascii() and length.isdecimal() for length in lengths):
            return 400, "BadRequest", "the Content-Length header is not a number", "Send the size of the body."
        if any(len(length) > 18 or int(length) > self._most for length in lengths):
            hint = "Send less; large files belong on a disk that tasks can read."
            return 413, "TooLarge", self._large(), hint
        if "\0" in scope["path"] or b"%00" in scope.get("query_string", b""):
            return 400, "BadRequest", "the address holds a NUL character", "Remove %00 from it."
        return None

    def _large(self) -> str:
        return f"the request is larger than {self._most:,} bytes"

    def _counted(self, receive: Receive) -> Receive:
        """Return a receiver that also bounds bodies without an announced size."""
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._most:
                raise HTTPException(413, self._large())
            return message

        return counted


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port; empty for a header of another form."""
    found = _HOST.fullmatch(host)
    return (found[1] or found[2]).lower() if found else ""


def _authority(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


async def _answer(send: Send, status: int, code: str, message: str, hint: str) -> None:
    body = json.dumps({"error": body_of(code, message, hint)}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
