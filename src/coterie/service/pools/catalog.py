"""The current backends and pools: those of the configuration file, and those that admins applied.

Files are read again at intervals. For one that has become invalid, what it said before stays in force, and `problem`
says why; it keeps nothing else from being read.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from coterie.backends.base import registry
from coterie.config.configuration import Backend, Config, Pool, choose_pool, read_config
from coterie.document.located import Document, Step, decode, load
from coterie.errors import CoterieError, Fault, Hint, NotFound, Notice, Place, SpecErrors, Unavailable, UsageError
from coterie.planning.inputs import NO_TOPOLOGIES, find_topology, read_snapshot
from coterie.service.driver.node_health import unchanged
from coterie.service.pools.live_clusters import CONNECTING, LiveClusters
from coterie.service.settings import Settings
from coterie.sources import Snapshot
from coterie.sources.limits import read_bytes
from coterie.store import PoolRecord
from coterie.topology.cluster import CPU, GPU, MEMORY, Cluster, Node
from coterie.topology.levels import HOSTNAME

Json = dict[str, Any]

DEFAULT = "default"

# How many faults of one file a problem names.
_MOST_FAULTS = 3

# A configuration, with the documents of its pools.
_Base = tuple[Config, Mapping[str, Any]]

# What tells one content of a file from another: its time, its size and its number.
_Mark = tuple[int, int, int]

# The place of a path in a user's text: of its key where the second argument is true, else of its value.
PlaceOf = Callable[[tuple[Step, ...], bool], Place]


@dataclass(frozen=True, slots=True)
class CatalogPool:
    """A pool: its definition, its document, and its origin; `unusable` is the reason why its levels are unknown."""

    pool: Pool
    document: Mapping[str, Any]
    managed: bool
    version: int = 0
    unusable: str = ""
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolCatalog:
    """All backends and pools at one moment; `number` grows with each change that concerns workflows.

    `clusters` has the nodes of the backends that run workflows here, `elsewhere` those that files declare for others.
    `unreached` are the backends whose clusters cannot be reached, each with the reason, or were not reached so far;
    what is known of them, if anything, is out of date.
    """

    backends: Mapping[str, Backend]
    clusters: Mapping[str, Snapshot]
    pools: Mapping[str, CatalogPool]
    file: str = ""
    number: int = 0
    elsewhere: Mapping[str, Snapshot] = field(default_factory=dict)
    unreached: Mapping[str, str] = field(default_factory=dict)

    def find(self, name: str | None, preferred: str | None = None) -> CatalogPool:
        """Return the pool that the call names, else the one that the workflow names, else the only one."""
        if not self.pools:
            hint = Hint("An admin can create one with `coterie pool apply`.", "coterie pool apply")
            raise NotFound("there are no pools", hint)
        config = Config(self.backends, {key: known.pool for key, known in self.pools.items()}, "this service")
        return self.pools[choose_pool(config, name, preferred).name]

    def cluster(self, pool: Pool) -> Cluster:
        """Return the nodes of a pool's backend."""
        found = self.clusters.get(pool.backend)
        backend = self.backends.get(pool.backend)
        if found is None and backend is not None and backend.driven:
            why = self.unreached.get(pool.backend, CONNECTING)
            message = f'the cluster of backend "{pool.backend}" is not known: {why}'
            raise Unavailable(message, "Try again." if why == CONNECTING else "The service keeps trying.")
        if found is None and backend is not None and backend.traits.driven:
            raise UsageError(
                f'backend "{pool.backend}" has a cluster file and no context, so this service does not drive it',
                "An admin can give the backend the context of its cluster.",
            )
        if found is None:
            raise UsageError(
                f'the nodes of backend "{pool.backend}" are not known here',
                "This service knows the nodes of backends that it drives.",
            )
        return found.cluster


