"""A server in a process of its own, with small limits, and its resources as the system reports them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
PROGRAM = """
import resource, sys
from pathlib import Path
from coterie.service import http_protocol
from coterie.service.api import change_feed
from coterie.service.server import serve
from tests.service.running_service import ServiceFolder
folder, head_s, streams, files = sys.argv[1:]
http_protocol.HEAD_S, change_feed.MOST = float(head_s), int(streams)
resource.setrlimit(resource.RLIMIT_NOFILE, (int(files), int(files)))
serve(ServiceFolder(Path(folder)).settings(), "127.0.0.1", 0, announce=lambda url: print(url, flush=True))
"""


@dataclass(frozen=True, slots=True)
class Served:
    """A running server."""

    process: subprocess.Popen[str]
    client: httpx2.Client
    log: Path

    def connected(self) -> socket.socket:
        """Return a new connection."""
        return socket.create_connection(("127.0.0.1", self.client.base_url.port or 0), timeout=PATIENCE_S)

    def processor_s(self) -> float:
        """Return the processor time of the server so far."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def workers(self) -> set[int]:
        """Return the processes that compute for requests."""
        lists = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        children = {int(pid) for listed in lists for pid in listed.read_text().split()}
        return {pid for pid in children if b"work_process" in _command(pid)}


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@contextmanager
def served(folder: Path, *, head_s: float = 60.0, streams: int = 500, files: int = 4096) -> Iterator[Served]:
    """Start a server, and end it."""
    log = folder / "log"
    with ExitStack() as stack:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(folder / "place"), str(head_s), str(streams), str(files)],
            stdout=subprocess.PIPE,
            stderr=stack.enter_context(log.open("w")),
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        stack.enter_context(process)
        stack.callback(process.send_signal, signal.SIGTERM)
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url, log.read_text()
        client = stack.enter_context(httpx2.Client(base_url=url, timeout=PATIENCE_S))
        yield Served(process, client, log)
