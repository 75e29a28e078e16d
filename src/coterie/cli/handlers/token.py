"""`coterie token`: the tokens of a service, written to its store directly."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import typer

from coterie.cli.commands.token import TokenCreateOptions
from coterie.cli.handlers.serve import store_of
from coterie.cli.inputs.service_location import state_folder
from coterie.cli.inputs.service_options import StorageOptions
from coterie.cli.output.formats import Output
from coterie.cli.output.screen import show, show_as, show_data
from coterie.cli.output.times import parse_span
from coterie.errors import NotFound, did_you_mean
from coterie.rendering.text import table, visible
from coterie.service.security import new_token
from coterie.store import Store, Token


def create(options: TokenCreateOptions) -> None:
    """Create a token and print it."""
    now = time.time()
    name, role, output = options.name, options.role, options.output
    until = None if options.expires is None else now + parse_span(options.expires, "--expires")
    with _store(options.storage) as store:
        first = not store.tokens()
        text = new_token(store, name, role, now=now, expires=until)
    if first:
        said = "this is the first token: from now on every caller needs one, on this machine too"
        typer.echo(f"warning[FirstToken]: {said}", err=True)
    if output in {Output.JSON, Output.YAML}:
        show_data({"name": name, "role": role, "token": text, "expires": _when(until)}, output)
    else:
        show([text])


def list_all(storage: StorageOptions, output: Output) -> None:
    """Print all tokens without their secrets."""
    with _store(storage) as store:
        found = store.tokens()
    match output:
        case Output.JSON | Output.YAML:
            show_data([_json(one) for one in found], output)
        case Output.NAME:
            show(visible(one.name) for one in found)
        case _ if not found:
            show(["There are no tokens: anyone on this machine has full access."])
        case _:
            rows = [("NAME", "ROLE", "CREATED", "EXPIRES")]
            rows += [
                (visible(one.name), one.role, _when(one.created_at) or "", _when(one.expires_at) or "never")
                for one in found
            ]
            show(table(rows))


def delete(name: str, storage: StorageOptions, output: Output) -> None:
    """Delete a token by its name or id."""
    with _store(storage) as store:
        known = {one.name: one.id for one in store.tokens()}
        ident = known.get(name, name)
        if ident not in known.values():
            raise NotFound(f'there is no token "{name}"', did_you_mean(name, known) or "See `coterie token list`.")
        store.delete_token(ident)
    show_as(output, {"id": ident, "name": name, "deleted": True}, [name], lambda: [f"{visible(name)} deleted"])


@contextmanager
def _store(storage: StorageOptions) -> Iterator[Store]:
    state, store = storage.state, storage.store
    folder = state_folder(state)
    if store is None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with Store.open(store_of(store, folder)) as opened:
        yield opened


def _json(one: Token) -> dict[str, str | None]:
    return {
        "id": one.id,
        "name": one.name,
        "role": one.role,
        "owner": one.owner,
        "created": _when(one.created_at),
        "expires": _when(one.expires_at),
    }


def _when(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
