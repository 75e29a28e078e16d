"""Shell completion: names of a service's workflows, tasks, groups and pools, and of configured pools.

The user waits at the keyboard, so there is little time, and any failure means that there are no names. Imports little,
since every command loads it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import typer

Named = tuple[str, str]

_BUDGET_S = 0.3
_MOST = 500


def workflows(ctx: typer.Context, incomplete: str) -> list[Named]:
    """Complete the id of a workflow."""
    return _soon(lambda: _workflows(ctx, incomplete))


def active_workflows(ctx: typer.Context, incomplete: str) -> list[Named]:
    """Complete the id of a workflow that has not finished."""
    return _soon(lambda: _workflows(ctx, incomplete, finished="false"))


def ended_workflows(ctx: typer.Context, incomplete: str) -> list[Named]:
    """Complete the id of a workflow that has finished."""
    return _soon(lambda: _workflows(ctx, incomplete, finished="true"))


def tasks(ctx: typer.Context, incomplete: str) -> list[Named]:
    """Complete ID/TASK: the workflow first, then one of its tasks."""
    return _soon(lambda: _parts(ctx, incomplete, lambda group: group["tasks"]))


def groups(ctx: typer.Context, incomplete: str) -> list[Named]:
    """Complete ID/GROUP: the workflow first, then one of its groups."""
    return _soon(lambda: _parts(ctx, incomplete, lambda group: [group]))


def pools(ctx: typer.Context, incomplete: str) -> list[Named]:
    """Complete the name of a pool of the service."""
    return _soon(lambda: _pools(ctx, incomplete))


def configured_pools(ctx: typer.Context, incomplete: str) -> list[Named]:
    """Complete the name of a pool of the configuration that the call names."""
    return _soon(lambda: _configured(str(ctx.params.get("config") or ""), incomplete))


def _soon(ask: Callable[[], Iterator[Named]]) -> list[Named]:
    """Return the names found within the time limit; none on failure."""
    # Imported before the time limit starts, since imports take time on a busy machine and are not the service's fault.
    from http.client import HTTPException

    from yaml import YAMLError

    from coterie.errors import CoterieError

    found: list[Named] = []

    def look() -> None:
        try:
            found.extend(ask())
        except (CoterieError, OSError, ValueError, LookupError, TypeError, AttributeError, HTTPException, YAMLError):
            found.clear()  # during completion no error messages are wanted

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(_BUDGET_S)
    return [] if thread.is_alive() else found


def _workflows(ctx: typer.Context, incomplete: str, **params: str) -> Iterator[Named]:
    for row in _get(ctx, "workflows", limit=str(_MOST), **params)["items"]:
        if row["id"].startswith(incomplete):
            yield row["id"], f"{row['status']} in {row['pool']}"


def _parts(ctx: typer.Context, incomplete: str, below: Callable[[Any], Any]) -> Iterator[Named]:
    ident, slash, part = incomplete.partition("/")
    if not slash:
        yield from _workflows(ctx, incomplete)
        return
    for group in _get(ctx, f"workflows/{quote(ident, safe='')}")["groups"]:
        for each in below(group):
            if each["name"].startswith(part):
                yield f"{ident}/{each['name']}", each["status"]


def _pools(ctx: typer.Context, incomplete: str) -> Iterator[Named]:
    for pool in _get(ctx, "pools")["items"]:
        if pool["name"].startswith(incomplete):
            yield pool["name"], f"{pool['gpus']['free']} of {pool['gpus']['total']} GPUs free"


def _configured(file: str, incomplete: str) -> Iterator[Named]:
    import yaml

    with open(file, "rb") as stream:  # noqa: PTH123 - pathlib takes longer to import than the file to read
        found = yaml.safe_load(stream)["pools"]
    for name, pool in found.items():
        if str(name).startswith(incomplete):
            yield str(name), f"backend {pool['backend']}"


def _get(ctx: typer.Context, path: str, **params: str) -> Any:  # noqa: ANN401 - JSON of any shape
    """Query the service with the standard library only: a client would take longer to import than to answer."""
    import http.client

    from coterie.cli.inputs.service_location import known_url

    url = urlsplit(str(ctx.params.get("server") or known_url()))
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    token = ctx.params.get("token")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with closing(kind(url.hostname or "", url.port, timeout=_BUDGET_S)) as connection:
        connection.request("GET", f"{url.path.rstrip('/')}/api/v1/{path}?{urlencode(params)}", headers=headers)
        return json.loads(connection.getresponse().read())
