"""The program `coterie`; its commands are in `coterie.cli.command_table`."""

from __future__ import annotations

from typing import Annotated

import typer

from coterie.cli.help import CommandGroups

app = typer.Typer(
    help="Place GPU workloads by topology: plan and explain placements, check and draw clusters, render manifests, "
    "and run workflows on this machine or in a service.",
    cls=CommandGroups,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"coterie {version('coterie')}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    pass
