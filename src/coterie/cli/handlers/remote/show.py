"""`coterie show`: a workflow with its groups and tasks, once or continuously."""

from __future__ import annotations

import json
import time
from typing import Any

import typer

from coterie.cli.client.client import Client
from coterie.cli.follow.follow import follow
from coterie.cli.output.formats import Output, safe
from coterie.cli.output.outcome import result_of
from coterie.cli.output.screen import screen, show, show_data
from coterie.cli.output.workflows import audit_lines, warnings, workflow_lines
from coterie.errors import Unavailable, UsageError

Json = dict[str, Any]


def run(client: Client, ident: str, output: Output, *, watch: bool) -> None:
    """Print a workflow with its groups and tasks, and the outcomes of its constraints."""
    view = client.workflow(ident)
    if watch:
        _stay(client, ident, output)
    if output in {Output.JSON, Output.YAML}:
        show_data({**view, "placement": _placement(client, ident)}, output)
        return
    if output is Output.NAME:
        show([safe(view["id"])])
        return
    style = screen()
    wide = output is Output.WIDE
    show(workflow_lines(view, style, time.time(), wide=wide))
    placement = _placement(client, ident)
    if placement and any(group["tasks"] and group["constraints"] for group in placement["groups"]):
        show(["", *audit_lines(placement, style, wide=wide)])
    for line in warnings(view, wide=wide):
        typer.echo(safe(line), err=True)


def _placement(client: Client, ident: str) -> Json | None:
    """Return the outcomes of constraints; None, with a word on standard error, while the cluster is not known."""
    try:
        return client.placement(ident)
    except Unavailable as error:
        typer.echo(safe(f"the outcomes of constraints are not known now: {error}"), err=True)
        return None


def _stay(client: Client, ident: str, output: Output) -> None:
    if output in {Output.YAML, Output.NAME}:
        raise UsageError(f"--watch prints tables or JSON, not {output}", "Use -o json for one object per line.")
    if output is Output.JSON:
        view: Json = {}
        for _ in client.news(ident):
            if (now := client.view(ident)) != view:
                view = now
                show([json.dumps({"type": "workflow", **view})])
    else:
        view = follow(client, ident)
    raise typer.Exit(result_of(view))
