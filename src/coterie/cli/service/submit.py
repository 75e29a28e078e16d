"""`coterie submit`: hand a workflow to a service, or ask what would come of it."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from coterie.cli.codes import Exit
from coterie.cli.output import Output, safe
from coterie.cli.screen import screen, show, show_as, show_data
from coterie.cli.service.client import Client
from coterie.cli.service.refusals import plan_lines
from coterie.cli.service.setting import Call, read_submission
from coterie.cli.service.views import warnings
from coterie.cli.service.waiting import follow_to_end
from coterie.errors import UsageError
from coterie.service.settings import Submission

_CODES = {"placed": Exit.DONE, "waiting": Exit.MUST_WAIT, "undecided": Exit.MUST_WAIT, "impossible": Exit.NEVER_FITS}


@dataclass(frozen=True, slots=True)
class Ask:
    """A call of `coterie submit` as it was written."""

    call: Call
    pool: str | None
    labels: tuple[str, ...]
    key: str | None
    dry_run: bool
    follow: bool
    output: Output


def run(client: Client, ask: Ask) -> None:
    """Submit a workflow and say its id; with `follow`, stay until it ends."""
    labels = parse_labels(ask.labels)
    submission, _ = read_submission(ask.call, pool=ask.pool, labels=labels, key=ask.key)
    if ask.dry_run:
        _plan(client, submission, ask.output)
    view = client.submit(submission)
    for line in warnings(view, wide=ask.output is Output.WIDE):
        typer.echo(safe(line), err=True)
    if not view["created"]:
        typer.echo(safe(f"{view['id']} was there already, by the same key"), err=True)
    if ask.follow:
        if ask.output not in {Output.JSON, Output.YAML}:
            show([safe(view["id"])])
        follow_to_end(client, view["id"], ask.output)
    if ask.output in {Output.JSON, Output.YAML}:
        show_data(view, ask.output)
        return
    show([safe(view["id"])])
    if ask.output is not Output.NAME:
        typer.echo(safe(f"submitted to pool {view['pool']}; watch it: coterie show {view['id']} --watch"), err=True)


def parse_labels(texts: tuple[str, ...]) -> dict[str, str]:
    """Read KEY=VALUE pairs."""
    pairs = [text.partition("=") for text in texts]
    for text, (key, sign, _) in zip(texts, pairs, strict=True):
        if not key or not sign:
            raise UsageError(f'--label "{text}" is not KEY=VALUE', "Write it like --label team=vision.")
    return {key: value for key, _, value in pairs}


def _plan(client: Client, submission: Submission, output: Output) -> None:
    plan = client.plan(submission)
    names = [f"{plan['workload']}/{group['name']}" for group in plan["groups"]]
    show_as(output, plan, names, lambda: plan_lines(plan, screen()))
    for line in warnings(plan):
        typer.echo(safe(line), err=True)
    raise typer.Exit(_CODES.get(plan["verdict"], Exit.FAILED))
