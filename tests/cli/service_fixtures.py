"""A separate service for the tests of its clients, and workflows for it to run."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import CLUSTER, PROGRAM, TIMEOUT_S, Done, call, environment

CONFIG = """\
backends:
  here: {scheduler: local, cluster: cluster.yaml}
pools:
  lab:
    backend: here
    topology_keys:
    - {key: zone, label: topology.kubernetes.io/zone}
    - {key: rack, label: topology.kubernetes.io/rack}
"""


def flow(script: str = "echo hello", *, name: str = "wf", tasks: int = 1, gpus: int = 4, more: str = "") -> str:
    """Return a workflow whose tasks run a shell script and must share a rack."""
    command = f"command: [sh, -c, {json.dumps(script)}]"
    listed = "".join(
        f"    - {{name: t{number}, image: i, lead: {str(number == 0).lower()}, {command}}}\n" for number in range(tasks)
    )
    resources = f"  resources:\n    default: {{gpu: {gpus}, topology: [{{key: rack}}]}}\n"
    return f"workflow:\n  name: {name}\n{more}  groups:\n  - name: g\n    tasks:\n{listed}{resources}"


@dataclass(frozen=True)
class ServiceFixture:
    """A service that runs, and a folder for files."""

    url: str
    folder: Path

    def file(self, name: str, text: str) -> Path:
        """Write a file and return its path."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def call(self, *arguments: str | Path, stdin: bytes = b"") -> Done:
        """Run a command against the service."""
        return call(*arguments, stdin=stdin, COTERIE_SERVER=self.url)

    def data(self, *arguments: str | Path) -> Any:
        """Run a command with JSON output and return what it prints."""
        done = self.call(*arguments, "-o", "json")
        assert done.out, done.err
        return json.loads(done.out)

    def submit(self, script: str = "echo hello", *options: str, name: str = "wf", tasks: int = 1, gpus: int = 4) -> str:
        """Submit a workflow and return its id."""
        file = self.file(f"{name}.yaml", flow(script, name=name, tasks=tasks, gpus=gpus))
        done = self.call("submit", file, *options)
        assert done.code == 0, done.err
        return done.out.strip()

    def finished(self, ident: str) -> str:
        """Wait until a workflow has finished, and return its status."""
        self.call("wait", ident, "--timeout", "2m")
        found = self.data("show", ident)
        assert "status" in found, found
        return str(found["status"])


def unused_port() -> int:
    """Return a port that nobody else is given meanwhile: a free one outside of those that the system gives."""
    first, _ = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()
    for port in random.sample(range(10_000, int(first)), 1000):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


def serving(folder: Path, port: int = 0) -> AbstractContextManager[tuple[str, subprocess.Popen[str]]]:
    """Run a service on the files of a folder; yield its URL, and its process."""
    return served(folder / "state", "--config", folder / "coterie.yaml", port=port)


@contextmanager
def served(state: Path, *options: str | Path, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run a service in a folder, by default on a free port; yield its URL, and its process."""
    with subprocess.Popen(
        [*PROGRAM, "serve", "--port", str(port), "--state", state, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
        text=True,
    ) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(TIMEOUT_S)


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceFixture]:
    """Start a service with one pool of two racks."""
    folder = furnished(tmp_path_factory.mktemp("hall"))
    with serving(folder) as (url, _):
        yield ServiceFixture(url, folder)


def furnished(folder: Path) -> Path:
    """Write the files of a service with one pool of two racks."""
    (folder / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    (folder / "coterie.yaml").write_text(CONFIG, encoding="utf-8")
    return folder
