"""`coterie serve`: a service that runs until it is stopped."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from coterie.backends.base.settings import TaskAccounts
from coterie.backends.local.container_paths import check_root
from coterie.backends.local.machine.open_files import raise_limit
from coterie.cli.commands.serve import ServeOptions
from coterie.cli.inputs.service_location import announce, announced, state_folder
from coterie.cli.output.formats import safe
from coterie.cli.output.screen import show
from coterie.config.configuration import read_config
from coterie.document.located import decode, load
from coterie.errors import Fault, SpecErrors, UsageError
from coterie.inspection.page_files import MISSING, REMEDY, built
from coterie.planning.inputs import collect
from coterie.service.clock import SteadyClock
from coterie.service.isolation import task_accounts
from coterie.service.server import serve
from coterie.service.settings import Settings
from coterie.sources.limits import read_bytes


def run(options: ServeOptions) -> None:
    """Serve until interrupted; the URL is the only line on standard output."""
    raise_limit()
    folder = state_folder(options.storage.state)
    check_root(folder.resolve())
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    accounts = _accounts(options, folder)
    if accounts is not None:
        # Its tasks pass through it to their own folders; nobody else can list it, or read what is in it.
        folder.chmod(0o711)
    store = store_of(options.storage.store, folder)
    settings = Settings(
        store,
        folder,
        Path(options.config) if options.config else None,
        processes=options.processes,
        accounts=accounts,
        now=SteadyClock(folder),
    )
    with announced(folder, settings.holder) as file:

        def said(url: str) -> None:
            announce(file, url, settings.holder, options.config)
            show([url])
            typer.echo(safe(f"state in {folder}; Ctrl-C stops the service, and its tasks keep running"), err=True)
            if not built():
                typer.echo(f"{MISSING}. {REMEDY}", err=True)

        serve(
            settings,
            options.host,
            options.port,
            names=options.names,
            trust_tasks=options.trust_tasks,
            announce=said,
            warn=lambda text: typer.echo(text, err=True),
        )


def _accounts(options: ServeOptions, folder: Path) -> TaskAccounts | None:
    """Return the accounts of tasks, of the option or of the configuration; all faults of both are raised at once."""
    faults: list[Fault] = []
    given, named, place = options.task_accounts, "--task-accounts", None
    # A stream can be read once, and the service reads it.
    if (file := options.config) and Path(file).is_file():
        data = collect(faults, lambda: read_bytes(file, sys.stdin.buffer))
        config = None if data is None else collect(faults, lambda: read_config(data, file))
        for backend in config.backends.values() if config and given is None else ():
            if backend.task_accounts is not None:
                given, named = backend.task_accounts, f'task_accounts of backend "{backend.name}"'
                place = load(decode(data or b"", file), file).place(("backends", backend.name, "task_accounts"))
    try:
        found = task_accounts(given, folder, trusted=options.trust_tasks, named=named)
    except UsageError as error:
        if not faults and given is options.task_accounts:
            raise
        said = str(error) if named in str(error) else f"{named}: {error}"
        faults.insert(0, Fault(said, hint=error.hint, place=place))
    if faults:
        raise SpecErrors(faults)
    return found


def store_of(given: str | None, folder: Path) -> str:
    """Return the database of a service: the named one, or a file in its folder."""
    return given or str(folder / "coterie.db")
