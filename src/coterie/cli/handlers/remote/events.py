"""`coterie events`: the events of a service, or of one workflow."""

from __future__ import annotations

import json

from coterie.cli.client.client import Client
from coterie.cli.commands.remote.events import EventsOptions
from coterie.cli.follow.follow import event_line
from coterie.cli.output.formats import Output, safe
from coterie.cli.output.screen import show, show_data
from coterie.errors import UsageError


def run(client: Client, options: EventsOptions) -> None:
    """Print the events, one line each; with --follow, as they happen."""
    ident, output, follow_on, after = options.workflow, options.output, options.follow, options.after
    if output is Output.YAML and follow_on:
        raise UsageError("--follow prints lines or JSON, not YAML", "Use -o json for one object per line.")
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
