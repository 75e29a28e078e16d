"""The current usage, read from the store alone, so that every replica can report it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coterie.config.configuration import Pool
from coterie.gang.tree import Gang
from coterie.placement.whatif import Change, Release
from coterie.planning.advice.quota import QuotaQuestion
from coterie.planning.changes import AS_IT_IS, WhatIf
from coterie.planning.fit import CandidatePlanner
from coterie.planning.workload import Workload
from coterie.service.driver.workflows.driven_workflow import shape_in
from coterie.service.pools.catalog import PoolCatalog
from coterie.service.queue.live_pods import live_pods, slot
from coterie.store import Store, Summary, WorkflowQuery
from coterie.topology.cluster import PODS, Cluster, Member, Pod, gpu_count

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class WhyQuery:
    """The question about a waiting group besides the reason: hypothetical changes, and all the evidence."""

    what_if: WhatIf = AS_IT_IS
    verbose: bool = False


PLAINLY = WhyQuery()


@dataclass(frozen=True, slots=True)
class JoiningGang:
    """A gang of a workflow with running tasks, which its other tasks are to join."""

    workflow: str
    gang: Gang

    def running(self, pods: Iterable[Pod]) -> Iterator[Pod]:
        """Yield the pods of its running tasks."""
        tasks = {Member(self.workflow, self.gang.name, task.name) for task in self.gang.all_tasks()}
        return (pod for pod in pods if pod.member in tasks)


@dataclass(frozen=True, slots=True)
class PoolUsage:
    """The pools and nodes of one moment, with the holdings of workflows."""

    catalog: PoolCatalog
    pods: Mapping[str, tuple[Pod, ...]]  # by backend
    held: Mapping[str, Mapping[str, int]]  # GPUs, by pool and workflow

    @property
    def gpus(self) -> Mapping[str, int]:
        """The number of held GPUs, by pool."""
        return {pool: sum(mine.values()) for pool, mine in self.held.items()}

    @staticmethod
    def read(store: Store, catalog: PoolCatalog) -> PoolUsage:
        """Return the current holdings."""
        rows = store.held()
        pods: dict[str, list[Pod]] = {}
        held: dict[str, Counter[str]] = {}
        for summary in unfinished(store) if rows else ():
            known = catalog.pools.get(summary.pool)
            own = known.pool.backend if known else ""
            for row in rows.get(summary.id, ()):
                requests = dict(shape_in(summary.digest, row.task).requests)
                held.setdefault(summary.pool, Counter())[summary.id] += gpu_count(requests.items())
                name = f"{summary.id}/{row.task}/{row.attempt}"
                member = Member(summary.id, row.group, row.task)
                pod = Pod(name, row.node, requests, owner=summary.id, member=member)
                pods.setdefault(_home(catalog, own, row.node), []).append(pod)
        return PoolUsage(catalog, {name: tuple(found) for name, found in pods.items()}, held)

    def cluster(self, pool: Pool) -> Cluster:
        """Return the nodes of a pool's backend with the holdings of all workflows."""
        return with_pods(self.catalog.cluster(pool), self.pods.get(pool.backend, ()))

    def planner(
        self,
        pool: Pool,
        *,
        joining: JoiningGang | None = None,
        changes: Sequence[Change] = (),
        gone: Collection[str] = (),
    ) -> UsagePlanner:
        """Return a planner for this moment, with hypothetical changes, and without some workflows.

        The running tasks of a gang whose tasks are `joining` stay on their nodes, and their GPUs do not count twice
        against the pool's limit.
        """
        released = [Release(workflow) for workflow in gone]
        gone = {*gone, *(change.owner for change in changes if isinstance(change, Release))}
        planner = UsagePlanner(self.cluster(pool), changes=(*changes, *released), fresh=joining is None)
        mine = self.held.get(pool.name, {})
        own = joining.running(self.pods.get(pool.backend, ())) if joining else ()
        running = sum(gpu_count(pod.requests.items()) for pod in own)
        used = sum(gpus for workflow, gpus in mine.items() if workflow not in gone) - running
        planner.charge({pool.name: used})
        return planner

    def quota_question(
        self, workload: Workload, command: Sequence[str], joining: JoiningGang | None = None
    ) -> QuotaQuestion:
        """Return the question what a workload over its pool's limit waits for; `joining` as for `planner`."""
        return QuotaQuestion(
            workload,
            command,
            self.held.get(workload.pool.name, {}),
            lambda pool, changes, gone: self.planner(pool, joining=joining, changes=changes, gone=gone),
            joining.workflow if joining else "",
        )


class UsagePlanner(CandidatePlanner):
    """A planner with the current usage of pools."""

    def charge(self, gpus: Mapping[str, int]) -> None:
        """Count these GPUs, by pool, against the pools' limits."""
        for pool, number in gpus.items():
            self._pools.setdefault(pool, Counter())[""] += number


def _home(catalog: PoolCatalog, own: str, node: str) -> str:
    """Return the backend that has a node: the pool's own or, where that no longer has it, any."""
    candidates = [own] if own in catalog.clusters else []
    return next(
        (name for name in (*candidates, *catalog.clusters) if node in catalog.clusters[name].cluster.position), own
    )


def unfinished(store: Store, pool: str | None = None) -> Iterator[Summary]:
    """Yield the workflows whose state may still change."""
    query = WorkflowQuery(pools=() if pool is None else (pool,), finished=False)
    page = store.workflows(query, None, _PAGE)
    yield from page.items
    while page.next is not None:
        page = store.workflows(query, page.next, _PAGE)
        yield from page.items


def with_pods(cluster: Cluster, pods: Sequence[Pod]) -> Cluster:
    """Return a cluster with more pods on its nodes; those on nodes that it does not have are left out.

    A pod of a task that the cluster shows already is not added, but known as the task's from then on.
    """
    there = [pod for pod in pods if pod.node in cluster.position]
    live = live_pods(cluster) if there else {}
    seen = {live[found]: pod for pod in there if pod.member and (found := slot(pod.member, pod.node)) in live}
    if seen:
        own = [
            replace(pod, owner=seen[at].owner, member=seen[at].member) if at in seen else pod
            for at, pod in enumerate(cluster.pods)
        ]
        cluster = replace(cluster, pods=tuple(own))
        there = [pod for pod in there if pod not in seen.values()]
    if not there:
        return cluster
    requests = np.zeros((len(cluster.resources), len(there)), dtype=np.int64)
    requests[cluster.resource(PODS)] = 1
    for index, pod in enumerate(there):
        for name, amount in pod.requests.items():
            if (row := cluster.resource(name)) >= 0:
                requests[row, index] = amount
    where = np.array([cluster.position[pod.node] for pod in there], dtype=np.int32)
    return replace(
        cluster,
        pods=(*cluster.pods, *there),
        pod_node=np.concatenate([cluster.pod_node, where]),
        pod_requests=np.concatenate([cluster.pod_requests, requests], axis=1),
    )
