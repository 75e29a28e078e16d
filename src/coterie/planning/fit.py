"""The question `how large a gang fits here`: the shape it is about, the answer with its remarks, and its JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.errors import Notice, UsageError
from coterie.frontends.config import Pool
from coterie.gang.tree import Shape
from coterie.placement.eligibility import eligible
from coterie.placement.fitting import Fitting, Room, fitting
from coterie.planning.mapping import level_depth
from coterie.planning.words import count
from coterie.topology.cluster import CPU, GPU, MEMORY
from coterie.topology.domains import Domains
from coterie.topology.quantity import amount
from coterie.topology.ranges import fold

VERSION = 1

# Less memory than this is a forgotten unit, not a task.
_SMALLEST = 1 << 20

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wish:
    """What one task asks for, as it was written, and how many tasks a gang has if that is known."""

    gpus: int = 0
    cpu: str | None = None
    memory: str | None = None
    tasks: int | None = None

    def requests(self) -> tuple[tuple[str, int], ...]:
        """Return the amounts; raise `UsageError` for what is no amount, and for a task that asks for nothing."""
        asked = {GPU: self.gpus}
        for option, resource, text in (("--cpu", CPU, self.cpu), ("--memory", MEMORY, self.memory)):
            try:
                asked[resource] = amount(resource, text) if text is not None else 0
            except ValueError as error:
                raise UsageError(f"{option}: {error}", "Examples: --cpu 16, --cpu 500m, --memory 256Gi") from None
        if 0 < asked[MEMORY] < _SMALLEST:
            raise UsageError(f"--memory {self.memory} is less than a mebibyte", "Write a unit: --memory 256Gi")
        found = tuple(sorted((name, value) for name, value in asked.items() if value > 0))
        if not found:
            raise UsageError("a task that asks for nothing fits any number of times", "Add --gpus, --cpu or --memory.")
        return found

    def words(self) -> str:
        """Return what one task asks for, as people say it."""
        parts = [f"{self.gpus} GPU"] if self.gpus else []
        parts += [f"{self.cpu} CPU"] if self.cpu else []
        parts += [f"{self.memory} memory"] if self.memory else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Answer:
    """How large a gang fits, per domain of a level."""

    wish: Wish
    level: str
    pool: str
    fitting: Fitting
    notices: tuple[Notice, ...]


def answer(wish: Wish, level: str, pool: Pool, domains: Domains) -> Answer:
    """Count what fits on a pool's nodes; raise when the level or an amount makes no sense."""
    requests = wish.requests()
    level_depth(domains, level)
    shape = Shape(requests=requests, selector=pool.node_selector, tolerations=pool.tolerations)
    found = fitting(shape, domains, level, labelled_only=pool.scheduler == "kai")
    return Answer(wish, level, pool.name, found, tuple(_notices(wish, level, pool, shape, domains, found)))


def fit_json(found: Answer) -> Json:
    """Return an answer as data; the fields about gangs are there when their size was given."""
    tasks = found.wish.tasks
    total = found.fitting.total
    return {
        "version": VERSION,
        "pool": found.pool,
        "level": found.level,
        "task": dict(found.wish.requests()),
        "tasks": tasks,
        "domains": [{"domain": list(room.domain), **_room(room, tasks)} for room in found.fitting.rooms],
        "total": _room(total, None) | (dict(zip(_GANGS, found.fitting.gangs(tasks), strict=True)) if tasks else {}),
        "outside": _room(found.fitting.outside, None),
        "warnings": [{"code": notice.code, "message": notice.message} for notice in found.notices],
    }


_GANGS = ("gangs_now", "gangs_empty")


def _room(room: Room, tasks: int | None) -> Json:
    fits = {"now": room.now, "empty": room.empty, "nodes": room.nodes, "free_gpus": room.free_gpus}
    return fits | ({"gangs_now": room.gangs(tasks), "gangs_empty": room.empty_gangs(tasks)} if tasks else {})


def _notices(wish: Wish, level: str, pool: Pool, shape: Shape, domains: Domains, found: Fitting) -> Iterator[Notice]:
    cluster = domains.cluster
    gpus = cluster.allocatable[cluster.resource(GPU)] > 0
    barred = ~eligible(shape, cluster, lift_transient=False) & (gpus if wish.gpus else np.ones_like(gpus))
    if barred.any():
        nodes = [cluster.names[node] for node in np.flatnonzero(barred)]
        keys = {taint.key for node in np.flatnonzero(barred) for taint in cluster.taint_sets[cluster.taint_set[node]]}
        yield Notice(
            "TaintNotTolerated",
            f"{count(len(nodes), 'node')} left out because of taints ({', '.join(sorted(keys))}): {fold(nodes)}. "
            "Tolerations are a pool's: --config, --pool",
        )
    if found.outside.empty:
        yield Notice(
            "OutsideLevel",
            f"{count(found.outside.now, 'more task')} would fit on {count(found.outside.nodes, 'node')} in no {level}, "
            "which cannot serve a gang that must share one",
        )
    limit = pool.gpus.limit
    if wish.gpus and limit is not None and limit // wish.gpus < max((room.now for room in found.rooms), default=0):
        most = count(limit // wish.gpus, "such task")
        yield Notice("OverQuota", f'the limit of pool "{pool.name}", {limit} GPUs, allows {most} at once')
