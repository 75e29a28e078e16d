"""The options of `coterie validate`. Light on purpose: it is imported whenever any command runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from coterie.cli.exit_codes import Exit, told
from coterie.cli.inputs.options import (
    ConfigOption,
    DebugOption,
    LevelsOption,
    PoolOption,
    SetOption,
    SetStringOption,
    TopologyOption,
)
from coterie.cli.output.formats import Output

HELP = told(words={Exit.DONE: "valid, with or without warnings", Exit.INVALID: "refused"})


class Feature(StrEnum):
    """What a cluster may lack that rules depend on."""

    TOPOLOGY = "topology"
    MNNVL = "mnnvl"
    GROVE = "grove"
    KAI = "kai"


def validate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Workflows, PodCliqueSets, graph deployments, ClusterTopologies; - reads standard input.",
        ),
    ],
    old: Annotated[
        list[str] | None,
        typer.Option(
            "--old",
            metavar="FILE",
            help="What stood there before: objects that it has too are judged as updates. May be repeated.",
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse also what only the operators of today refuse, such as packDomain."),
    ] = False,
    off: Annotated[
        list[Feature] | None,
        typer.Option(
            "--off",
            metavar="topology|mnnvl|grove|kai",
            help="What the cluster does not have: topology-aware scheduling, multi-node NVLink, Grove, KAI. "
            "May be repeated.",
        ),
    ] = None,
    config: ConfigOption = None,
    pool: PoolOption = None,
    levels: LevelsOption = None,
    topology: TopologyOption = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            "-c",
            metavar="SRC",
            help="A snapshot or context:NAME whose ClusterTopologies are known; not needed.",
        ),
    ] = None,
    sets: SetOption = None,
    set_strings: SetStringOption = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print what was found.")] = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Judge files by the rules alone, as an API server would: new objects, and with --old updates of them.

    Needs no cluster. ClusterTopologies are known from the files themselves, --topology and --cluster; where none is,
    names and levels are not checked, and a warning says so.

    \b
    Examples:
      coterie validate deploy/*.yaml --topology cluster/topology.yaml
      # a change, against what is on the main branch
      git show main:deploy/chat.yaml | coterie validate deploy/chat.yaml --old - -o json
    """  # noqa: D301 - \b keeps the examples' lines apart in the help text
    from coterie.cli.handlers.validate import Ask, run
    from coterie.cli.inputs.source import Source
    from coterie.cli.output.errors import reporting

    with reporting(output, debug=debug):
        run(
            Ask(
                files=tuple(files),
                old=None if old is None else tuple(old),
                source=Source(cluster, config, pool, levels, topology),
                sets=tuple(sets or ()),
                set_strings=tuple(set_strings or ()),
                strict=strict,
                off=frozenset(each.value for each in off or ()),
                output=output,
            )
        )
