"""Hypothetical changes as users write them, in options or in a query, checked against the existing objects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from coterie.errors import NotFound, UsageError, did_you_mean
from coterie.gang.tree import Path
from coterie.placement.whatif import AllowExcluded, Change, Coarsen, Keep, Prefer, Release, Tolerate, Uncordon
from coterie.planning.workload import Workload
from coterie.topology.abbreviations import full_name
from coterie.topology.cluster import Cluster

_COUNT = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The requested changes: relaxed levels and groups, holders gone, nodes back, taints tolerated, exclusions off."""

    prefer: tuple[str, ...] = ()
    coarsen: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    uncordon: tuple[str, ...] = ()
    tolerate: tuple[str, ...] = ()
    allow_excluded: bool = False


AS_IT_IS = WhatIf()
_SHOWN = 16
# A comparison with more names takes too long.
_COMPARED = 1000


def parse_changes(ask: WhatIf, workloads: Sequence[Workload], cluster: Cluster) -> tuple[Change, ...]:
    """Return the changes of a call; raise `UsageError` for one that names nothing."""
    levels = list(dict.fromkeys(name for workload in workloads for name in workload.pool.topology.names))
    return (
        *(Prefer(_known("level", level, levels)) for level in ask.prefer),
        *_coarser(ask.coarsen, workloads, levels),
        *(_keep(text, workloads) for text in ask.tasks),
        *(Release(_known("holder", owner, {pod.owner for pod in cluster.pods if pod.owner})) for owner in ask.without),
        *(Uncordon((_known("node", full_name(node, cluster.names), cluster.names),)) for node in ask.uncordon),
        *(Tolerate((_known("taint", key, _taints(cluster)),)) for key in ask.tolerate),
        *([AllowExcluded()] if ask.allow_excluded else []),
    )


def _known(kind: str, word: str, known: Iterable[str]) -> str:
    words = sorted(known)
    if word not in words:
        more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
        listed = f"Known: {', '.join(words[:_SHOWN])}{more}." if words else f"There are no {kind}s."
        guess = did_you_mean(word, words) if len(words) <= _COMPARED else ""
        raise NotFound(f'there is no {kind} "{word}"', f"{guess} {listed}".strip())
    return word


def _taints(cluster: Cluster) -> set[str]:
    used = set(cluster.taint_set.tolist())
    return {taint.key for number, taints in enumerate(cluster.taint_sets) if number in used for taint in taints}


def _coarser(asked: Sequence[str], workloads: Sequence[Workload], levels: Sequence[str]) -> Iterator[Change]:
    for level in asked:
        _known("level", level, levels)
        for topology in dict.fromkeys(workload.pool.topology for workload in workloads):
            if level not in topology.names:
                continue
            index = topology.index(level)
            if index == 0:
                raise UsageError(f'level "{level}" is already the coarsest', "Use --prefer to make it optional.")
            yield Coarsen(level, topology.names[index - 1])


def _keep(text: str, workloads: Sequence[Workload]) -> Keep:
    where, _, number = text.rpartition("=")
    gang, *steps = where.split("/")
    if not where or not _COUNT.fullmatch(number):
        raise UsageError(
            f'--tasks: "{text}" is not GROUP=N with N from 1 to 999,999,999', "Example: --tasks trainer=14"
        )
    gangs = {one.name: one for workload in workloads for one in workload.gangs}
    _known("group", gang, gangs)
    path: Path = tuple((level, name) for level, _, name in (step.partition(":") for step in steps))
    if path and path not in {group.path for group in gangs[gang].walk()}:
        message = f'--tasks: group "{gang}" has no constraint {"/".join(steps)}'
        raise UsageError(message, "Copy the option from the refusal that offers it.")
    return Keep(gang, path, int(number))
