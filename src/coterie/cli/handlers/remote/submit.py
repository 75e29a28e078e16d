"""`coterie submit`: hand a workflow to a service, or ask what would come of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import typer

from coterie.cli.client.client import Client
from coterie.cli.exit_codes import Exit
from coterie.cli.handlers.remote.wait import follow_to_end
from coterie.cli.inputs.labels import parse_labels
from coterie.cli.inputs.submission import Call, read_text, with_files
from coterie.cli.output.errors import fail
from coterie.cli.output.formats import Output, safe
from coterie.cli.output.refusals import plan_lines
from coterie.cli.output.screen import screen, show, show_as, show_data
from coterie.cli.output.workflows import warnings
from coterie.document.page import Page
from coterie.document.schema import by_file
from coterie.errors import CoterieError, Fault, PlanStale, SpecErrors, UsageError
from coterie.service.settings import Submission

Json = dict[str, Any]

_PLAN = re.compile("[0-9a-f]{8}")

_CODES = {"placed": Exit.DONE, "waiting": Exit.MUST_WAIT, "undecided": Exit.MUST_WAIT, "impossible": Exit.NEVER_FITS}


@dataclass(frozen=True, slots=True)
class Ask:
    """A call of `coterie submit` as it was written."""

    call: Call
    pool: str | None
    labels: tuple[str, ...]
    key: str | None
    dry_run: bool
    plan: str | None
    follow: bool
    output: Output
    what_if: Json = field(default_factory=dict)


def run(client: Client, ask: Ask) -> None:
    """Submit a workflow and say its id; with `follow`, stay until it ends."""
    labels = parse_labels(ask.labels)
    if ask.plan is not None and ask.dry_run:
        raise UsageError("--dry-run makes a plan, and --plan takes one", "Leave out one of the two.")
    if ask.plan is not None and not _PLAN.fullmatch(ask.plan):
        raise UsageError(f'--plan "{ask.plan}" is no id of a plan', "coterie submit --dry-run ends with the id.")
    supposed = {name: value for name, value in ask.what_if.items() if value}
    if supposed and not ask.dry_run:
        given = " and ".join(f"--{name.replace('_', '-')}" for name in supposed)
        raise UsageError(f"{given} asks what if, and submits nothing", "Add --dry-run.")
    text = read_text(ask.call, pool=ask.pool, labels=labels, key=ask.key)
    try:
        submission, workflow = with_files(ask.call, text)
    except SpecErrors as error:
        raise SpecErrors(_with_pool(client, text, error.faults)) from None
    page = workflow.document.page
    if ask.dry_run:
        plan = client.plan(submission, page, supposed)
        _show_plan(ask, plan)
        raise typer.Exit(_CODES.get(plan["verdict"], Exit.FAILED))
    try:
        view = client.submit(submission, page, ask.plan)
    except PlanStale as error:
        _show_plan(ask, client.plan(submission, page))
        fail(str(error))
        raise typer.Exit(Exit.CONFLICT) from None
    for line in warnings(view, wide=ask.output is Output.WIDE):
        typer.echo(safe(line), err=True)
    if not view["created"]:
        typer.echo(safe(f"{view['id']} was there already, by the same key"), err=True)
    if ask.follow:
        follow_to_end(client, view["id"], ask.output)
    if ask.output in {Output.JSON, Output.YAML}:
        show_data(view, ask.output)
        return
    show([safe(view["id"])])
    if ask.output is not Output.NAME:
        typer.echo(safe(f"submitted to pool {view['pool']}; watch it: coterie show {view['id']} --watch"), err=True)


def _with_pool(client: Client, text: Submission, own: Sequence[Fault]) -> Sequence[Fault]:
    """Return the faults of a file that are seen here, and those that its pool shows, if its service can be asked."""
    try:
        page = Page.of(text.source.decode("utf-8-sig"), text.file)
        client.plan(text, page)  # which stores nothing, even if a service of another version finds no fault
    except SpecErrors as error:
        seen = {_spot(fault) for fault in own}
        return by_file((*own, *(fault for fault in error.faults if _spot(fault) not in seen)))
    except (CoterieError, UnicodeDecodeError):
        pass
    return own


def _spot(fault: Fault) -> tuple[str, int | None, int | None]:
    place = fault.place
    return (fault.message, place.line, place.column) if place else (fault.message, None, None)


def _show_plan(ask: Ask, plan: Json) -> None:
    names = [f"{plan['workload']}/{group['name']}" for group in plan["groups"]]
    show_as(ask.output, plan, names, lambda: plan_lines(plan, screen(), wide=ask.output is Output.WIDE))
    for line in warnings(plan):
        typer.echo(safe(line), err=True)
    if plan["verdict"] != "impossible" and not any(ask.what_if.values()):
        typer.echo(safe(f"Submit with: {_command(ask, plan['id'])}"), err=True)


def _command(ask: Ask, plan: str) -> str:
    """Return the call that submits what was planned."""
    call = ask.call
    words = ["coterie", "submit", call.file]
    for option, values in (
        ("--pool", [ask.pool] if ask.pool else []),
        ("--set", call.sets),
        ("--set-string", call.set_strings),
        ("--priority", [call.priority] if call.priority != "NORMAL" else []),
        ("--label", ask.labels),
        ("--key", [ask.key] if ask.key else []),
        ("--plan", [plan]),
    ):
        words += [word for value in values for word in (option, value)]
    return shlex.join(words)
