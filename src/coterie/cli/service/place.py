"""Where the service of this machine keeps its state, and where it is reached."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PORT = 8720
DEFAULT_URL = f"http://127.0.0.1:{PORT}"


def state_folder(given: str | None) -> Path:
    """Return the folder of the service: the one that was named, or that of whoever calls."""
    if given:
        return Path(given).absolute()
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser().absolute() / "coterie"


def known_url() -> str:
    """Return where the service that was last started here said it is; the usual address where none said so."""
    try:
        found = json.loads(_file(state_folder(os.environ.get("COTERIE_STATE"))).read_bytes())
    except (OSError, ValueError):
        return DEFAULT_URL
    url = found.get("url") if isinstance(found, dict) else None
    return url if isinstance(url, str) and url else DEFAULT_URL


@contextmanager
def announced(folder: Path) -> Iterator[Path]:
    """Yield the file in which a service says where it is; it is gone when the service is."""
    file = _file(folder)
    try:
        yield file
    finally:
        if _pid(file) == os.getpid():
            file.unlink(missing_ok=True)


def announce(file: Path, url: str) -> None:
    """Write down where the service of this process is."""
    fresh = file.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps({"url": url, "pid": os.getpid()}), encoding="utf-8")
    fresh.replace(file)


def _file(folder: Path) -> Path:
    return folder / "service.json"


def _pid(file: Path) -> int:
    try:
        found = json.loads(file.read_bytes())
        return int(found["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0
