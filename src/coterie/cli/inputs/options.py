"""Options that several commands share, written once. Light on purpose: imported whenever any command runs."""

from __future__ import annotations

from typing import Annotated

import typer

from coterie.cli.inputs.completion import configured_pools

_SOURCE = (
    "JSON of `kubectl get nodes,pods -A -o json`, a cluster file, or - for standard input. "
    "Default: the cluster file of the pool's backend."
)

SourceArgument = Annotated[str | None, typer.Argument(metavar="SRC", help=_SOURCE)]
ClusterOption = Annotated[str | None, typer.Option("--cluster", "-c", metavar="SRC", help=_SOURCE)]
ConfigOption = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", envvar="COTERIE_CONFIG", help="Backends and pools (coterie.yaml)."),
]
PoolOption = Annotated[
    str | None,
    typer.Option(
        "--pool", "-p", metavar="NAME", help="Pool of the configuration to use.", autocompletion=configured_pools
    ),
]
LevelsOption = Annotated[
    str | None,
    typer.Option("--levels", metavar="NAME=LABEL,...", help="Topology for this call, coarsest level first."),
]
TopologyOption = Annotated[
    str | None,
    typer.Option(
        "--topology",
        metavar="FILE[#NAME]",
        help="ClusterTopology whose levels to use; #NAME chooses one of several, of FILE or, alone, of the cluster.",
    ),
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a template value; numbers become numbers.")
]
SetStringOption = Annotated[
    list[str] | None, typer.Option("--set-string", metavar="KEY=VALUE", help="Set a template value as text.")
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show a traceback for unexpected errors.")]
PreferOption = Annotated[
    list[str] | None, typer.Option("--prefer", metavar="LEVEL", help="What if this level were only preferred?")
]
CoarsenOption = Annotated[
    list[str] | None, typer.Option("--coarsen", metavar="LEVEL", help="What if the next coarser level would do?")
]
TasksOption = Annotated[
    list[str] | None, typer.Option("--tasks", metavar="GROUP=N", help="What if a group had only its first N tasks?")
]
WithoutOption = Annotated[
    list[str] | None, typer.Option("--without", metavar="OWNER", help="What if this holder's pods were gone?")
]
UncordonOption = Annotated[
    list[str] | None, typer.Option("--uncordon", metavar="NODE", help="What if this node were back in service?")
]
TolerateOption = Annotated[
    list[str] | None, typer.Option("--tolerate", metavar="KEY", help="What if tasks tolerated the taint with this key?")
]
AllowExcludedOption = Annotated[bool, typer.Option("--allow-excluded", help="What if nodesExcluded were ignored?")]
