"""A real server on a free port: a client reconnects and resumes, and a signal shuts it down cleanly."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from coterie.errors import Unavailable, UsageError
from coterie.service.isolation import OPEN_TO_ALL
from coterie.service.server import serve
from tests.eventually import eventually
from tests.service.api.requests import body
from tests.service.running_service import ServiceFolder, single

ROOT = Path(__file__).parents[3]
PATIENCE_S = 60.0
PROGRAM = """
import sys
from contextlib import contextmanager
from pathlib import Path
from coterie.service.server import serve
from tests.service.running_service import ServiceFolder
settings, said = ServiceFolder(Path(sys.argv[1])).settings(), lambda text: print(text, flush=True)
serve(settings, "127.0.0.1", 0, announce=said, warn=said)
print("ended", flush=True)
"""


class ServerProcess:
    """A server in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url, self.process.communicate(timeout=PATIENCE_S)[1]
        self.warning = self.process.stdout.readline().strip()
        self.client = httpx2.Client(base_url=self.url, timeout=PATIENCE_S)

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        self.client.close()
        self.process.send_signal(number)
        said, complained = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, said, complained


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    found = ServerProcess(tmp_path_factory.mktemp("served") / "place")
    yield found
    if found.process.poll() is None:
        found.end()


def metric(served: ServerProcess, name: str) -> float:
    lines = served.client.get("/metrics").text.splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))


def threads(served: ServerProcess) -> int:
    return len(list(Path(f"/proc/{served.process.pid}/task").iterdir()))


def read_events(served: ServerProcess, after: str | None, most: int | None = None) -> list[dict[str, Any]]:
    """Follow the events of talk-1 from where a reader was, to the end or until it has enough."""
    headers = {"accept": "text/event-stream", **({"last-event-id": after} if after else {})}
    found: list[dict[str, Any]] = []
    with served.client.stream("GET", "/api/v1/workflows/talk-1/events", headers=headers) as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            if line == "event: end":
                break
            if line.startswith("data: "):
                found.append(json.loads(line.removeprefix("data: ")))
            if most is not None and len(found) == most:
                break
    return found


@pytest.mark.slow("starts and ends a server in a process of its own")
def test_a_reader_that_lost_its_stream_goes_on_and_misses_nothing(served: ServerProcess, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    wanted = single("talk", f"echo begun; until [ -e {gate} ]; do sleep 0.05; done; echo done")
    assert served.client.post("/api/v1/workflows", json=body(wanted)).status_code == 201
    first = read_events(served, None, most=2)
    assert first[0]["kind"] == "Submitted"
    eventually(lambda: metric(served, "coterie_followers") == 0)
    gate.touch()
    rest = read_events(served, str(first[-1]["seq"]))
    listed = served.client.get("/api/v1/workflows/talk-1/events").json()["items"]
    assert first + rest == listed
    log = served.client.get("/api/v1/workflows/talk-1/logs", params={"task": "t", "follow": "true"})
    assert log.text == "begun\ndone\n"


def test_followers_hold_no_threads_and_leave_none_behind(served: ServerProcess) -> None:
    served.client.post("/api/v1/workflows", json=body(single("long", "echo begun; sleep 600")))
    paths = ["/api/v1/events?follow=true", "/api/v1/workflows/long-1/logs?task=t&follow=true"]
    clients = [httpx2.Client(base_url=served.url, timeout=PATIENCE_S) for _ in range(30)]
    streams = [client.stream("GET", paths[number % 2]) for number, client in enumerate(clients)]
    for stream in streams:
        assert stream.__enter__().status_code == 200
    eventually(lambda: metric(served, "coterie_followers") == 30)
    for client in clients:
        client.close()
    eventually(lambda: metric(served, "coterie_followers") == 0)
    # Routes share a bounded number of threads, whoever follows.
    assert threads(served) < 64 + 20
    served.client.post("/api/v1/workflows/long-1/cancel", json={"force": True})
    # Its task would outlive the server.
    eventually(lambda: served.client.get("/api/v1/workflows/long-1").json()["finished"])


@contextmanager
def followed(url: str) -> Iterator[threading.Event]:
    """Follow all events in a thread; the event is set when the stream has ended as streams do."""
    begun, ended = threading.Event(), threading.Event()

    def follow() -> None:
        with httpx2.stream("GET", f"{url}/api/v1/events?follow=true", timeout=PATIENCE_S) as answer:
            begun.set()
            for _ in answer.iter_bytes():
                pass
        ended.set()

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    assert begun.wait(PATIENCE_S)
    yield ended
    thread.join(PATIENCE_S)


def events(log: str) -> list[str]:
    """Return what a server has logged, except that a busy machine made it slow."""
    return [line["event"] for line in map(json.loads, log.splitlines()) if line.get("what") != "turn"]


@pytest.mark.slow("starts and ends a server in a process of its own")
def test_a_signal_ends_streams_and_server_in_good_order_and_tasks_go_on(tmp_path: Path) -> None:
    first = ServerProcess(tmp_path / "place")
    assert first.warning == OPEN_TO_ALL
    gate = tmp_path / "gate"
    talk = single("talk", f"until [ -e {gate} ]; do sleep 0.05; done; echo done")
    first.client.post("/api/v1/workflows", json=body(talk))
    eventually(lambda: first.client.get("/api/v1/workflows/talk-1").json()["status"] == "RUNNING")
    with followed(first.url) as ended:
        code, said, complained = first.end(signal.SIGTERM)
        assert (code, said) == (0, "ended\n")
        # A stream that had to be cut off would be complained about.
        assert events(complained) == ["request"]
        assert ended.wait(PATIENCE_S)
    gate.touch()
    second = ServerProcess(tmp_path / "place")
    eventually(lambda: bool(second.client.get("/api/v1/workflows/talk-1").json()["finished"]))
    assert second.client.get("/api/v1/workflows/talk-1").json()["status"] == "COMPLETED"
    code, said, complained = second.end(signal.SIGINT)
    assert (code, said, events(complained)) == (0, "ended\n", [])


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1"])  # noqa: S104 - refused
def test_an_address_for_others_is_refused_without_tokens(tmp_path: Path, host: str) -> None:
    with pytest.raises(UsageError, match="no tokens"):
        serve(ServiceFolder(tmp_path / "place").settings(), host, 0, announce=print)


def test_an_address_that_cannot_be_had_is_said(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Unavailable, match="cannot listen on 127"):
            serve(ServiceFolder(tmp_path / "place").settings(), "127.0.0.1", taken.getsockname()[1], announce=print)
    with pytest.raises(UsageError, match="no port"):
        serve(ServiceFolder(tmp_path / "other").settings(), "127.0.0.1", 70000, announce=print)
