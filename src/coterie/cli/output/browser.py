"""A document in a browser of this machine, served on a port of the loopback interface until the command is ended."""

from __future__ import annotations

import os
import secrets
import sys
import webbrowser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import typer

from coterie.cli.output.screen import show

_HOST = "127.0.0.1"
_IDLE_S = 30.0


def browse(document: bytes) -> None:
    """Serve a document until Ctrl-C, print its URL, and open it where there is a browser.

    The URL contains a secret, and requests under another name of the host are refused, so that neither other users of
    this machine nor web pages in the same browser can read the document.
    """
    path = f"/{secrets.token_urlsafe(12)}/"
    with _Server((_HOST, 0), _handler(document, path)) as server:
        url = f"http://{_HOST}:{server.server_port}{path}"
        show([url])
        typer.echo("Ctrl-C ends it", err=True)
        if _has_browser():
            webbrowser.open(url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo(err=True)


class _Server(ThreadingHTTPServer):
    """A server whose connections end with it, and that says nothing about those that break."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base class has it
        del request, client_address


def _handler(document: bytes, path: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers for the one document."""

        timeout = _IDLE_S

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - as the base class has it
            del format, args

        def _answer(self, *, with_body: bool) -> None:
            port = cast("_Server", self.server).server_port
            known = self.headers.get("Host") in {f"{_HOST}:{port}", f"localhost:{port}"}
            found = known and self.path.partition("?")[0] == path
            body = document if found else b"There is nothing here; the address is in the terminal.\n"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8" if found else "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            if with_body:
                self.wfile.write(body)

    return Handler


def _has_browser() -> bool:
    """Return whether there is a browser with a window of its own; one in the terminal would be in the way."""
    named = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform in {"darwin", "win32"} or any(os.environ.get(name) for name in named)
