"""The commands of `coterie`."""

from __future__ import annotations

from typing import Annotated

import typer

from coterie.cli.commands import (
    audit,
    check,
    explain,
    fit,
    map,  # noqa: A004 - by the names of commands
    operator,
    plan,
    render,
    run,
    serve,
    simulate,
    token,
    validate,
)
from coterie.cli.commands.remote import (
    cancel,
    delete,
    events,
    list,  # noqa: A004 - the same
    logs,
    pool,
    retry,
    show,
    submit,
    top,
    topology,
    wait,
    why,
)
from coterie.cli.help import CommandGroups
from coterie.cli.inputs.service_options import CLIENT_EXIT_CODES

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


app.command("plan", epilog=plan.EXIT_CODES)(plan.plan)
app.command("validate", epilog=validate.EXIT_CODES)(validate.validate)
app.command("explain", epilog=explain.EXIT_CODES)(explain.explain)
app.command("render", epilog=render.EXIT_CODES)(render.render)
app.command("check", epilog=check.EXIT_CODES)(check.check)
app.command("audit", epilog=audit.EXIT_CODES)(audit.audit)
app.command("map", epilog=map.EXIT_CODES)(map.map_)
app.command("fit", epilog=fit.EXIT_CODES)(fit.fit)
app.command("simulate", epilog=simulate.EXIT_CODES)(simulate.simulate)
app.command("run", epilog=run.EXIT_CODES)(run.run)
app.command("serve", epilog=serve.EXIT_CODES)(serve.serve)
app.command("submit", epilog=submit.EXIT_CODES)(submit.submit)
app.command("list", epilog=CLIENT_EXIT_CODES)(list.list_)
app.command("show", epilog=show.EXIT_CODES)(show.show)
app.command("why", epilog=CLIENT_EXIT_CODES)(why.why)
app.command("top", epilog=CLIENT_EXIT_CODES)(top.top)
app.command("logs", epilog=CLIENT_EXIT_CODES)(logs.logs)
app.command("events", epilog=CLIENT_EXIT_CODES)(events.events)
app.command("wait", epilog=wait.EXIT_CODES)(wait.wait)
app.command("cancel", epilog=CLIENT_EXIT_CODES)(cancel.cancel)
app.command("retry", epilog=CLIENT_EXIT_CODES)(retry.retry)
app.command("delete", epilog=CLIENT_EXIT_CODES)(delete.delete)
app.add_typer(pool.pool, name="pool")
app.add_typer(topology.topology, name="topology")
app.add_typer(token.token, name="token")
app.add_typer(operator.operator, name="operator")
