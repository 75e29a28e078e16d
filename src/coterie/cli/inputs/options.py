"""The options that several commands share; imports little, since every command loads it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated

import typer

from coterie.cli.inputs.completion import configured_pools

_SOURCE = (
    "JSON of `kubectl get nodes,pods -A -o json`, a cluster file, or - for standard input. "
    "Default: the cluster file of the pool's backend."
)

SourceArgument = Annotated[str | None, typer.Argument(metavar="SRC", help=_SOURCE)]
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
    typer.Option("--levels", metavar="NAME=LABEL,...", help="Levels for this call, coarsest first."),
]
TopologyOption = Annotated[
    str | None,
    typer.Option(
        "--topology",
        metavar="FILE[#NAME]",
        help="ClusterTopology to take levels from; #NAME picks one of several in FILE or, alone, in the cluster.",
    ),
]


class Feature(StrEnum):
    """The features that a cluster may lack and that rules depend on."""

    TOPOLOGY = "topology"
    MNNVL = "mnnvl"
    GROVE = "grove"
    KAI = "kai"


OffOption = Annotated[
    tuple[Feature, ...],
    typer.Option(
        "--off",
        metavar="topology|mnnvl|grove|kai",
        help="A feature that the cluster lacks: topology-aware scheduling, multi-node NVLink, Grove, KAI. "
        "May be repeated.",
    ),
]
AllowedDomainOption = Annotated[
    tuple[str, ...],
    typer.Option(
        "--allowed-domain",
        metavar="NAME",
        help="A domain that new topologies may declare and new PodCliqueSets and graph deployments may name. "
        "May be repeated. Default: any.",
    ),
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show a traceback for unexpected errors.")]


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The options that select the nodes of a call, as written."""

    cluster: Annotated[str | None, typer.Option("--cluster", "-c", metavar="SRC", help=_SOURCE)] = None
    config: ConfigOption = None
    pool: PoolOption = None
    levels: LevelsOption = None
    topology: TopologyOption = None


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """The options that select a pool, or levels in its place, of a command that may read a cluster, as written."""

    config: ConfigOption = None
    pool: PoolOption = None
    levels: LevelsOption = None
    topology: TopologyOption = None

    def with_cluster(self, cluster: str | None) -> ClusterOptions:
        """Return the selection of the nodes of a call, with the cluster that it names, if any."""
        return ClusterOptions(cluster, self.config, self.pool, self.levels, self.topology)


@dataclass(frozen=True, slots=True)
class TemplateOptions:
    """The options with values for the template of a workflow."""

    sets: Annotated[
        tuple[str, ...],
        typer.Option("--set", metavar="KEY=VALUE", help="Set a template value; numbers become numbers."),
    ] = ()
    set_strings: Annotated[
        tuple[str, ...], typer.Option("--set-string", metavar="KEY=VALUE", help="Set a template value as text.")
    ] = ()


@dataclass(frozen=True, slots=True)
class WhatIfOptions:
    """The options with hypothetical changes of the workload or of the cluster."""

    prefer: Annotated[
        tuple[str, ...], typer.Option("--prefer", metavar="LEVEL", help="Prefer this level instead of requiring it.")
    ] = ()
    coarsen: Annotated[
        tuple[str, ...], typer.Option("--coarsen", metavar="LEVEL", help="Ask for the next coarser level instead.")
    ] = ()
    tasks: Annotated[
        tuple[str, ...], typer.Option("--tasks", metavar="GROUP=N", help="Run only the first N tasks of a group.")
    ] = ()
    without: Annotated[
        tuple[str, ...], typer.Option("--without", metavar="OWNER", help="Assume that this owner's pods are gone.")
    ] = ()
    uncordon: Annotated[
        tuple[str, ...], typer.Option("--uncordon", metavar="NODE", help="Assume that this node is not cordoned.")
    ] = ()
    tolerate: Annotated[
        tuple[str, ...],
        typer.Option("--tolerate", metavar="KEY", help="Let tasks tolerate the taint with this key."),
    ] = ()
    allow_excluded: Annotated[bool, typer.Option("--allow-excluded", help="Ignore nodesExcluded.")] = False

    def params(self) -> dict[str, list[str] | bool]:
        """Return the given options as API parameters."""
        given = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value if value is True else list(value) for name, value in given if value}
