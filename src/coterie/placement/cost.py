"""The cost of a placement: the domains that preferred groups use beyond one each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coterie.gang.tree import Group
from coterie.topology.domains import Domains


def extra_domains(groups: Iterable[Group], positions: Mapping[str, int], domains: Domains) -> dict[str, int]:
    """Return the cost of the preferred ones among some groups by level, the coarsest first; others cost nothing.

    A node outside all domains of a level counts as a domain of its own. Tasks without a position do not count.
    """
    costs: dict[str, int] = {}
    for group in groups:
        if group.required:
            continue
        where = [positions[task.name] for task in group.all_tasks() if task.name in positions]
        found = domains.tiers[domains.topology.index(group.level)].of[where].tolist() if where else []
        extra = len({domain for domain in found if domain >= 0}) + found.count(-1) - 1
        costs[group.level] = costs.get(group.level, 0) + max(0, extra)
    return {level: costs[level] for level in domains.topology.names if level in costs}
