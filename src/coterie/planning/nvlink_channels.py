"""Workloads with the NVLink channels of their tasks as requests, so that the engine counts them."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace

from coterie.backends.shared.compute_domains import claim_notices, decide
from coterie.errors import Notice
from coterie.gang.edits import mapped
from coterie.gang.tree import Gang, Task
from coterie.planning.workload import Workload
from coterie.topology.channels import CHANNEL
from coterie.topology.cluster import GPU, Cluster


def with_claims(workload: Workload, cluster: Cluster) -> Workload:
    """Return the workload with a channel requested by each task that gets a claim to a ComputeDomain."""
    if workload.claiming:
        gangs = tuple(_claiming(gang, workload.claiming) for gang in workload.gangs)
        return replace(workload, gangs=gangs, notices=(*workload.notices, *_shared(workload, cluster)))
    if not workload.pool.nvlink or workload.kind != "Workflow":
        return workload
    always = workload.pool.nvlink_always
    decisions = [decide(gang, workload.nvlink.get(gang.name), cluster, always=always) for gang in workload.gangs]
    pairs = zip(workload.gangs, decisions, strict=True)
    return replace(
        workload,
        gangs=tuple(_claiming(gang) if decision.wanted else gang for gang, decision in pairs),
        notices=(*workload.notices, *(decision.notice for decision in decisions if decision.notice)),
    )


def nvlink_notices(workload: Workload, cluster: Cluster) -> tuple[Notice, ...]:
    """Return which groups get no ComputeDomain in their pool, and why."""
    return with_claims(workload, cluster).notices[len(workload.notices) :]


def _claiming(gang: Gang, cliques: Container[str] | None = None) -> Gang:
    """Return a gang whose tasks with GPUs, of these cliques or of all, request a channel."""

    def asked(task: Task) -> Task:
        if not task.shape.amount(GPU) or (cliques is not None and task.clique not in cliques):
            return task
        requests = {**dict(task.shape.requests), CHANNEL: 1}
        return replace(task, shape=replace(task.shape, requests=tuple(sorted(requests.items()))))

    return mapped(gang, asked)


def _shared(workload: Workload, cluster: Cluster) -> Iterator[Notice]:
    shapes = {
        workload.claiming[task.clique]: task.shape
        for gang in workload.gangs
        for task in gang.all_tasks()
        if task.clique in workload.claiming
    }
    yield from claim_notices(shapes, cluster)
