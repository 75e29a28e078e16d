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
    return _told(_own_folder()).get("url") or DEFAULT_URL


def where_told() -> str:
    """Return, as the end of a sentence, why the service of this machine is looked for where it is."""
    folder = _own_folder()
    if _told(folder).get("url"):
        return f"where the state folder {folder} says it is"
    return f"and the state folder {folder} names no other"


def service_of(config: str) -> str | None:
    """Return where the service of this machine is, if it runs and was started with that configuration file."""
    told = _told(_own_folder())
    try:
        os.kill(int(told["pid"]), 0)
        same = Path(config).samefile(told["config"])
    except (KeyError, ValueError, OSError):
        return None
    return told.get("url") if same else None


def _own_folder() -> Path:
    return state_folder(os.environ.get("COTERIE_STATE"))


def _told(folder: Path) -> dict[str, str]:
    """Return what the service of a folder has written down about itself."""
    try:
        found = json.loads(_file(folder).read_bytes())
    except (OSError, ValueError):
        return {}
    return {key: str(value) for key, value in found.items() if value} if isinstance(found, dict) else {}


@contextmanager
def announced(folder: Path) -> Iterator[Path]:
    """Yield the file in which a service says where it is; it is gone when the service is."""
    file = _file(folder)
    try:
        yield file
    finally:
        if _told(folder).get("pid") == str(os.getpid()):
            file.unlink(missing_ok=True)


def announce(file: Path, url: str, config: str | None = None) -> None:
    """Write down where the service of this process is, and with which configuration file it was started."""
    fresh = file.with_suffix(f".{os.getpid()}")
    known = {"url": url, "pid": os.getpid(), "config": str(Path(config).absolute()) if config else None}
    fresh.write_text(json.dumps(known), encoding="utf-8")
    fresh.replace(file)


def _file(folder: Path) -> Path:
    return folder / "service.json"
