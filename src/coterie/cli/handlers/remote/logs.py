"""`coterie logs`: the output of tasks, of one task byte by byte, of all tasks line by line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

import typer

from coterie.cli.client.client import Client
from coterie.cli.commands.remote.logs import LogsOptions
from coterie.cli.follow.log_lines import LogLine, LogReader, name_width, prefixed, tasks_of
from coterie.cli.output.formats import Output, safe
from coterie.cli.output.screen import show
from coterie.cli.output.times import parse_span
from coterie.errors import NotFound, UsageError

Json = dict[str, Any]

# The polling interval of the logs of all tasks while they are followed.
_LOOK_S = 1.0
# The number of tasks that a hint names.
_NAMED = 20


def run(client: Client, wanted: LogsOptions) -> None:
    """Print the log of one task, or of the tasks of a workflow, each line after the name of its task."""
    output = wanted.output
    if output is Output.YAML:
        raise UsageError("logs are printed as text or JSON, not YAML", "Use -o json for one object per line.")
    ident, _, task = wanted.target.partition("/")
    view = client.workflow(ident)
    names = [one["name"] for one in tasks_of(view)]
    if task and task not in names:
        raise NotFound(f'workflow "{ident}" has no task "{task}"', f"Tasks are: {', '.join(names[:_NAMED])}.")
    since = None if wanted.since is None else time.time() - parse_span(wanted.since, "--since")
    if output is Output.NAME:
        show(safe(f"{ident}/{one['name']}") for one in tasks_of(view) if one["attempt"] and task in {"", one["name"]})
    elif (task or len(names) == 1) and output is not Output.JSON:
        _one(client, ident, task or names[0], wanted, since)
    else:
        _all(client, ident, task, wanted, since, output)


def _one(client: Client, ident: str, task: str, wanted: LogsOptions, since: float | None) -> None:
    stream = sys.stdout.buffer
    # The output of a task must not control a terminal; a file or a pipe gets it unchanged.
    tame = sys.stdout.isatty()
    _say_not_begun(client.workflow(ident), task, wanted)
    offset = client.log_start(ident, task, wanted.attempt, wanted.tail, since)
    for piece in (client.follow_log if wanted.follow else client.log)(ident, task, wanted.attempt, offset):
        stream.write(_tamed(piece) if tame else piece)
        stream.flush()


def _all(client: Client, ident: str, task: str, wanted: LogsOptions, since: float | None, output: Output) -> None:
    if wanted.attempt is not None and not task:
        raise UsageError(
            "--attempt is for the log of one task", f"Name it: coterie logs {ident}/TASK --attempt {wanted.attempt}"
        )

    def look() -> Json:
        view = client.view(ident)
        groups = [
            {**group, "tasks": [one for one in group["tasks"] if task in {"", one["name"]}]} for group in view["groups"]
        ]
        return {**view, "groups": groups, "finished": view["finished"] or not wanted.follow}

    reader = LogReader(
        look,
        lambda name, attempt, offset: client.with_retries(lambda: client.log_piece(ident, name, attempt, offset)),
        lambda name, attempt: client.log_start(ident, name, attempt, wanted.tail, since),
    )
    if not any(one["attempt"] for one in tasks_of(reader.view)):
        _say_not_begun(reader.view, task or tasks_of(reader.view)[0]["name"], wanted)
    width = name_width(reader.view)
    line_of = partial(_json_line) if output is Output.JSON else partial(_text_line, width)
    while True:
        show(map(line_of, reader.new()))
        if reader.view["finished"]:
            return
        time.sleep(_LOOK_S)


def _text_line(width: int, line: LogLine) -> str:
    return prefixed(line, width)


def _json_line(line: LogLine) -> str:
    return json.dumps({"type": "log", **asdict(line)}, ensure_ascii=False)


def _say_not_begun(view: Json, task: str, wanted: LogsOptions) -> None:
    """Print why there is nothing to read yet, if that is so."""
    for group, one in _placed(view):
        if one["name"] != task or wanted.attempt is not None or one["started"]:
            continue
        waiting = group["waiting"]
        why = f": {waiting['reason']}, {waiting['message']}" if waiting else f" ({one['status']})"
        ends = "; waiting for it" if wanted.follow and not one["ended"] else ""
        typer.echo(safe(f"{view['id']}/{task} has not started{why}{ends}"), err=True)


def _placed(view: Json) -> Iterator[tuple[Json, Json]]:
    return ((group, one) for group in view["groups"] for one in group["tasks"])


def _tamed(piece: bytes) -> bytes:
    return bytes(byte for byte in piece if byte in (9, 10, 13) or byte >= 32)
