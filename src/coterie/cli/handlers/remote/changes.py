"""`coterie cancel`, `retry` and `delete`: requests to change workflows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import typer

from coterie.cli.client.client import Client
from coterie.cli.commands.remote.cancel import CancelOptions
from coterie.cli.commands.remote.delete import DeleteOptions
from coterie.cli.exit_codes import Exit
from coterie.cli.inputs.prompt import confirm
from coterie.cli.output.errors import code_of, error_data, fail
from coterie.cli.output.formats import Output, safe
from coterie.cli.output.screen import show, show_as, show_data
from coterie.errors import Conflict, Forbidden, NotFound
from coterie.rendering.text import count

Json = dict[str, Any]

# The number of workflows that a prompt names; beyond it only their number is given.
_NAMED = 10


def cancel_all(client: Client, options: CancelOptions) -> None:
    """Request the end of workflows; all are requested, and the worst answer decides the exit code."""
    idents = options.workflows
    if len(idents) > 1 and not options.yes:
        confirm(f"Cancel {_listed(idents)}")
    _each(idents, lambda ident: client.cancel(ident, options.message, force=options.force), _stops, options.output)


def _stops(answer: Json) -> str:
    return "is canceled" if answer["finished"] else "is being canceled"


def retry_one(client: Client, target: str, output: Output) -> None:
    """Request the retry of a workflow, or of one task of it."""
    ident, _, task = target.partition("/")
    view = client.retry(ident, task or None)
    show_as(
        output,
        view,
        [target],
        lambda: [safe(f"{target} is queued again; follow it: coterie show {ident} --watch")],
    )


def delete_all(client: Client, options: DeleteOptions) -> None:
    """Delete workflows; those that have not ended are refused, or canceled and deleted then."""
    if not options.yes:
        verbs = "Cancel and delete" if options.force else "Delete"
        confirm(f"{verbs} {_listed(options.workflows)}, with all logs and outputs")

    def forget(ident: str) -> Json:
        return {"id": ident, "deleted": client.delete(ident, force=options.force)}

    _each(options.workflows, forget, _deletion, options.output)


def _deletion(answer: Json) -> str:
    return "deleted" if answer["deleted"] else "is being canceled, and will then be deleted"


def _listed(idents: Sequence[str]) -> str:
    shown = ", ".join(idents[:_NAMED])
    return f"{shown} and {count(len(idents) - _NAMED, 'more workflow')}" if len(idents) > _NAMED else shown


def _each(idents: Sequence[str], act: Callable[[str], Json], words: Callable[[Json], str], output: Output) -> None:
    codes, answers = [Exit.DONE], []
    as_data = output in {Output.JSON, Output.YAML}
    for ident in idents:
        try:
            answers.append(act(ident))
            if not as_data:
                show([safe(ident if output is Output.NAME else f"{ident} {words(answers[-1])}")])
        except (Conflict, NotFound, Forbidden) as error:
            codes.append(code_of(error))
            if as_data:
                answers.append({"id": ident, **error_data(error)})
            else:
                fail(str(error), error.hint)
    if as_data:
        show_data(answers, output)
    raise typer.Exit(max(codes))
