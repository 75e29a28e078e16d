"""The gang of a queued group, built the same way for the queue and for explanations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from coterie.config.configuration import Pool
from coterie.errors import NotFound, Reason, SpecErrors
from coterie.gang.edits import only_tasks, without_nodes
from coterie.gang.tree import Gang, Group, Task
from coterie.lifecycle import Enqueue
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow, levels_of
from coterie.service.driver.workflows.texts import CachedTexts, PromptTexts
from coterie.service.pools.catalog import PoolCatalog
from coterie.service.pools.live_clusters import unreached_words
from coterie.store import WorkflowRecord
from coterie.topology.levels import Topology


@dataclass(frozen=True, slots=True)
class Blocked:
    """The reason why a gang cannot be searched for until an admin changes something; `level` is a lost one."""

    reason: Reason
    message: str
    level: str | None = None


def known_pool(catalog: PoolCatalog, name: str) -> Pool | Blocked:
    """Return the pool of a workflow, if the nodes of its backend are known."""
    known = catalog.pools.get(name)
    if known is not None and (problem := _unreached(known.pool.backend, catalog)):
        return Blocked(Reason.SCHEDULER_REFUSED, problem)
    if known is None or known.pool.backend not in catalog.clusters:
        return Blocked(Reason.SCHEDULER_REFUSED, f'pool "{name}" has no nodes that this service knows')
    return known.pool


def _unreached(backend: str, catalog: PoolCatalog) -> str:
    """Return why the cluster of a backend was never reached; an empty string where it was."""
    if backend in catalog.clusters or backend not in catalog.unreached:
        return ""
    return unreached_words(backend, catalog.unreached[backend])


def waiting_gang(
    workflow: LiveWorkflow | WorkflowRecord, requests: Sequence[Enqueue], pool: Pool, texts: CachedTexts | PromptTexts
) -> Gang | Blocked:
    """Return the gang of one group's `requests`: their tasks beside running ones, without excluded nodes.

    Preferences at levels that the pool has lost are dropped. Requirements there block it.
    """
    try:
        gang = texts.built(workflow.id, pool, levels_of(workflow.digest)).gang(requests[0].group)
    except (SpecErrors, NotFound) as error:
        return Blocked(Reason.INVALID_SPEC, str(error))
    if lost := _lost_levels(gang, pool.topology):
        levels = " and ".join(f'"{level}"' for level in lost)
        message = f'pool "{pool.name}" no longer has level {levels}, which the group requires'
        return Blocked(Reason.LEVEL_LOST, message, lost[0])
    wanted = {task for one in requests for task in (*one.tasks, *dict(one.anchors))}
    excluded = {node for one in requests for node in one.excluded}
    return without_nodes(only_tasks(_within(gang, pool.topology), wanted), excluded)


def _lost_levels(gang: Gang, topology: Topology) -> tuple[str, ...]:
    """Return the levels that a gang requires and a topology does not have, coarsest first."""
    return tuple(
        dict.fromkeys(group.level for group in gang.walk() if group.required and group.level not in topology.names)
    )


def _within(gang: Gang, topology: Topology) -> Gang:
    """Return the gang without groups at levels that a topology does not have."""

    def kept(groups: Iterable[Group]) -> tuple[list[Group], list[Task]]:
        found: list[Group] = []
        loose: list[Task] = []
        for group in groups:
            inner, tasks = kept(group.groups)
            if group.level in topology.names:
                found.append(replace(group, groups=tuple(inner), tasks=(*group.tasks, *tasks)))
            else:
                found.extend(inner)
                loose.extend((*group.tasks, *tasks))
        return found, loose

    if all(group.level in topology.names for group in gang.walk()):
        return gang
    groups, tasks = kept(gang.groups)
    return replace(gang, groups=tuple(groups), tasks=(*gang.tasks, *tasks))