@dataclass(eq=False)
class LiveCatalog:
    """The maintainer of the current catalog; its methods may be called from any thread."""

    settings: Settings
    live: LiveClusters = field(default_factory=LiveClusters)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _catalog: PoolCatalog | None = None
    _marks: dict[str, _Mark] = field(default_factory=dict)
    _records: tuple[PoolRecord, ...] = ()
    _valid: _Base | None = None  # the last valid configuration
    problem: str = ""

    def current(self) -> PoolCatalog:
        """Return the current catalog; raise the faults of the files when they are read for the first time."""
        with self._lock:
            return self._catalog or self._read({})

    def refresh(self, records: Sequence[PoolRecord]) -> PoolCatalog:
        """Read the files again, and apply the stored pools; return the current catalog."""
        with self._lock:
            kept = self._catalog or self._read({})
            changed = any(_mark(path) != mark for path, mark in self._marks.items()) or self.live.changed()
            if not changed and tuple(records) == self._records:
                return kept
            self._records = tuple(records)
            # Taken before the files are read, so that one that is written meanwhile is read again.
            before, marks = {path: _mark(path) for path in self._marks}, dict[str, _Mark]()
            try:
                return self._read(marks)
            except (CoterieError, OSError) as error:
                # The previous configuration stays in force, with the news of its clusters and the stored pools.
                found = self._assembled(self._valid, marks) if self._valid else kept
                self._marks = before | marks
                self.problem = "; ".join(dict.fromkeys(filter(None, (_described(error), self.problem))))
                return found

    def _read(self, marks: dict[str, _Mark]) -> PoolCatalog:
        """Read all files, and add the mark of each before it is read."""
        base = self._base(marks)
        found = self._assembled(base, marks)
        self._valid = base
        return found

    def _assembled(self, given: _Base, marks: dict[str, _Mark]) -> PoolCatalog:
        """Return the catalog of a configuration; `problem` is that of its cluster files."""
        base, documents = given
        problems: list[str] = []
        # First: a configuration that names an unreadable file is not followed at all.
        declared = self._declared(base, marks, problems)
        self.live.follow(backend for name, backend in base.backends.items() if self._is_live(name, backend))
        # Before the snapshots: a cluster without a problem has one.
        unreached = self.live.problems()
        live = self.live.snapshots()
        known = self._catalog.clusters if self._catalog else {}
        clusters = _kept(known, declared | {name: live[name] for name in base.backends if name in live})
        backends = base.backends
        elsewhere = self._elsewhere(base, marks)
        snapshots = {**elsewhere, **clusters}
        pools = {
            name: _resolved(
                CatalogPool(pool, documents.get(name) or document_of(pool), managed=True, notices=_about(name, base)),
                snapshots,
            )
            for name, pool in base.pools.items()
        }
        for record in self._records:
            if record.name not in pools:
                pools[record.name] = _stored(record, backends, snapshots)
        self._marks, self.problem = marks, "; ".join(problems)
        kept = self._catalog
        found = PoolCatalog(backends, clusters, pools, base.file, kept.number if kept else 1, elsewhere, unreached)
        if kept is None:
            self._catalog = kept = found
        elif kept != found:
            self._catalog = kept = replace(found, number=kept.number + _differs(kept, found))
        return kept

    def _base(self, marks: dict[str, _Mark]) -> _Base:
        path, given = self.settings.config, self.settings.given
        if given is not None:
            return given.config, {}
        if path is None:
            machine = registry.EMBEDDED
            pool = Pool(DEFAULT, backend=machine, scheduler=machine)
            return Config({machine: Backend(machine, machine)}, {DEFAULT: pool}, ""), {}
        marks[str(path)] = _mark(str(path))
        data = read_bytes(str(path), sys.stdin.buffer)
        config = read_config(data, str(path))
        if not path.is_file() and any(backend.task_accounts for backend in config.backends.values()):
            # They are needed before the service reads its configuration, and a stream can be read once.
            hint = "Write the configuration to a file, or use --task-accounts."
            raise UsageError(f"task_accounts cannot be read from {path}, which is not a regular file", hint)
        return config, load(decode(data, str(path)), str(path)).data["pools"]

    def _declared(self, base: Config, marks: dict[str, _Mark], problems: list[str]) -> dict[str, Snapshot]:
        """Return the nodes of backends without a live cluster, for a file that became unreadable the last ones."""
        given = dict(self.settings.given.clusters) if self.settings.given else {}
        found: dict[str, Snapshot] = {}
        for name, backend in base.backends.items():
            if name in given:
                found[name] = given[name]
            elif backend.driven and not _is_live(backend) and backend.cluster is not None:
                try:
                    found[name] = self._snapshot(backend.cluster, marks)
                except (CoterieError, OSError) as error:
                    if (last := self._last(backend)) is None:
                        raise
                    found[name] = last
                    problems.append(_described(error))
            elif backend.traits.embedded:
                found[name] = Snapshot(this_machine())
        return found

    def _last(self, backend: Backend) -> Snapshot | None:
        """Return the last reading of a backend's file, if it is one of the same file."""
        known = self._catalog
        same = known is not None and known.backends.get(backend.name) == backend
        return known.clusters.get(backend.name) if known and same else None

    def _is_live(self, name: str, backend: Backend) -> bool:
        """Return whether the nodes of a backend are read from its cluster, and did not come with the settings."""
        return _is_live(backend) and not (self.settings.given and name in self.settings.given.clusters)

    def _elsewhere(self, base: Config, marks: dict[str, _Mark]) -> dict[str, Snapshot]:
        """Read the cluster files of backends on other machines; an unreadable one is ignored."""
        known = self._catalog.elsewhere if self._catalog else {}
        found: dict[str, Snapshot] = {}
        for name, backend in base.backends.items():
            if backend.cluster is not None and (not backend.driven or _is_live(backend)):
                with suppress(CoterieError, OSError):
                    found[name] = self._snapshot(backend.cluster, marks)
        return _kept(known, found)

    def _snapshot(self, cluster: str, marks: dict[str, _Mark]) -> Snapshot:
        folder = self.settings.config.parent if self.settings.config else Path()
        file = str(folder / cluster)
        marks[file] = _mark(file)
        return read_snapshot(read_bytes(file, sys.stdin.buffer), file)


