"""The shared inputs of commands: `SRC`, `--config`, `--pool`, `--levels` and `--topology`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from coterie.cli.inputs.options import ClusterOptions
from coterie.cli.inputs.service_location import service_of
from coterie.cli.output.formats import safe
from coterie.config.configuration import Config, Pool, parse_levels, read_config
from coterie.errors import Fault, Notice, SpecErrors, UsageError
from coterie.frontends.grove.topology_set import read_topologies
from coterie.inspection.labels import guessed_notices, pool_nodes, with_guessed_levels
from coterie.planning.inputs import (
    TopologyChoice,
    pool_for,
    read_snapshot,
    snapshot_drift,
    topology_notices,
    with_topologies,
)
from coterie.planning.inputs import collect as collect  # noqa: PLC0414 - commands take it from here
from coterie.sources import Snapshot
from coterie.sources.limits import STANDARD_INPUT, read_bytes
from coterie.topology.check import LabelFinding
from coterie.topology.cluster import Cluster
from coterie.topology.levels import Topology

LIVE = "context:"


@dataclass(frozen=True, slots=True)
class ClusterInput:
    """The inputs that the options name; `cluster` holds the pool's nodes only, `whole` all of them.

    `drift` are the differences between the scheduler's own topologies in the cluster and the declared ones.
    """

    cluster: Cluster
    whole: Cluster
    pool: Pool
    config: Config | None
    notices: tuple[Notice, ...]
    drift: tuple[LabelFinding, ...] = ()

    @property
    def topology(self) -> Topology:
        """The levels of the pool."""
        return self.pool.topology


def read_cluster_input(source: ClusterOptions) -> ClusterInput:
    """Return the cluster of a call and its pool; faults of all files are reported together.

    Where no levels are given, they are guessed from well-known labels.
    """
    if named_files(source).count("-") > 1:
        hint = "Use - for one of the cluster, --config and --topology."
        raise UsageError("standard input can be read only once", hint)
    faults: list[Fault] = []
    levels, config = read_pools(faults, source)
    snapshot = read_cluster(faults, source, config, None)
    if faults or snapshot is None:
        raise SpecErrors(faults)
    pool = pool_for(config, source.pool, None, levels, snapshot)
    if not pool.topology.levels:
        pool = with_guessed_levels(pool, snapshot.cluster)
    cluster = pool_nodes(snapshot.cluster, pool)
    notices = (*snapshot.notices, *topology_notices(config, levels, snapshot, pool))
    drift = snapshot_drift(snapshot)
    return ClusterInput(cluster, snapshot.cluster, pool, config, notices, drift)


def read_pools(faults: list[Fault], source: ClusterOptions) -> tuple[Topology | TopologyChoice | None, Config | None]:
    """Return `--levels` or `--topology`, and `--config`; None for those not given, and for those with faults."""
    text, file, chart = source.levels, source.config, source.topology
    if text is not None and chart is not None:
        raise UsageError("--levels and --topology both define the levels", "Remove one of the two options.")
    levels: Topology | TopologyChoice | None = None
    if text is not None:
        levels = collect(faults, lambda: parse_levels(text))
    elif chart is not None:
        levels = collect(faults, lambda: read_topology_choice(chart))
    config = None if not file else collect(faults, lambda: read_config(read_input(file), file))
    return levels, config


def named_files(source: ClusterOptions) -> tuple[str | None, ...]:
    """Return the files that the options name; of these and a command's own files, one may be standard input."""
    return source.cluster, source.config, _split(source.topology)[0]


def read_topology_choice(text: str) -> TopologyChoice:
    """Return the topologies of `FILE`, `FILE#NAME`, or `#NAME` for one that is elsewhere in the call."""
    file, name = _split(text)
    if file is None:
        return TopologyChoice(name=name)
    return TopologyChoice(shown(file), name, read_topologies(read_input(file), shown(file)))


def _split(text: str | None) -> tuple[str | None, str | None]:
    """Return file and name of `FILE#NAME`; an existing file with a # in its own name is taken whole."""
    if text is None:
        return None, None
    file, _, name = text.rpartition("#") if "#" in text and not Path(text).exists() else (text, "", "")
    if not name and text.endswith("#") and file != text:
        raise UsageError(f"--topology {text} names no topology", "Write its name after the #, or leave the # out.")
    if not file and not name:
        raise UsageError("--topology is empty", "Name a file that holds a ClusterTopology.")
    return file or None, name or None


