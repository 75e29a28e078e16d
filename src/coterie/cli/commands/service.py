"""All commands of the service, as `coterie` shows them."""

from __future__ import annotations

import typer

from coterie.cli.commands import client_options as client
from coterie.cli.commands import host_options as host
from coterie.cli.commands import pool_options as pools
from coterie.cli.inputs.service_options import CLIENT_HELP, FOLLOW_HELP, SUBMIT_HELP, WAIT_HELP


def register(app: typer.Typer) -> None:
    """Add the commands to `coterie`."""
    app.command(epilog=host.RUN_HELP)(host.run)
    app.command(epilog=host.SERVE_HELP)(host.serve)
    app.command(epilog=SUBMIT_HELP)(client.submit)
    app.command("list", epilog=CLIENT_HELP)(client.list_)
    app.command(epilog=FOLLOW_HELP)(client.show)
    app.command(epilog=CLIENT_HELP)(client.why)
    app.command(epilog=CLIENT_HELP)(client.top)
    app.command(epilog=CLIENT_HELP)(client.logs)
    app.command(epilog=CLIENT_HELP)(client.events)
    app.command(epilog=WAIT_HELP)(client.wait)
    app.command(epilog=CLIENT_HELP)(client.cancel)
    app.command(epilog=CLIENT_HELP)(client.retry)
    app.command(epilog=CLIENT_HELP)(client.delete)
    for group, name in ((pools.pool, "pool"), (pools.topology, "topology"), (host.token, "token")):
        app.add_typer(group, name=name)
