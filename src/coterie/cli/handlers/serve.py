"""`coterie serve`: the service for everybody, until it is told to stop."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from coterie.backends.local.container_paths import check_root
from coterie.backends.local.open_files import raise_limit
from coterie.cli.inputs.service_location import announce, announced, state_folder
from coterie.cli.output.formats import safe
from coterie.cli.output.screen import show
from coterie.service.server import serve
from coterie.service.settings import Settings


@dataclass(frozen=True, slots=True)
class Ask:
    """A call of `coterie serve` as it was written."""

    config: str | None
    state: str | None
    store: str | None
    host: str
    port: int
    names: tuple[str, ...]
    processes: int


def run(ask: Ask) -> None:
    """Serve until interrupted. The URL is the only line on standard output."""
    raise_limit()
    folder = state_folder(ask.state)
    check_root(folder.resolve())
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    store = store_of(ask.store, folder)
    settings = Settings(store, folder, Path(ask.config) if ask.config else None, processes=ask.processes)
    with announced(folder, settings.holder) as file:

        def said(url: str) -> None:
            announce(file, url, settings.holder, ask.config)
            show([url])
            typer.echo(safe(f"state in {folder}; Ctrl-C stops the service, and its tasks go on running"), err=True)

        serve(settings, ask.host, ask.port, names=ask.names, announce=said)


def store_of(given: str | None, folder: Path) -> str:
    """Return the database of a service: the one that was named, or a file in its folder."""
    return given or str(folder / "coterie.db")
