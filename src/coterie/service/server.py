"""The HTTP server of the API: addresses, tokens, logs, and graceful shutdown."""

from __future__ import annotations

import gc
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from coterie.errors import Unavailable, UsageError
from coterie.json_log import log_as_json
from coterie.service.addresses import check_address, is_loopback
from coterie.service.api.app import create_app
from coterie.service.api.change_feed import Followers
from coterie.service.http_protocol import TimedProtocol
from coterie.service.isolation import OPEN_TO_ALL, check_isolation
from coterie.service.service import Service
from coterie.service.settings import Settings

# How long requests in progress may continue after a signal to end.
GRACE_S = 5
EVERYWHERE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared, not bound
# How many connections wait to be accepted; asyncio tries that often in a row, even when no handle is left.
_BACKLOG = 256
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# How many objects are new before the youngest are examined, and after how many such rounds the older ones are. With the
# defaults of Python, a fifth of a busy service's processor time went into examining the workflows that it keeps, and
# every request waited meanwhile.
_COLLECTIONS = (10_000, 10, 50)


def serve(
    settings: Settings,
    host: str,
    port: int,
    *,
    names: Collection[str] = (),
    trust_tasks: bool = False,
    announce: Callable[[str], None],
    warn: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until SIGINT or SIGTERM; `announce` gets the URL once it answers, and port 0 takes a free one.

    `warn` gets a sentence for the operator where there are no tokens. `names` are further names under which the service
    is reached. Raises `UsageError` for an address that is not allowed without tokens, and for tasks of several people
    that would run as the service without `trust_tasks`; `Unavailable` for an address that is taken. Tasks keep running
    when it ends.
    """
    log_as_json()
    service = Service(settings)
    try:
        tokens = service.store.tokens()
        check_address(host, tokens=bool(tokens))
        if service.runs_tasks_here():
            owners = {token.owner for token in tokens}
            check_isolation(owners, settings.accounts, settings.state, trusted=trust_tasks)
        with _bound(host, port) as bound:
            url = f"http://{_shown(host)}:{bound.getsockname()[1]}"
            failed: list[OSError] = []

            def started() -> None:
                try:
                    announce(url)
                    if not tokens:
                        warn(OPEN_TO_ALL)
                except OSError as error:
                    failed.append(error)
                    server.should_exit = True

            app = create_app(service, open_to_all=is_loopback(host), hosts=served_names(host, names), started=started)
            config = uvicorn.Config(
                app,
                http=TimedProtocol,
                backlog=_BACKLOG,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE_S,
            )
            server = _Server(config, app.state.followers)
            collect_rarely()
            with server.kept_from_signals():
                service.start()
                server.run(sockets=[bound])
                # A second signal must not end the process before the lease is released.
                service.stop()
            if failed:
                raise _unannounced(failed[0])
    finally:
        service.stop()


def collect_rarely() -> None:
    """Set up this process to collect garbage rarely, and never to examine what it has loaded by now."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTIONS)


def _unannounced(error: OSError) -> Unavailable:
    where = f"{error.filename}: " if error.filename else ""
    hint = "Make room on the disk of its folder, then start it again. Tasks keep running."
    return Unavailable(f"{where}the service cannot write its address: {error.strerror}", hint)


def served_names(host: str, names: Collection[str]) -> frozenset[str] | None:
    """Return the allowed names in a Host header; None where they are unknown, and only tokens protect the service."""
    if host in EVERYWHERE and not names:
        return None
    near = ("localhost", "127.0.0.1", "::1") if is_loopback(host) or host in EVERYWHERE else ()
    return frozenset({host, *names, *near} - {""})


class _Server(uvicorn.Server):
    """A server that ends streams as soon as a signal arrives, and leaves the rest to the caller."""

    def __init__(self, config: uvicorn.Config, followers: Followers) -> None:
        super().__init__(config)
        self._followers = followers

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the shutdown."""
        self._followers.close()
        super().handle_exit(sig, frame)

    @contextmanager
    def kept_from_signals(self) -> Iterator[None]:
        """Let a signal end the server and not the process, also before it runs, and when it is repeated."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self._asked) for each in _SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def _asked(self, _sig: int, _frame: FrameType | None) -> None:
        self._followers.close()
        self.should_exit = True


@contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    if not 0 <= port < 65536:
        raise UsageError(f"there is no port {port}", "Ports are 0 to 65535; 0 takes a free one.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's delay only on sockets that are declared as TCP; on others small answers wait 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, port))
            bound.listen(_BACKLOG)
        except (OSError, UnicodeError) as error:
            said = (error.strerror if isinstance(error, OSError) else None) or str(error)
            hint = "Choose another with --port, or 0 for a free one."
            raise Unavailable(f"cannot listen on {_shown(host)}:{port}: {said}", hint) from None
        yield bound


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
