"""The events for running workflows when an admin changes pools or nodes; the workflows themselves are left alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from coterie.config.configuration import Pool
from coterie.errors import NotFound, SpecErrors
from coterie.inspection.audit import AuditOutcome
from coterie.lifecycle import holdings
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow, levels_of
from coterie.service.driver.workflows.texts import CachedTexts
from coterie.service.pools.catalog import PoolCatalog
from coterie.service.views import workflows
from coterie.store import NewEvent
from coterie.topology.cluster import Cluster
from coterie.topology.display_names import group_name
from coterie.topology.domains import Domains
from coterie.topology.levels import Topology


def levels_lost(life: LiveWorkflow, before: PoolCatalog, after: PoolCatalog, now: float) -> Iterator[NewEvent]:
    """Record the groups that keep running although their pool has lost a level that they require."""
    old, new = before.pools.get(life.pool), after.pools.get(life.pool)
    lost = set(old.pool.topology.names if old else ()) - set(new.pool.topology.names if new else ())
    for group in life.state.groups if lost else ():
        levels = [level for level in life.digest.get("requires", {}).get(group.name, ()) if level in lost]
        if levels and not group.status.final and any(task.present for task in group.tasks):
            said = f'pool "{life.pool}" no longer has level "{levels[0]}", which group "{group.name}" requires'
            rest = "its tasks keep running, and none of them can be placed again until the level is back"
            yield NewEvent(now, "LevelLost", f"{said}; {rest}", life.id, life.pool, group.name)


def violated(
    life: LiveWorkflow, texts: CachedTexts, before: PoolCatalog, after: PoolCatalog, now: float
) -> Iterator[NewEvent]:
    """Record required constraints that held until nodes were relabelled."""
    requires = life.digest.get("requires", {})
    nodes: dict[str, dict[str, str]] = {}
    for one in holdings(life.state):
        if one.node and one.group in requires:
            nodes.setdefault(one.group, {})[one.task] = one.node
    old, new = _seen(life, before), _seen(life, after)
    if not nodes or old is None or new is None or old[1] is new[1]:
        return
    pool = new[0]
    try:
        built = texts.built(life.id, pool, levels_of(life.digest))
    except (SpecErrors, NotFound):
        return  # the pool has lost its levels, which is reported separately
    for group, placed in nodes.items():
        wrong = [
            {
                finding.path: finding.why
                for one in built.gang(group).walk()
                if (finding := workflows.finding(one, placed, domains)).outcome is AuditOutcome.VIOLATED
            }
            for domains in (_domains(old[1], pool.topology), _domains(new[1], pool.topology))
        ]
        for path in wrong[1].keys() - wrong[0].keys():
            said = f"{group_name(path)} is no longer kept together: {wrong[1][path]}"
            rest = f"the running tasks of the group ({len(placed):,}) stay where they are"
            yield NewEvent(now, "Violated", f"{said}; {rest}", life.id, life.pool, group)


def _seen(life: LiveWorkflow, catalog: PoolCatalog) -> tuple[Pool, Cluster] | None:
    known = catalog.pools.get(life.pool)
    if known is None or known.pool.backend not in catalog.clusters:
        return None
    return known.pool, catalog.clusters[known.pool.backend].cluster


@lru_cache(maxsize=8)
def _domains(cluster: Cluster, topology: Topology) -> Domains:
    """Return the domains of nodes, cached because many workflows ask at the same time."""
    return Domains.of(cluster, topology)
