"""What commands share before they do anything: reading `SRC`, `--config`, `--pool` and `--levels`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import typer

from coterie.cli.output import safe
from coterie.errors import Fault, Notice, SpecErrors, UsageError
from coterie.frontends.config import Config, Pool, parse_levels, read_config
from coterie.planning.inputs import pool_for, read_snapshot
from coterie.planning.labels import guess_levels, guessed_message, pool_nodes
from coterie.sources import Snapshot
from coterie.sources.limits import read_bytes
from coterie.topology.cluster import Cluster
from coterie.topology.levels import Topology

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """The options that say which nodes a call is about, as they were written."""

    cluster: str | None
    config: str | None
    pool: str | None
    levels: str | None


@dataclass(frozen=True, slots=True)
class World:
    """What the options name. `cluster` holds the pool's nodes only, `whole` all of them."""

    cluster: Cluster
    whole: Cluster
    pool: Pool
    config: Config | None
    notices: tuple[Notice, ...]
    guessed: bool

    @property
    def topology(self) -> Topology:
        """The levels of the pool."""
        return self.pool.topology


def read_world(source: Source) -> World:
    """Read the cluster of a call and the pool it is seen through; faults of all files are reported together.

    Where nothing says which levels there are, they are guessed from well-known labels.
    """
    if source.cluster == source.config == "-":
        raise UsageError("standard input can be read once only", "Use - for the cluster or for --config, not for both.")
    faults: list[Fault] = []
    levels, config = read_pools(faults, source)
    snapshot = read_cluster(faults, source, config, None)
    if faults or snapshot is None:
        raise SpecErrors(faults)
    pool = pool_for(config, source.pool, None, levels, snapshot)
    cluster = pool_nodes(snapshot.cluster, pool)
    guessed = guess_levels(cluster) if not pool.topology.levels else Topology()
    if guessed.levels:
        pool = pool.with_topology(guessed)
    return World(cluster, snapshot.cluster, pool, config, snapshot.notices, guessed=bool(guessed.levels))


def read_pools(faults: list[Fault], source: Source) -> tuple[Topology | None, Config | None]:
    """Read `--levels` and `--config`; None for what was not given, and for what has faults."""
    text, file = source.levels, source.config
    levels = None if text is None else collect(faults, lambda: parse_levels(text))
    config = None if not file else collect(faults, lambda: read_config(read_input(file), file))
    return levels, config


def read_cluster(faults: list[Fault], source: Source, config: Config | None, wished: str | None) -> Snapshot | None:
    """Read the cluster that is named, or that of the backend behind the chosen pool.

    `wished` is the pool that a workflow names. Raises `UsageError` when there is none, unless faults explain it.
    """
    name = source.cluster or (backend_cluster(source, config, wished) if config else None)
    if name is None:
        if faults:
            return None
        raise UsageError(
            "no cluster was named", "Pass a cluster file, or the JSON of `kubectl get nodes,pods -A -o json`."
        )
    return collect(faults, lambda: read_snapshot(read_input(name), shown(name)))


def backend_cluster(source: Source, config: Config, wished: str | None) -> str:
    """Return the cluster file of the backend behind the chosen pool; it is relative to the configuration."""
    pool = pool_for(config, source.pool, wished, Topology(), None)
    backend = config.backends[pool.backend]
    if backend.cluster is None:
        raise UsageError(
            f'backend "{backend.name}" of pool "{pool.name}" has no cluster file',
            "Pass --cluster FILE with the JSON of `kubectl get nodes,pods -A -o json`.",
        )
    return str(Path(source.config or ".").parent / backend.cluster)


def collect(faults: list[Fault], read: Callable[[], T]) -> T | None:
    """Return what `read` reads; None, with its faults added, when it is wrong."""
    try:
        return read()
    except SpecErrors as error:
        faults.extend(error.faults)
        return None


def read_input(source: str) -> bytes:
    """Return the bytes of a file, or of standard input for `-`."""
    if source.startswith("context:"):
        raise UsageError(
            "a live cluster cannot be read directly",
            "Take a snapshot: kubectl get nodes,pods -A -o json > snapshot.json, and name that file instead.",
        )
    return read_bytes(source, sys.stdin.buffer)


def shown(source: str) -> str:
    """Return a source as messages name it."""
    return "standard input" if source == "-" else source


def warn(notices: Sequence[Notice]) -> None:
    """Say warnings on standard error."""
    for notice in notices:
        where = f" ({notice.place.file}:{notice.place.line})" if notice.place and notice.place.line else ""
        typer.echo(safe(f"warning[{notice.code}]: {notice.message}{where}"), err=True)


def notices_of(world: World) -> tuple[Notice, ...]:
    """Return what the reader should know of a world before looking at it: odd snapshots, guessed levels."""
    if not world.guessed:
        return world.notices
    return (*world.notices, Notice("LevelsGuessed", guessed_message(world.topology)))
