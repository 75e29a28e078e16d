"""The options of `coterie operator`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer._click.globals import get_current_context

from coterie.cli.exit_codes import Exit, exit_code_help
from coterie.cli.help import CommandList
from coterie.cli.inputs.options import AllowedDomainOption, DebugOption, OffOption
from coterie.cli.inputs.parameters import with_options
from coterie.cli.output.formats import Output

_HELP = """Run the operator: keep KAI's Topologies in sync with the ClusterTopologies of a cluster, and admit objects.

It runs until it is stopped. There may be several replicas, of which one leads. Logs go to standard error.

\b
Examples:
  coterie operator crds | kubectl apply --server-side -f -
  coterie operator --context lab --listen 127.0.0.1:8081 --webhook 127.0.0.1:9443
"""

EXIT_CODES = exit_code_help(words={Exit.DONE: "stopped", Exit.TRY_AGAIN: "address taken"})

operator = typer.Typer(help=_HELP, cls=CommandList, epilog=EXIT_CODES)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorOptions:
    """A call of `coterie operator` as it was written."""

    context: Annotated[
        str, typer.Option("--context", metavar="NAME", help="Context of the kubeconfig. Default: the current one.")
    ] = ""
    listen: Annotated[
        str,
        typer.Option("--listen", metavar="HOST:PORT", help="Address of /healthz, /readyz and /metrics. Default: none."),
    ] = ""
    webhook: Annotated[
        str,
        typer.Option(
            "--webhook",
            metavar="HOST:PORT",
            help="Address of the admission webhook, as the API server reaches it. Default: none.",
        ),
    ] = ""
    webhook_certificates: Annotated[
        str | None,
        typer.Option(
            "--webhook-certificates",
            metavar="DIR",
            help="Folder with tls.crt, tls.key and ca.crt, reread on changes. Default: an authority of its own.",
        ),
    ] = None
    webhook_configuration: Annotated[
        str,
        typer.Option(
            "--webhook-configuration",
            metavar="NAME",
            help="Existing ValidatingWebhookConfiguration to add the authority to. Default: one of its own.",
        ),
    ] = ""
    webhook_cleanup: Annotated[
        bool, typer.Option("--webhook-cleanup", help="Remove the registration of the webhook at the end.")
    ] = False
    off: OffOption = ()
    allowed_domains: AllowedDomainOption = ()
    own: Annotated[
        tuple[str, ...],
        typer.Option(
            "--own",
            metavar="KIND",
            help="Kind to own, even if another operator owns it. May be repeated. Default: those without an owner.",
        ),
    ] = ()
    lease_namespace: Annotated[
        str,
        typer.Option("--lease-namespace", metavar="NAME", help="Namespace of the lease. Default: the context's."),
    ] = ""
    debug: DebugOption = False


@operator.callback(invoke_without_command=True)
@with_options(OperatorOptions)
def _operator(options: OperatorOptions) -> None:
    if get_current_context().invoked_subcommand is not None:
        return
    from coterie.cli.output.errors import reporting

    with reporting(Output.TABLE, debug=options.debug):
        from coterie.cli.handlers.operator import run

        run(options)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCrdsOptions:
    """A call of `coterie operator crds` as it was written."""

    beside_grove: Annotated[
        bool,
        typer.Option("--beside-grove", help="Only what Grove lacks: ClusterTopology, without Grove's short name."),
    ] = False
    debug: DebugOption = False


@operator.command("crds", epilog=exit_code_help())
@with_options(OperatorCrdsOptions)
def operator_crds(options: OperatorCrdsOptions) -> None:
    """Print the definitions of ClusterTopology and ClusterTopologyBinding.

    \b
    Examples:
      coterie operator crds | kubectl apply --server-side -f -
      coterie operator crds | kubectl diff --server-side -f -
      coterie operator crds --beside-grove | kubectl apply --server-side -f -
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.output.errors import reporting

    with reporting(Output.TABLE, debug=options.debug):
        from coterie.cli.handlers.operator import print_crds

        print_crds(options)
