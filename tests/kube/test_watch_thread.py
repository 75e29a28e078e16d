"""A watch in a thread: over a real connection, stopped at once, and with its final error reported."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from lightkube.config.kubeconfig import KubeConfig
from lightkube.config.models import Cluster, User

from coterie.errors import Unavailable
from coterie.kube.api import Api
from coterie.kube.cache import CacheChange
from coterie.kube.errors import ApiForbidden
from coterie.kube.kinds import POD
from coterie.kube.reads import ObjectQuery
from coterie.kube.watch import WatchTiming
from coterie.kube.watch_thread import WatchThread
from coterie.kube.wire import Identified
from tests.eventually import eventually
from tests.kube.faulty_transport import Script, api, event, page, status, stream, thing

HASTE = WatchTiming(first_wait_s=0.001, longest_wait_s=0.01)
PATIENCE_S = 120.0


class Silent(ThreadingHTTPServer):
    """A server whose watches say one thing and then nothing, with the connection open."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.watches = 0
        self.over = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, Silent)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        if "watch" not in parse_qs(urlsplit(self.path).query):
            body = page([thing("a", 5)], 5).content
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        line = event("ADDED", thing("b", 6))
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.flush()
        self.server.watches += 1
        self.server.over.wait(PATIENCE_S)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def silent_server() -> Iterator[tuple[Silent, Api]]:
    server = Silent()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    config = KubeConfig.from_one(cluster=Cluster(server=url, insecure=True), user=User()).get()
    assert config is not None
    try:
        with Api(config) as connection:
            yield server, connection
    finally:
        server.over.set()
        server.shutdown()
        thread.join(PATIENCE_S)
        server.server_close()


def test_a_watch_that_waits_for_a_silent_server_is_stopped_at_once() -> None:
    with silent_server() as (server, connection):
        watching = WatchThread(connection, ObjectQuery(POD), Identified, pace=HASTE)
        with watching:
            watching.wait_known(PATIENCE_S)
            eventually(lambda: len(watching.entries()) == 2)
            begun = time.monotonic()
        took = time.monotonic() - begun

    assert not watching.running
    # The server would be silent for two minutes.
    assert took < PATIENCE_S / 2
    assert server.watches == 1
    assert sorted(name for _, name in watching.entries()) == ["a", "b"]


def test_a_watch_that_waits_before_trying_again_is_stopped_at_once() -> None:
    watching = WatchThread(
        api(Script([status(500, message="down")])),
        ObjectQuery(POD),
        Identified,
        pace=WatchTiming(first_wait_s=2 * PATIENCE_S, longest_wait_s=2 * PATIENCE_S),
    )
    with watching:
        eventually(lambda: watching.error is not None)
        begun = time.monotonic()

    assert time.monotonic() - begun < PATIENCE_S / 2
    assert not watching.running


def test_changes_are_told_in_order_when_they_can_be_seen() -> None:
    told: list[tuple[str, bool]] = []

    def heard(change: CacheChange[Identified]) -> None:
        told.append((f"{change.did} {change.entry.meta.name}", change.entry.key in watching.entries()))

    answers = iter(
        [
            page([thing("a", 5)], 5),
            stream(event("ADDED", thing("b", 6)), event("MODIFIED", thing("a", 7)), event("DELETED", thing("b", 8))),
        ]
    )
    watching = WatchThread(
        api(lambda _: next(answers, status(500))), ObjectQuery(POD), Identified, on_change=heard, pace=HASTE
    )
    with watching:
        eventually(lambda: len(told) == 4)

    assert told == [("added a", True), ("added b", True), ("modified a", True), ("deleted b", False)]


def test_whoever_asks_learns_what_ended_the_watch() -> None:
    def spoiled(_: CacheChange[Identified]) -> None:
        raise ZeroDivisionError

    with WatchThread(api(Script([page([thing("a")])])), ObjectQuery(POD), Identified, on_change=spoiled) as watching:
        with pytest.raises(ZeroDivisionError):
            watching.wait_known(PATIENCE_S)
        with pytest.raises(ZeroDivisionError):
            watching.entries()


def test_waiting_ends_with_what_prevents_the_watch() -> None:
    forbidden = status(403, "Forbidden", 'User "u" cannot list')
    with (
        WatchThread(api(Script([forbidden])), ObjectQuery(POD), Identified, pace=HASTE) as watching,
        pytest.raises(ApiForbidden),
    ):
        watching.wait_known(PATIENCE_S)


def test_waiting_ends_with_the_trouble_that_does_not_pass() -> None:
    down = httpx2.ConnectError("connection refused")
    with WatchThread(api(Script([down])), ObjectQuery(POD), Identified, pace=HASTE) as watching:
        eventually(lambda: watching.error is not None)
        with pytest.raises(Unavailable, match="cannot be reached"):
            watching.wait_known(0.01)


def test_a_watch_can_be_stopped_by_what_it_tells() -> None:
    def enough(_: CacheChange[Identified]) -> None:
        watching.stop()

    watching = WatchThread(api(Script([page([thing("a")])])), ObjectQuery(POD), Identified, on_change=enough)
    with watching:
        eventually(lambda: not watching.running)
