"""`coterie list`, `show`, `why`, `logs` and `events`: what a service knows."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from coterie.cli.codes import Exit
from coterie.cli.output import Output, safe
from coterie.cli.report import code_of, fail
from coterie.cli.screen import screen, show, show_as, show_data
from coterie.cli.service.client import Client
from coterie.cli.service.ending import result_of
from coterie.cli.service.expecting import expectations, within
from coterie.cli.service.follow import event_line, follow
from coterie.cli.service.refusals import why_lines
from coterie.cli.service.submit import parse_labels
from coterie.cli.service.times import parse_span
from coterie.cli.service.views import audit_lines, list_lines, warnings, workflow_lines
from coterie.cli.service.watching import watch as watching
from coterie.errors import NotFound, UsageError
from coterie.service.errors import Conflict, Forbidden

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
    if watch:
        watching(client, lambda: _rows(client, params, wanted.limit)[0], output)
        return
    rows, more = _rows(client, params, wanted.limit)
    now = time.time()
    expected = expectations(client, rows, now) if output is Output.WIDE else None
    names = [row["id"] for row in rows]
    show_as(output, rows, names, lambda: list_lines(rows, screen(), now, expected=expected))
    if more:
        typer.echo(f"there are more than {wanted.limit}; --limit shows more of them", err=True)


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
    if watch:
        _stay(client, ident, output)
    view = client.workflow(ident)
    if output in {Output.JSON, Output.YAML}:
        show_data({**view, "placement": client.placement(ident)}, output)
        return
    if output is Output.NAME:
        show([safe(view["id"])])
        return
    style = screen()
    show(workflow_lines(view, style, time.time(), wide=output is Output.WIDE))
    placement = client.placement(ident)
    if any(group["tasks"] and group["constraints"] for group in placement["groups"]):
        show(["", *audit_lines(placement, style)])
    for line in warnings(view, wide=output is Output.WIDE):
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


def why(client: Client, target: str, output: Output) -> None:
    """Print why a workflow, or one group of it, waits."""
    ident, _, group = target.partition("/")
    answer = client.why(ident, group or None)
    names = [f"{ident}/{one['name']}" for one in answer["groups"]]
    show_as(output, answer, names, lambda: _why_lines(client, answer))


def _why_lines(client: Client, answer: Json) -> Iterable[str]:
    now = time.time()
    known = {group["name"]: within(client, group, now) for group in answer["groups"]}
    return why_lines(answer, screen(), now, {name: span for name, span in known.items() if span is not None})


def logs(client: Client, target: str, attempt: int | None, *, follow_on: bool) -> None:
    """Print what a task has written, byte for byte; of a workflow of one task, that task's."""
    ident, _, task = target.partition("/")
    if not task:
        task = _only_task(client.workflow(ident))
    stream = sys.stdout.buffer
    # A terminal must not be driven by what a task writes; a file or a pipe gets it as it is.
    tame = sys.stdout.isatty()
    for piece in (client.follow_log if follow_on else client.log)(ident, task, attempt):
        stream.write(_tamed(piece) if tame else piece)
        stream.flush()


def _tamed(piece: bytes) -> bytes:
    return bytes(byte for byte in piece if byte in (9, 10, 13) or byte >= 32)


def _only_task(view: Json) -> str:
    tasks = [task["name"] for group in view["groups"] for task in group["tasks"]]
    if len(tasks) == 1:
        return str(tasks[0])
    leads = [task["name"] for group in view["groups"] for task in group["tasks"] if task["lead"]]
    some = ", ".join(tasks[:12]) + (f", and {len(tasks) - 12} more" if len(tasks) > 12 else "")
    raise UsageError(
        f"{view['id']} has {len(tasks)} tasks", f"Name one: coterie logs {view['id']}/{leads[0]}. Tasks are: {some}."
    )


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


def cancel(client: Client, idents: Sequence[str], message: str, *, force: bool) -> None:
    """Ask workflows to stop; all are asked, and the worst answer decides the exit code."""
    _each(idents, lambda ident: client.cancel(ident, message, force=force), "stops")


def retry(client: Client, target: str) -> None:
    """Ask a workflow, or one task of it, to run again."""
    ident, _, task = target.partition("/")
    client.retry(ident, task or None)
    show([safe(f"{target} runs again")])


def delete(client: Client, idents: Sequence[str]) -> None:
    """Delete workflows that have ended."""
    _each(idents, client.delete, "deleted")


def _each(idents: Sequence[str], act: Callable[[str], object], word: str) -> None:
    codes = [Exit.DONE]
    for ident in idents:
        try:
            act(ident)
            show([safe(f"{ident} {word}")])
        except (Conflict, NotFound, Forbidden) as error:
            fail(str(error), error.hint)
            codes.append(code_of(error))
    raise typer.Exit(max(codes))
