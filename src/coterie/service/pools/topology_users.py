"""The groups of unfinished workflows that require levels of a pool, and the effects of other levels on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from coterie.config.configuration import Pool
from coterie.inspection.topology_users import LevelUse, TopologyUser, UserReport, judged_use, level_change
from coterie.service.pools.usage import unfinished
from coterie.store import Store
from coterie.topology.levels import Level, Topology


def level_users(pool: Pool, store: Store, levels: Sequence[str] | None = None) -> UserReport:
    """Return the users of a pool's levels; `levels` are those that it would have, each NAME or NAME=LABEL."""
    before = pool.topology
    after = None if levels is None else _changed(before, levels)
    users = tuple(
        TopologyUser("Workflow", "", summary.id, uses)
        for summary in unfinished(store, pool.name)
        if (uses := tuple(_uses(summary.digest.get("requires", {}), before, after)))
    )
    return UserReport(pool.name, before, users, None if after is None else level_change(before, after))


def _uses(required: Mapping[str, Sequence[str]], before: Topology, after: Topology | None) -> Iterator[LevelUse]:
    for group, levels in required.items():
        for level in levels:
            use = LevelUse(group, level, required=True)
            yield use if after is None else judged_use(use, before, after)


def _changed(before: Topology, levels: Sequence[str]) -> Topology:
    """Return the levels of a pool after a change; one without a label keeps its own, and a new one's plays no part."""
    labels = {level.name: level.label for level in before.levels}
    given = {name: label for name, _, label in (each.partition("=") for each in levels)}
    return Topology(
        tuple(Level(name, label or labels.get(name, f"new.coterie.dev/{name}")) for name, label in given.items())
    )
