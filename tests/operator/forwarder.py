"""A forwarder to an API server, which a test can close."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import yaml

from lab import Lab


def server_port(lab: Lab) -> int:
    """Return the port of a lab's API server."""
    url: str = yaml.safe_load(lab.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    port = urlsplit(url).port
    assert port is not None
    return port


class Forwarder:
    """A port of this machine that leads to another one while the way is open."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._way = threading.Event()
        self._way.set()
        self._over = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over = True
        self.cut()
        self._way.set()
        self._listener.close()

    def kubeconfig(self, lab: Lab, folder: Path) -> Path:
        """Return a kubeconfig of the lab that takes this way."""
        found = yaml.safe_load(lab.kubeconfig.read_text())
        found["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        path = folder / "forwarded"
        path.write_text(yaml.safe_dump(found))
        return path

    def cut(self) -> None:
        """End every connection, and let new ones wait."""
        with self._lock:
            self._way.clear()
            for each in self._open:
                _end(each)
            self._open.clear()

    def restore(self) -> None:
        """Let connections through again."""
        self._way.set()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        self._way.wait(60)
        try:
            far = socket.create_connection(("127.0.0.1", self._target), timeout=10)
        except OSError:
            _end(near)
            return
        far.settimeout(None)
        with self._lock:
            if self._over or not self._way.is_set():
                _end(near)
                _end(far)
                return
            self._open |= {near, far}
        threading.Thread(target=_pump, args=(near, far), daemon=True).start()
        _pump(far, near)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    _end(source)
    _end(sink)


def _end(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
