"""Planner inputs from drawings: a cluster, its pool, and workloads of one gang per paragraph."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent

from coterie.config.configuration import GpuQuota, Pool
from coterie.gang.tree import Gang
from coterie.planning.plan import Plan, Planner
from coterie.planning.workload import Workload
from coterie.topology.cluster import Cluster, Member, Pod
from tests.scenarios.questions import ask
from tests.scenarios.sketch import Drawing, draw


def drawn(text: str) -> Drawing:
    """Return a cluster drawn as in scenarios."""
    return draw([line for line in dedent(text).strip().splitlines() if line.strip()])


def gangs(text: str, drawing: Drawing) -> tuple[Gang, ...]:
    """Return gangs written as in scenarios; each begins at the margin."""
    found: list[list[str]] = []
    for line in dedent(text).strip().splitlines():
        if line.startswith(" "):
            found[-1].append(line)
        else:
            found.append([line])
    return tuple(ask(lines, drawing.topology).gang for lines in found)


def pool(drawing: Drawing, *, scheduler: str = "local", limit: int | None = None, name: str = "default") -> Pool:
    """Return a pool with the levels of a drawing."""
    return Pool(name, scheduler, scheduler, topology=drawing.topology, gpus=GpuQuota(limit=limit))


def workload(
    drawing: Drawing,
    text: str,
    *,
    name: str = "wf",
    needs: Mapping[str, str] | None = None,
    where: Pool | None = None,
) -> Workload:
    """Return a workload; `needs` names for a gang the gangs it waits for, separated by blanks."""
    waits = {gang: frozenset(others.split()) for gang, others in (needs or {}).items()}
    return Workload(name, "Workflow", where or pool(drawing), gangs(text, drawing), waits)


def cluster(drawing: Drawing) -> Cluster:
    """Return the cluster of a drawing."""
    return drawing.domains().cluster


def planned(drawing: Drawing, *workloads: Workload) -> list[Plan]:
    """Plan workloads one after the other."""
    planner = Planner(cluster(drawing))
    return [planner.plan(one) for one in workloads]


def nodes(plan: Plan, gang: str) -> list[str] | None:
    """Return the nodes of a gang's tasks in order, or None when it is not placed."""
    one = next(one for one in plan.gangs if one.gang.name == gang)
    if one.decision.found is None:
        return None
    return [one.decision.found.nodes[task.name] for task in one.gang.all_tasks()]


def running(drawing: Drawing, gang: Gang, where: Mapping[str, str], name: str = "wf") -> None:
    """Let tasks of a gang run in a drawing, as pods with Coterie's labels."""
    for task in gang.all_tasks():
        if task.name in where:
            member = Member(name, gang.name, task.name)
            drawing.pods.append(
                Pod(f"{name}/{task.name}", where[task.name], dict(task.shape.requests), name, member=member)
            )
