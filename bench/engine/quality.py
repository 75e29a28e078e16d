"""The check of answers: required constraints held, no node overfull, and the number of domains used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bench.engine.cases import TOPOLOGY, Request
from coterie.placement.capacity import Capacity
from coterie.topology.domains import Tier
from coterie.topology.levels import Level


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of an answer; `faults` describes its errors and should be empty."""

    placed: bool
    blocks: int = 0
    racks: int = 0
    nodes: int = 0
    faults: tuple[str, ...] = ()


def judge(request: Request, nodes: Mapping[str, int] | None, capacity: Capacity) -> Quality:
    """Return the quality of pods per node, or of None for a refusal, on the capacity that was asked."""
    if nodes is None:
        return Quality(placed=False, faults=_wrongly_refused(request, capacity))
    domains = capacity.domains
    where = np.array([domains.position[name] for name in nodes])
    pods = np.array(list(nodes.values()))
    faults = []
    if int(pods.sum()) != request.pods:
        faults.append(f"{int(pods.sum())} pods placed, not {request.pods}")
    cluster = domains.cluster
    for name, amount in (("pods", 1), *request.each.items()):
        if (pods * amount > capacity.free[cluster.resource(name)][where]).any():
            faults.append(f"more {name} than a node has free")
    used = {level.name: len(set(tier.of[where].tolist())) for level, tier in _tiers(capacity)}
    if request.required and used[_level(request)] != 1:
        faults.append(f"spread over {used[_level(request)]} domains of a required level")
    return Quality(placed=True, blocks=used["block"], racks=used["rack"], nodes=len(nodes), faults=tuple(faults))


def no_worse(ours: Quality, theirs: Quality) -> bool:
    """Return whether an answer is at least as good: valid, placed if the other is, on no more racks and nodes."""
    if ours.faults or ours.placed < theirs.placed:
        return False
    return not theirs.placed or (ours.racks <= theirs.racks and ours.nodes <= theirs.nodes)


def _wrongly_refused(request: Request, capacity: Capacity) -> tuple[str, ...]:
    """Return whether a refusal is wrong: equal pods fit one required domain if some domain's nodes hold them."""
    cluster = capacity.domains.cluster
    rows = [(cluster.resource(name), amount) for name, amount in (("pods", 1), *request.each.items())]
    fits = np.min([capacity.free[row] // amount for row, amount in rows], axis=0)
    tier = next(tier for level, tier in _tiers(capacity) if level.label == request.level)
    most = int(np.add.reduceat(fits, tier.start).max()) if request.required else int(fits.sum())
    return (f"refused, although {most} pods fit",) if most >= request.pods else ()


def _level(request: Request) -> str:
    return next(level.name for level in TOPOLOGY.levels if level.label == request.level)


def _tiers(capacity: Capacity) -> list[tuple[Level, Tier]]:
    return list(zip(TOPOLOGY.levels, capacity.domains.tiers, strict=True))
