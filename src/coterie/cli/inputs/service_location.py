"""The state folder and the URL of this machine's service."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from coterie.errors import Unavailable
from coterie.service.driver.election.replica import is_gone

PORT = 8720
DEFAULT_URL = f"http://127.0.0.1:{PORT}"

_STARTING = f"Start one with `coterie serve`, or name another with --server or $COTERIE_SERVER, such as {DEFAULT_URL}."


@dataclass(frozen=True, slots=True)
class ServiceRecord:
    """The announcement of a service in its folder."""

    file: Path
    url: str
    holder: str
    config: str

    @property
    def gone(self) -> bool:
        """Return whether the service has certainly ended without removing its announcement."""
        return is_gone(self.holder)


def state_folder(given: str | None) -> Path:
    """Return the folder of the service: the named one, or the caller's default."""
    if given:
        return Path(given).absolute()
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser().absolute() / "coterie"


def known_url() -> str:
    """Return the URL of this machine's service: of those in the state folder, the one that was started first.

    A user with a folder means its service and no other: another one must not get their requests or token. So the
    default address is used only where there is no folder at all, and none was named.
    """
    named = os.environ.get("COTERIE_STATE")
    folder = state_folder(named)
    found = service_records(folder)
    if running := [each for each in found if not each.gone]:
        return running[0].url
    if found:
        raise Unavailable(f"the service of the state folder {folder} is gone; it was at {found[-1].url}", _STARTING)
    if named or folder.exists():
        raise Unavailable(f"no service runs in the state folder {folder}", _STARTING)
    return DEFAULT_URL


def address_source() -> str:
    """Return, as the end of a sentence, the source of the service's address."""
    folder = state_folder(os.environ.get("COTERIE_STATE"))
    if service_records(folder):
        return f"where the state folder {folder} says it is"
    return f"where one usually is, and there is no state folder {folder}"


def service_of(config: str) -> str | None:
    """Return the URL of this machine's service, if it runs and was started with that configuration file."""
    for each in service_records(state_folder(os.environ.get("COTERIE_STATE"))):
        with suppress(OSError):
            if not each.gone and each.config and Path(config).samefile(each.config):
                return each.url
    return None


def service_records(folder: Path) -> list[ServiceRecord]:
    """Return the announcements of services in a folder, the first started one first."""
    found: list[tuple[int, ServiceRecord]] = []
    for file in folder.glob("service.*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            known = json.loads(file.read_bytes())
            said = ServiceRecord(file, str(known["url"]), str(known["holder"]), str(known["config"] or ""))
            found.append((file.stat().st_mtime_ns, said))
    return [said for _, said in sorted(found, key=lambda each: each[0])]


@contextmanager
def announced(folder: Path, holder: str) -> Iterator[Path]:
    """Yield the file of a service's announcement; it is the service's own, and removed when the service ends."""
    file = folder / f"service.{holder.rpartition('/')[2]}.json"
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


def announce(file: Path, url: str, holder: str, config: str | None = None) -> None:
    """Write the URL of this process's service, and the configuration file it was started with.

    Announcements of ended services are removed: those whose process is gone, and any other at this URL.
    """
    fresh = file.with_suffix(".new")
    known = {"url": url, "holder": holder, "config": str(Path(config).absolute()) if config else None}
    fresh.write_text(json.dumps(known), encoding="utf-8")
    fresh.replace(file)
    for other in service_records(file.parent):
        if other.file != file and (other.gone or other.url == url):
            other.file.unlink(missing_ok=True)
