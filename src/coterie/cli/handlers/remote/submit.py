"""`coterie submit`: submit a workflow to a service, or preview its placement."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import typer

from coterie.cli.client.client import Client
from coterie.cli.commands.remote.submit import SubmitOptions
from coterie.cli.exit_codes import Exit
from coterie.cli.handlers.remote.wait import follow_to_end
from coterie.cli.inputs.labels import parse_labels
from coterie.cli.inputs.options import ClusterOptions
from coterie.cli.inputs.parameters import command_words
from coterie.cli.inputs.submission import WorkflowInput, read_text, with_files
from coterie.cli.output.errors import fail
from coterie.cli.output.formats import Output, safe
from coterie.cli.output.plan import plan_lines
from coterie.cli.output.screen import show, show_as, show_data
from coterie.cli.output.short_names import short_names
from coterie.cli.output.workflows import warnings
from coterie.document.page import Page
from coterie.document.schema import by_file
from coterie.errors import CoterieError, Fault, NeverFits, PlanStale, SpecErrors, UsageError
from coterie.service.settings import Submission

Json = dict[str, Any]

_PLAN = re.compile("[0-9a-f]{8}")

_CODES = {"placed": Exit.DONE, "waiting": Exit.MUST_WAIT, "undecided": Exit.MUST_WAIT, "impossible": Exit.NEVER_FITS}


def run(client: Client, options: SubmitOptions) -> None:
    """Submit a workflow and print its id; with `follow`, stay until it ends."""
    labels = parse_labels(options.labels)
    if options.plan is not None and options.dry_run:
        raise UsageError("--dry-run and --plan cannot be used together", "Remove one of the two options.")
    if options.plan is not None and not _PLAN.fullmatch(options.plan):
        raise UsageError(
            f'--plan "{options.plan}" is not the id of a plan', "coterie submit --dry-run ends with the id."
        )
    supposed = options.what_if.params()
    if options.force and options.dry_run:
        raise UsageError("--dry-run submits nothing, so there is nothing to force", "Remove one of the two options.")
    call = WorkflowInput(options.file, ClusterOptions(), options.template, options.priority)
    text = read_text(call, pool=options.pool, labels=labels, key=options.key)
    try:
        submission, workflow = with_files(call, text)
    except SpecErrors as error:
        raise SpecErrors(_with_pool(client, text, error.faults)) from None
    page = workflow.document.page
    if options.dry_run:
        plan = client.plan(submission, page, supposed)
        _show_plan(options, plan)
        raise typer.Exit(_CODES.get(plan["verdict"], Exit.FAILED))
    try:
        view = client.submit(submission, page, {**supposed, "plan": options.plan, "force": options.force or None})
    except PlanStale as error:
        _show_plan(options, client.plan(submission, page, supposed))
        fail(str(error))
        raise typer.Exit(Exit.CONFLICT) from None
    except NeverFits:
        if options.output in {Output.TABLE, Output.WIDE}:
            _show_plan(options, {**client.plan(submission, page, supposed), "warnings": []})  # the error says it
        raise
    for line in view["changes"]:
        typer.echo(safe(f"changed: {line}"), err=True)
    for line in warnings(view, wide=options.output is Output.WIDE, images=True):
        typer.echo(safe(line), err=True)
    if not view["created"]:
        typer.echo(safe(f"{view['id']} already exists: it was submitted with the same key"), err=True)
    if options.follow:
        follow_to_end(client, view["id"], options.output)
    if options.output in {Output.JSON, Output.YAML}:
        show_data(view, options.output)
        return
    show([safe(view["id"])])
    if options.output is not Output.NAME:
        typer.echo(safe(f"submitted to pool {view['pool']}; watch it: coterie show {view['id']} --watch"), err=True)
        if view.get("page"):  # which services before the web page do not tell
            typer.echo(safe(f"web page: {client.url}{view['page']}"), err=True)


def _with_pool(client: Client, text: Submission, own: Sequence[Fault]) -> Sequence[Fault]:
    """Return the faults of a file found here, and those that depend on its pool, if its service is available."""
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


def _show_plan(options: SubmitOptions, plan: Json) -> None:
    names = [f"{plan['workload']}/{group['name']}" for group in plan["groups"]]
    wide = options.output is Output.WIDE
    short = short_names(plan["groups"], wide=wide)
    show_as(options.output, plan, names, lambda: chain(plan_lines([plan], short, wide=wide), short.note()))
    for line in warnings(plan, images=True):
        typer.echo(safe(line), err=True)
    waits_for_others = options.what_if.without or options.what_if.uncordon
    if plan["verdict"] != "impossible" and not waits_for_others:
        typer.echo(safe(f"Submit with: {_command(options, plan['id'])}"), err=True)


def _command(options: SubmitOptions, plan: str) -> str:
    """Return the command line that submits what was planned."""
    return shlex.join(command_words("submit", replace(options, plan=plan, dry_run=False, follow=False)))
