"""`coterie wait`, and the display of a workflow until it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import typer

from coterie.cli.client.client import Client
from coterie.cli.exit_codes import Exit
from coterie.cli.follow.follow import follow
from coterie.cli.follow.log_lines import failed_tasks, print_last_lines
from coterie.cli.inputs.prompt import choose, user_present
from coterie.cli.output.errors import fail
from coterie.cli.output.formats import Output, safe
from coterie.cli.output.outcome import result_of
from coterie.cli.output.screen import screen, show, show_data
from coterie.cli.output.times import between, parse_span
from coterie.cli.output.workflows import audit_lines
from coterie.errors import Conflict, NotFound, Unavailable, UsageError, did_you_mean
from coterie.lifecycle import Status

Json = dict[str, Any]

# Longer intervals would delay the end of short workflows.
_PAUSES_S = (0.1, 0.2, 0.5, 1.0)


def run(client: Client, ident: str, wanted: str, timeout: str | None, output: Output) -> None:
    """Wait until a workflow is as wanted; exit 124 when timed out, and by its result when it ended otherwise."""
    met = condition(wanted)
    until = None if timeout is None else time.monotonic() + parse_span(timeout, "--timeout")
    tries = 0
    view = client.workflow(ident)
    if not met(view) and not view["finished"] and sys.stderr.isatty():
        why = f" ({view['waiting']['reason']})" if view["waiting"] else ""
        typer.echo(safe(f"{ident} is {view['status']}{why}; waiting until it is {wanted}"), err=True)
    while not met(view) and not view["finished"]:
        if until is not None and time.monotonic() >= until:
            fail(f"{ident} is {view['status']} and not yet {wanted} after {timeout}", f"Ask why: coterie why {ident}")
            raise typer.Exit(Exit.TIMED_OUT)
        pause = _PAUSES_S[min(tries, len(_PAUSES_S) - 1)]
        time.sleep(pause if until is None else max(0.0, min(pause, until - time.monotonic())))
        tries += 1
        view = client.view(ident)
    _say(view, output)
    if met(view):
        raise typer.Exit(result_of(view) if wanted == "finished" else Exit.DONE)
    fail(f"{ident} has ended as {view['status']}, so it will not be {wanted}")
    raise typer.Exit(result_of(view) or Exit.FAILED)


def condition(wanted: str) -> Callable[[Json], bool]:
    """Return the test for a value of `--for`: placed, running, completed, finished, or a status."""
    word = wanted.lower()
    if word == "finished":
        return lambda view: bool(view["finished"])
    if word == "placed":
        # A failed workflow was placed once, but is not now: the caller waits in order to use the placement.
        return lambda view: (
            not result_of(view) and all(task["node"] for group in view["groups"] for task in group["tasks"])
        )
    if word == "running":
        # A short workflow may have completed before it was seen running.
        return lambda view: view["status"] in {Status.RUNNING, Status.COMPLETED}
    if wanted.upper() in list(Status):
        return lambda view: view["status"] == wanted.upper()
    known = ["finished", "placed", *(status.value.lower() for status in Status)]
    hint = f"{did_you_mean(word, known)} Use finished, placed, running, completed, or another status.".strip()
    raise UsageError(f'--for "{wanted}" is not something to wait for', hint)


def _say(view: Json, output: Output) -> None:
    match output:
        case Output.JSON | Output.YAML:
            show_data(view, output)
        case Output.NAME:
            show([safe(view["id"])])
        case _:
            took = between(view["submitted"], view["ended"], time.time())
            show([safe(f"{view['id']} {view['status']} after {took}")])


def follow_to_end(client: Client, ident: str, output: Output) -> None:
    """Show the progress of a workflow, then its nodes; exit with its result. Ctrl-C asks whether to stop it.

    Its id comes first, unless data is requested. From then on an interrupt is handled, since the user knows the id.
    """
    interrupted, told = False, output in {Output.JSON, Output.YAML}
    while True:
        try:
            if not told:
                told = True
                show([safe(ident)])
            view = follow(client, ident)
            break
        except KeyboardInterrupt:
            interrupted = _leave_or_stop(client, ident)
    placement = client.placement(ident)
    if output in {Output.JSON, Output.YAML}:
        show_data({"version": 1, "workflow": view, "placement": placement}, output)
    elif output is not Output.NAME and any(group["tasks"] for group in placement["groups"]):
        show(audit_lines(placement, screen()))
    took = between(view["submitted"], view["ended"], time.time())
    if result := result_of(view):
        print_last_lines(view, lambda task: _written(client, ident, task))
        said = f": {view['message']}" if view["message"] else ""
        names = [task["name"] for task in failed_tasks(view)]
        hint = f"Full log: coterie logs {ident}/{names[0]}" if names else f"Its tasks: coterie show {ident}"
        fail(f"{ident} ended as {view['status']} after {took}{said}", hint)
    else:
        typer.echo(safe(f"{ident} {view['status']} after {took}"), err=True)
    raise typer.Exit(Exit.INTERRUPTED if interrupted else result)


def _written(client: Client, ident: str, task: str) -> Iterator[bytes]:
    with suppress(NotFound):  # it has written nothing, or was never started
        yield from client.log(ident, task, None)


def _leave_or_stop(client: Client, ident: str) -> bool:
    """Leave a workflow to its service, unless a user at the terminal stops it; return whether it stops.

    One that ends before there is an answer is reported as if it had not been interrupted.
    """
    choice: str | None = "leave"
    if user_present():
        choices = {"d": "leave", "s": "stop", "c": "go on"}
        with suppress(KeyboardInterrupt):  # a repeated Ctrl-C leaves at once
            choice = choose(f"{ident}: [D]etach, [s]top it, [c]ontinue?", choices, "d", lambda: _over(client, ident))
    if choice == "leave":
        typer.echo(safe(f"{ident} keeps running; follow it again: coterie show {ident} --watch"), err=True)
        raise typer.Exit(Exit.INTERRUPTED)
    if choice != "stop":
        return False
    try:
        client.cancel(ident, "interrupted", force=False)
    except Conflict:
        typer.echo(safe(f"{ident} has ended already"), err=True)
    return True


def _over(client: Client, ident: str) -> bool:
    try:
        return bool(client.workflow(ident)["finished"])
    except Unavailable:  # it may come back; the question stays open
        return False