def _described(error: Exception) -> str:
    """Return what is wrong with a file, with its name and line."""
    if not isinstance(error, SpecErrors):
        return str(error)
    places = (fault.place for fault in error.faults)
    where = ((f"{at.file}:{at.line}: " if at.line else f"{at.file}: ") if at else "" for at in places)
    said = [f"{begin}{fault.message}" for begin, fault in zip(where, error.faults, strict=True)]
    rest = len(said) - _MOST_FAULTS
    return "; ".join((*said[:_MOST_FAULTS], *((f"and {rest} more",) if rest > 0 else ())))


def _differs(kept: PoolCatalog, found: PoolCatalog) -> bool:
    """Return whether anything changed for workflows; a known cluster that does not answer for a while is no change."""

    def without_known(catalog: PoolCatalog) -> PoolCatalog:
        never = {name: why for name, why in catalog.unreached.items() if name not in catalog.clusters}
        return replace(catalog, unreached=never)

    return without_known(kept) != without_known(found)


def _is_live(backend: Backend) -> bool:
    """Return whether the nodes of a backend are read from its cluster."""
    return backend.driven and backend.traits.kubernetes


def _kept(known: Mapping[str, Snapshot], found: Mapping[str, Snapshot]) -> dict[str, Snapshot]:
    """Return the earlier reading if the new one is equal, so that its nodes are not processed again."""
    return {name: known[name] if name in known and unchanged(known[name], one) else one for name, one in found.items()}