def read_cluster(
    faults: list[Fault], source: ClusterOptions, config: Config | None, workflow_pool: str | None
) -> Snapshot | None:
    """Return the named cluster, or that of the chosen pool's backend.

    `workflow_pool` is the pool that a workflow names. Raises `UsageError` when there is none, unless faults explain it.
    """
    name = source.cluster or (backend_cluster(source, config, workflow_pool) if config else None)
    if name is None:
        if faults:
            return None
        raise UsageError(
            "no cluster was named",
            "Pass a cluster file, the JSON of `kubectl get nodes,pods -A -o json`, or context:NAME for a live one.",
        )
    return collect(faults, lambda: read_source(name))


def read_source(name: str, *, gangs: bool = False) -> Snapshot:
    """Return the cluster that SRC names: a file, standard input for `-`, or a live one for `context:NAME`."""
    if not name.startswith(LIVE):
        return read_snapshot(read_input(name), shown(name))
    from stamina.instrumentation import set_on_retry_hooks

    from coterie.sources.live import read_live

    set_on_retry_hooks(())  # its own message about a retry would go to standard output, among the results
    return with_topologies(read_live(name, gangs=gangs), name)


def backend_cluster(source: ClusterOptions, config: Config, workflow_pool: str | None) -> str:
    """Return the cluster of the chosen pool's backend: a file, relative to the configuration, or a context."""
    pool = pool_for(config, source.pool, workflow_pool, Topology(), None)
    backend = config.backends[pool.backend]
    if backend.cluster is None and backend.context is not None:
        return f"{LIVE}{backend.context}"
    if backend.cluster is None:
        raise UsageError(
            f'backend "{backend.name}" of pool "{pool.name}" has neither a cluster file nor a context',
            "Pass --cluster context:NAME, or a file with the JSON of `kubectl get nodes,pods -A -o json`.",
        )
    return str(Path(source.config or ".").parent / backend.cluster)


def only_one(argument: str | None, source: ClusterOptions) -> ClusterOptions:
    """Return the nodes of a call that takes its cluster as an argument or as --cluster."""
    if argument is None:
        return source
    if source.cluster is not None:
        message = f"{argument} and --cluster {source.cluster} both name the cluster"
        raise UsageError(message, "Remove one of the two options.")
    return replace(source, cluster=argument)


def say_service(source: ClusterOptions, pool: Pool, command: str) -> None:
    """Print which command shows the usage of a service, where a call only saw the file of the service's cluster."""
    if source.cluster is None and source.config and pool.traits.embedded and (url := service_of(source.config)):
        said = f"this is the cluster file alone; for what the service at {url} runs: {command}"
        typer.echo(safe(f"note: {said}"), err=True)


def read_input(source: str) -> bytes:
    """Return the bytes of a file, or of standard input for `-`."""
    if source.startswith(LIVE):
        hint = "Take a snapshot: kubectl get nodes,pods -A -o json > snapshot.json, and name that file instead."
        raise UsageError(f"{source} is a live cluster, and a file is needed here", hint)
    return read_bytes(source, sys.stdin.buffer)


def shown(source: str) -> str:
    """Return the name of a source in messages."""
    return STANDARD_INPUT if source == "-" else source


def source_title(source: ClusterOptions, config: Config | None) -> str:
    """Return the name of a call's cluster for other people: of a file, the last part of its path."""
    name = source.cluster or (backend_cluster(source, config, None) if config else "-")
    return name if name.startswith(LIVE) else shown(Path(name).name)


def warn(notices: Sequence[Notice]) -> None:
    """Print warnings on standard error."""
    for notice in notices:
        where = f" ({notice.place.file}:{notice.place.line})" if notice.place and notice.place.line else ""
        typer.echo(safe(f"warning[{notice.code}]: {notice.message}{where}"), err=True)


def notices_of(world: ClusterInput) -> tuple[Notice, ...]:
    """Return the notices about the cluster of a call: findings of the snapshot, guessed levels."""
    return (*world.notices, *guessed_notices(world.pool))
