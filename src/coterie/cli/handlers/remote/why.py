"""`coterie why`: the reason why a workflow waits, and its remedies."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

from coterie.cli.client.client import Client
from coterie.cli.commands.remote.why import WhyOptions
from coterie.cli.inputs.service_location import known_url
from coterie.cli.output.expected_start import within
from coterie.cli.output.formats import Output
from coterie.cli.output.refusals import why_lines
from coterie.cli.output.screen import screen, show_as
from coterie.errors import Unavailable

Json = dict[str, Any]


def run(client: Client, options: WhyOptions) -> None:
    """Print why a workflow, or one group of it, waits, or its outcome under hypothetical changes."""
    output, verbose = options.output, options.verbose
    ident, _, group = options.target.partition("/")
    counting = verbose or output in {Output.TABLE, Output.WIDE}
    answer = client.why(ident, group or None, {**options.what_if.params(), **({"verbose": True} if counting else {})})
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
    """Return the service that a call without options uses; empty where there is none."""
    try:
        return (os.environ.get("COTERIE_SERVER") or known_url()).rstrip("/")
    except Unavailable:
        return ""
