"""`coterie list`, `show`, `why`, `logs` and `events`: what a service knows."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from coterie.cli.client.client import Client
from coterie.cli.follow.follow import event_line, follow
from coterie.cli.follow.list_watch import watch as watching
from coterie.cli.inputs.labels import parse_labels
from coterie.cli.inputs.service_location import known_url
from coterie.cli.output.expected_start import expectations, within
from coterie.cli.output.formats import Output, safe
from coterie.cli.output.outcome import result_of
from coterie.cli.output.refusals import why_lines
from coterie.cli.output.screen import screen, show, show_as, show_data
from coterie.cli.output.times import parse_span
from coterie.cli.output.workflows import audit_lines, list_lines, warnings, workflow_lines
from coterie.errors import NotFound, Unavailable, UsageError, did_you_mean

Json = dict[str, Any]

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Filter:
    """Which workflows a list is about, as it was written."""

    statuses: tuple[str, ...] = ()
    pool: str | None = None
    owner: str | None = None
    name: str = ""
    labels: tuple[str, ...] = ()
    since: str | None = None
    active: bool = False
    limit: int = 50

    def params(self, now: float) -> Json:
        """Return the filter as the API takes it."""
        return {
            "status": [status.upper() for status in self.statuses],
            "pool": self.pool,
            "owner": self.owner,
            "name": self.name or None,
            "label": [f"{key}={value}" for key, value in parse_labels(self.labels).items()],
            "submitted_after": None if self.since is None else now - parse_span(self.since, "--since"),
            "finished": False if self.active else None,
        }


def list_workflows(client: Client, wanted: Filter, output: Output, *, watch: bool) -> None:
    """Print workflows, the newest first; with `watch`, again whenever one changes."""
    params = wanted.params(time.time())
    if watch and wanted.pool is not None:
        _check_pool(client, wanted.pool)
    if watch:
        watching(client, lambda: _rows(client, params, wanted.limit)[0], output)
        return
    rows, more = _rows(client, params, wanted.limit)
    if not rows and wanted.pool is not None:
        _check_pool(client, wanted.pool)
    now = time.time()
    names = [row["id"] for row in rows]
    show_as(output, rows, names, lambda: _lines(client, rows, now, wide=output is Output.WIDE))
    if more:
        typer.echo(f"there are more than {wanted.limit}; --limit shows more of them", err=True)


def _lines(client: Client, rows: Sequence[Json], now: float, *, wide: bool) -> Iterable[str]:
    expected = expectations(client, rows, now) if wide else None
    return list_lines(rows, screen(), now, expected=expected)


def _check_pool(client: Client, name: str) -> None:
    """Raise `NotFound` for a pool that there is not, which an empty list would not tell."""
    known = [pool["name"] for pool in client.pools()]
    if name not in known:
        listed = f"Pools are: {', '.join(known)}." if known else "There are none."
        raise NotFound(f'there is no pool "{name}"', f"{did_you_mean(name, known)} {listed}".strip())


def _rows(client: Client, params: Json, limit: int) -> tuple[list[Json], bool]:
    found: list[Json] = []
    after = None
    while len(found) < limit:
        page = client.workflows({**params, "after": after, "limit": min(_PAGE, limit - len(found))})
        found += page["items"]
        after = page["next"]
        if after is None:
            return found, False
    return found, True


def show_workflow(client: Client, ident: str, output: Output, *, watch: bool) -> None:
    """Print a workflow with its groups and tasks, and how its placement came out."""
    view = client.workflow(ident)
    if watch:
        _stay(client, ident, output)
    if output in {Output.JSON, Output.YAML}:
        show_data({**view, "placement": client.placement(ident)}, output)
        return
    if output is Output.NAME:
        show([safe(view["id"])])
        return
    style = screen()
    wide = output is Output.WIDE
    show(workflow_lines(view, style, time.time(), wide=wide))
    placement = client.placement(ident)
    if any(group["tasks"] and group["constraints"] for group in placement["groups"]):
        show(["", *audit_lines(placement, style, wide=wide)])
    for line in warnings(view, wide=wide):
        typer.echo(safe(line), err=True)


def _stay(client: Client, ident: str, output: Output) -> None:
    if output in {Output.YAML, Output.NAME}:
        raise UsageError(f"--watch prints tables or JSON, not {output}", "Use -o json: one object for each line.")
    if output is Output.JSON:
        view: Json = {}
        for _ in client.news(ident):
            if (now := client.view(ident)) != view:
                view = now
                show([json.dumps({"type": "workflow", **view})])
    else:
        view = follow(client, ident)
    raise typer.Exit(result_of(view))


def why(client: Client, target: str, output: Output, what_if: Json, *, verbose: bool) -> None:
    """Print why a workflow, or one group of it, waits, or what would become of it if something were different."""
    ident, _, group = target.partition("/")
    counting = verbose or output in {Output.TABLE, Output.WIDE}
    answer = client.why(ident, group or None, {**what_if, **({"verbose": True} if counting else {})})
    names = [f"{ident}/{one['name']}" for one in answer["groups"]]
    wide = output is Output.WIDE
    show_as(output, answer, names, lambda: _why_lines(client, answer, verbose=verbose or wide, wide=wide))


def _why_lines(client: Client, answer: Json, *, verbose: bool, wide: bool) -> Iterable[str]:
    now = time.time()
    spans = {group["name"]: within(client, group, now) for group in answer["groups"]}
    known = {name: span for name, span in spans.items() if span is not None}
    server = [] if client.url == _usual() else ["--server", client.url]
    return why_lines(answer, screen(), now, known, server=server, verbose=verbose, wide=wide)


def _usual() -> str:
    """Return which service a call asks that names none; nothing where there is none."""
    try:
        return (os.environ.get("COTERIE_SERVER") or known_url()).rstrip("/")
    except Unavailable:
        return ""


def events(client: Client, ident: str | None, output: Output, *, follow_on: bool, after: int) -> None:
    """Print what happened, one line for each event; with `follow_on`, as it happens."""
    if output is Output.YAML and follow_on:
        raise UsageError("--follow prints lines or JSON, not YAML", "Use -o json: one object for each line.")
    if output in {Output.JSON, Output.YAML} and not follow_on:
        show_data(client.events(after, ident), output)
        return
    for one in client.stream(after, ident) if follow_on else client.events(after, ident):
        if output is Output.JSON:
            show([json.dumps({"type": "event", **one})])
        elif output is Output.NAME:
            show([str(one["seq"])])
        elif output is Output.WIDE:
            show([safe(f"{one['seq']}  {one['at']}  {one['workflow'] or '-'}  {one['kind']}  {one['message']}")])
        else:
            show(
                [
                    event_line(one)
                    if ident
                    else event_line({**one, "message": f"{one['workflow'] or '-'}: {one['message']}"})
                ]
            )
