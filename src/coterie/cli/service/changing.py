"""`coterie cancel`, `retry` and `delete`: what a service is asked to do about workflows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import typer

from coterie.cli.codes import Exit
from coterie.cli.output import Output, safe
from coterie.cli.report import code_of, fail
from coterie.cli.screen import show, show_as, show_data
from coterie.cli.service.client import Client
from coterie.errors import NotFound
from coterie.service.errors import Conflict, Forbidden

Json = dict[str, Any]


def cancel(client: Client, idents: Sequence[str], message: str, output: Output, *, force: bool) -> None:
    """Ask workflows to stop; all are asked, and the worst answer decides the exit code."""
    _each(idents, lambda ident: client.cancel(ident, message, force=force), "stops", output)


def retry(client: Client, target: str, output: Output) -> None:
    """Ask a workflow, or one task of it, to run again."""
    ident, _, task = target.partition("/")
    view = client.retry(ident, task or None)
    show_as(
        output,
        view,
        [target],
        lambda: [safe(f"{target} is queued again; follow it: coterie show {ident} --watch")],
    )


def delete(client: Client, idents: Sequence[str], output: Output) -> None:
    """Delete workflows that have ended."""

    def forget(ident: str) -> Json:
        client.delete(ident)
        return {"id": ident, "deleted": True}

    _each(idents, forget, "deleted", output)


def _each(idents: Sequence[str], act: Callable[[str], Json], word: str, output: Output) -> None:
    codes, answers = [Exit.DONE], []
    as_data = output in {Output.JSON, Output.YAML}
    for ident in idents:
        try:
            answers.append(act(ident))
            if not as_data:
                show([safe(ident if output is Output.NAME else f"{ident} {word}")])
        except (Conflict, NotFound, Forbidden) as error:
            fail(str(error), error.hint)
            codes.append(code_of(error))
    if as_data:
        show_data(answers, output)
    raise typer.Exit(max(codes))
