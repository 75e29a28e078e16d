"""Faults of an API server that only its database can cause: a history that ends, and objects that cannot be read."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from lab import Lab


def compact(lab: Lab) -> None:
    """Forget the history of all objects up to now."""
    now = _asked(lab, "kv/range", key=_text("/registry/"))["header"]["revision"]
    _asked(lab, "kv/compaction", revision=now, physical=True)


@contextmanager
def unreadable(lab: Lab, plural: str, name: str) -> Iterator[None]:
    """Give an API server an object of a kind of Grove's that it cannot read; it is gone after the block."""
    key = _text(f"/registry/grove.io/{plural}/{name}")
    _asked(lab, "kv/put", key=key, value=_text("not an object"))
    try:
        yield
    finally:
        _asked(lab, "kv/deleterange", key=key)
        # By itself it would wait longer and longer before it reads the kind again.
        restart(lab)


def restart(lab: Lab) -> None:
    """Restart the API server, and wait until it answers."""
    lab.programs["kube-apiserver"].stop()
    lab.programs["kube-apiserver"].start()
    lab.wait(lambda: lab.kubectl("get", "--raw", "/readyz", check=False) == "ok", 120, "the API server is back")


def _asked(lab: Lab, path: str, **body: Any) -> dict[str, Any]:
    option = "--listen-client-urls="
    url = next(each.removeprefix(option) for each in lab.programs["etcd"].command if each.startswith(option))
    answer = httpx2.post(f"{url}/v3/{path}", json=body, trust_env=False, timeout=60)
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


def _text(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
