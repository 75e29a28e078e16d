"""The options of `coterie why`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from coterie.cli.client.call import service_client
from coterie.cli.inputs import completion
from coterie.cli.inputs.options import DebugOption, WhatIfOptions
from coterie.cli.inputs.parameters import with_options
from coterie.cli.inputs.service_options import OutputOption, ServiceOptions
from coterie.cli.output.formats import Output


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyOptions:
    """A call of `coterie why` as it was written."""

    target: Annotated[
        str,
        typer.Argument(metavar="ID[/GROUP]", help="A workflow, or one group of it.", autocompletion=completion.groups),
    ]
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what each node and domain lacks.")] = False
    what_if: WhatIfOptions
    service: ServiceOptions
    output: OutputOption = Output.TABLE
    debug: DebugOption = False


@with_options(WhyOptions)
def why(options: WhyOptions) -> None:
    """Explain why a workflow waits: the reason, the best domains, who holds them, and the ways out.

    Options such as --prefer show what would happen with that change; nothing is changed.

    \b
    Examples:
      coterie why train-7
      coterie why train-7/eval --verbose
      # where would it go if racks were only preferred, or when another workflow has ended?
      coterie why train-7 --prefer rack
      coterie why train-7 --without train-6
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    with service_client(options.service, options.output, debug=options.debug) as client:
        from coterie.cli.handlers.remote.why import run

        run(client, options)
