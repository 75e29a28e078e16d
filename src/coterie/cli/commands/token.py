"""The options of `coterie token`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from coterie.cli.help import CommandList
from coterie.cli.inputs.options import DebugOption
from coterie.cli.inputs.parameters import with_options
from coterie.cli.inputs.service_options import CLIENT_EXIT_CODES, OutputOption, StorageOptions
from coterie.cli.output.formats import Output

_HELP = """Create, list and delete tokens for the service.

\b
Examples:
  coterie token create alice --role user
  coterie token list
"""

token = typer.Typer(help=_HELP, cls=CommandList, epilog=CLIENT_EXIT_CODES, no_args_is_help=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCreateOptions:
    """A call of `coterie token create` as it was written."""

    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the user, who will own the workflows submitted with it.")
    ]
    role: Annotated[
        Literal["viewer", "user", "admin"],
        typer.Option("--role", help="viewer: read only; user: also submit; admin: everything."),
    ] = "user"
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="TIME", help="Lifetime, such as 90d. Default: unlimited.")
    ] = None
    storage: StorageOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@token.command("create", epilog=CLIENT_EXIT_CODES)
@with_options(TokenCreateOptions)
def token_create(options: TokenCreateOptions) -> None:
    """Create a token and print it. It is shown only once; the service stores its hash.

    \b
    Examples:
      coterie token create ana --role admin
      export COTERIE_TOKEN=$(coterie token create ci --role user --expires 90d)
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(options.output, debug=options.debug):
        from coterie.cli.handlers.token import create

        create(options)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenListOptions:
    """A call of `coterie token list` as it was written."""

    storage: StorageOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@token.command("list", epilog=CLIENT_EXIT_CODES)
@with_options(TokenListOptions)
def token_list(options: TokenListOptions) -> None:
    """List tokens by name; the tokens themselves are never shown.

    \b
    Examples:
      coterie token list
      coterie token list -o json
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(options.output, debug=options.debug):
        from coterie.cli.handlers.token import list_all

        list_all(options.storage, options.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenDeleteOptions:
    """A call of `coterie token delete` as it was written."""

    name: Annotated[str, typer.Argument(metavar="NAME", help="Name or id of the token.")]
    storage: StorageOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@token.command("delete", epilog=CLIENT_EXIT_CODES)
@with_options(TokenDeleteOptions)
def token_delete(options: TokenDeleteOptions) -> None:
    """Delete a token; it stops working at once.

    \b
    Examples:
      coterie token delete ci
      coterie token delete ci --store postgresql://coterie@db/coterie
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(options.output, debug=options.debug):
        from coterie.cli.handlers.token import delete

        delete(options.name, options.storage, options.output)
