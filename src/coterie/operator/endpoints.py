"""Health, readiness and metrics over HTTP, and a server that runs beside the controllers in a thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from ssl import SSLContext

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from coterie.errors import Unavailable, UsageError

_STOP_S = 5.0
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def status_app(alive: Callable[[], str], ready: Callable[[], str], metrics: Callable[[], bytes]) -> ASGIApp:
    """Return the application; `alive` and `ready` give the reason why not, or an empty string."""

    async def health(_: Request) -> Response:
        return _verdict(alive())

    async def readiness(_: Request) -> Response:
        return _verdict(ready())

    async def numbers(_: Request) -> Response:
        return Response(metrics(), media_type=_METRICS_TYPE)

    return Starlette(routes=[Route("/healthz", health), Route("/readyz", readiness), Route("/metrics", numbers)])


def _verdict(problem: str) -> Response:
    return PlainTextResponse(f"{problem}\n" if problem else "ok\n", status_code=503 if problem else 200)


def address_of(text: str, option: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT; raise UsageError for anything else."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise UsageError(f'{option} takes HOST:PORT, not "{text}"', f"Example: {option} 127.0.0.1:9443")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - an address without a host means every interface


class ServerThread:
    """An HTTP server in a thread of its own; `port` is the one that it listens on."""

    def __init__(self, app: ASGIApp, host: str, port: int, tls: SSLContext | None = None) -> None:
        self._socket = _bound(host, port)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=int(_STOP_S),
        )
        config.load()
        # uvicorn takes certificates as files only; a context can get new ones while the server runs.
        config.ssl = tls
        self._server = _Unsignalled(config)
        self._thread = threading.Thread(target=self._run, name=f"http-{self.port}", daemon=True)

    def start(self) -> None:
        """Start to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what is being answered, and end."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(2 * _STOP_S)
        self._socket.close()

    @property
    def running(self) -> bool:
        """Whether the server runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])


class _Unsignalled(uvicorn.Server):
    """A server that leaves signals to the operator."""


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's delay only on sockets that are declared as TCP.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(256)
    except (OSError, UnicodeError) as error:
        bound.close()
        said = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise Unavailable(
            f"cannot listen on {host}:{port}: {said}", "Choose another port, or 0 for a free one."
        ) from None
    return bound