def read_pool(
    name: str,
    document: Mapping[str, Any],
    backends: Mapping[str, Backend],
    place_of: PlaceOf | None = None,
) -> tuple[Pool, tuple[Notice, ...]]:
    """Return one pool as it is under `pools` of a configuration; raise `SpecErrors` with paths below it.

    The notices are for its admin. `place_of` returns the place of a path in the user's own text, of its key or value.
    """
    stands = {
        key: {
            field: value
            for field in ("scheduler", "cluster", "context", "namespace")
            if (value := getattr(backend, field)) is not None
        }
        for key, backend in backends.items()
    }
    try:
        text = json.dumps({"backends": stands, "pools": {name: document}})
    except (TypeError, ValueError) as error:
        raise UsageError(f'pool "{name}" cannot be stored: {error}', "A pool is a mapping of fields.") from None
    try:
        config = read_config(text.encode(), "pool")
    except SpecErrors as error:
        raise SpecErrors([_below_pool(fault, name, load(text, "pool"), place_of) for fault in error.faults]) from None
    return config.pools[name], _about(name, config)


def _below_pool(fault: Fault, name: str, document: Document, place_of: PlaceOf | None) -> Fault:
    """Return a fault of a configuration with its path, and its place in the user's text, below the pool."""
    path = fault.path[2:] if fault.path[:2] == ("pools", name) else fault.path
    on_key = fault.place == document.place(fault.path, key=True) != document.place(fault.path)
    return replace(fault, path=path, place=place_of(path, on_key) if place_of else None)


def _about(pool: str, config: Config) -> tuple[Notice, ...]:
    return tuple(notice for notice in config.notices if notice.path[:2] == ("pools", pool))


def document_of(pool: Pool) -> Json:
    """Return the document of a pool that was never written as one."""
    document: Json = {"backend": pool.backend}
    if pool.node_selector:
        document["node_selector"] = dict(pool.node_selector)
    if pool.topology.levels:
        document["topology_keys"] = [{"key": level.name, "label": level.label} for level in pool.topology.levels]
    return document


def this_machine() -> Cluster:
    """Return the machine that the service runs on, as a cluster of one node."""
    name = socket.gethostname().split(".")[0].lower() or "localhost"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    gpus = sum(path.name.removeprefix("nvidia").isdigit() for path in Path("/dev").glob("nvidia*"))
    amounts = {CPU: 1000 * (os.cpu_count() or 1), MEMORY: memory, GPU: gpus}
    return Cluster.of([Node(name, {HOSTNAME: name}, amounts)])


def _resolved(known: CatalogPool, clusters: Mapping[str, Snapshot]) -> CatalogPool:
    """Return a pool with the levels of the ClusterTopology that it names."""
    pool = known.pool
    if pool.topology_name is None or pool.topology.levels:
        return known
    try:
        asked = f'pool "{pool.name}" takes its levels from'
        found = find_topology(pool.topology_name, asked, None, clusters.get(pool.backend), NO_TOPOLOGIES)
    except (NotFound, SpecErrors) as error:
        return replace(known, unusable=str(error))
    return replace(known, pool=pool.with_topology(found))


def _stored(record: PoolRecord, backends: Mapping[str, Backend], clusters: Mapping[str, Snapshot]) -> CatalogPool:
    try:
        pool, notices = read_pool(record.name, record.spec, backends)
    except CoterieError as error:
        # Its backend has left the configuration. The pool stays visible, and accepts nothing.
        backend = str(record.spec.get("backend") or next(iter(backends), ""))
        pool = Pool(record.name, backend=backend, scheduler="unknown")
        return CatalogPool(pool, record.spec, managed=False, version=record.version, unusable=str(error))
    return _resolved(CatalogPool(pool, record.spec, managed=False, version=record.version, notices=notices), clusters)


def _mark(path: str) -> _Mark:
    try:
        found = os.stat(path)  # noqa: PTH116 - the same words for every system error
    except OSError:
        return 0, 0, 0
    return found.st_mtime_ns, found.st_size, found.st_ino
