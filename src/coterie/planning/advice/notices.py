"""The notices of a plan besides its answer: label findings, sizes that waste racks, hidden nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from coterie.backends.shared.ownership import RunningTasks
from coterie.errors import Notice
from coterie.gang.tree import Gang, Shape, Toleration
from coterie.inspection.labels import label_findings, part_of
from coterie.placement.capacity import Capacity
from coterie.placement.eligibility import eligible
from coterie.planning.advice.assumed_tolerations import assumed_tolerations
from coterie.planning.advice.tiling import tiling_notices
from coterie.planning.workload import Workload
from coterie.topology.cluster import Bools, Cluster, is_gpu
from coterie.topology.domains import Domains
from coterie.topology.ranges import fold

# Labels that name something coarser than a rack, whatever a cluster's own levels are.
_COARSE_LABELS = (("zone", "topology.kubernetes.io/zone"), ("region", "topology.kubernetes.io/region"))

# Findings about any level that matter where a scheduler hides nodes that lack a level's label.
_HIDING = frozenset({"LabelOnNoNode", "NearMissLabel"})

_EVERY_TAINT = Toleration(operator="Exists")


def running_notices(workload: Workload, survivors: int, sight: RunningTasks) -> Iterator[Notice]:
    """Yield notices about tasks that already run."""
    if survivors:
        who = "1 task runs already and stays" if survivors == 1 else f"{survivors} tasks run already and stay"
        yield Notice("AlreadyRunning", f"{who} in place; --fresh plans {workload.name} as a new submission")
    if sight.unsure:
        spaces = ", ".join(sight.unsure)
        message = f"tasks of {workload.name} run in several namespaces ({spaces}), and nothing says which one is meant"
        yield Notice("NamespaceUnknown", f"{message}: planned as a new submission")


def notices_for(workload: Workload, domains: Domains, placed: Sequence[Gang]) -> Iterator[Notice]:
    """Yield notices about a plan, in a fixed order; `placed` are the placed gangs."""
    levels = {group.level for gang in workload.gangs for group in gang.walk()}
    hiding = _HIDING if workload.pool.traits.hides_unlabelled else frozenset[str]()
    if levels:
        for finding in label_findings(part_of(domains.cluster, _meant(workload, domains.cluster)), domains.topology):
            if finding.severity != "info" and (finding.level in levels or not finding.level or finding.code in hiding):
                yield Notice(finding.code, f"{finding.message}. {finding.hint}".removesuffix(" ").replace("..", "."))
        yield from _merged(domains)
    yield from _hidden(workload, domains)
    yield from assumed_tolerations(
        (task.shape for gang in workload.gangs for task in gang.all_tasks()), domains.cluster
    )
    empty = Capacity.empty(domains)
    yield from dict.fromkeys(notice for gang in placed for notice in tiling_notices(gang, empty))


def _meant(workload: Workload, cluster: Cluster) -> Bools:
    """Return the nodes whose labels matter to tasks with constraints, ignoring taints."""
    shapes = {replace(shape, tolerations=(_EVERY_TAINT,)) for shape in _constrained(workload)}
    return _any_or_all([eligible(shape, cluster, lift_transient=True) & _offers(shape, cluster) for shape in shapes])


def _constrained(workload: Workload) -> set[Shape]:
    return {task.shape for gang in workload.gangs for group in gang.groups for task in group.all_tasks()}


def _offers(shape: Shape, cluster: Cluster) -> Bools:
    """Return, for every node, whether it has GPUs of the kind that the tasks request, if they request any."""
    rows = [cluster.resource(name) for name, _ in shape.requests if is_gpu(name)]
    found: Bools = np.logical_and.reduce(cluster.allocatable[[row for row in rows if row >= 0]] > 0)
    return found


def _any_or_all(masks: Sequence[Bools]) -> Bools:
    """Return the nodes of any mask; all nodes where there are none."""
    mask: Bools = np.logical_or.reduce(masks)
    return mask if mask.any() else np.ones_like(mask)


def _merged(domains: Domains) -> Iterator[Notice]:
    """Yield a warning of a coarsest level whose domains span zones or regions that nodes declare and levels do not."""
    if not domains.tiers:
        return
    level, tier = domains.topology.levels[0], domains.tiers[0]
    known = {one.label for one in domains.topology.levels}
    for name, label in _COARSE_LABELS:
        codes = domains.cluster.column(label).codes[domains.order]
        for number, values in enumerate(tier.values):
            inside = codes[tier.start[number] : tier.end[number]]
            if label not in known and len(np.unique(inside[inside >= 0])) > 1:
                yield Notice(
                    "DomainSpansZones",
                    f"{level.name} {values[0]} has nodes in several {name}s, and counts as one {level.name}; "
                    f"to tell them apart, list the {name} first, in topology_keys or with "
                    f"--levels {name}={label},{level.name}={level.label}",
                )
                return


def _hidden(workload: Workload, domains: Domains) -> Iterator[Notice]:
    shapes = _constrained(workload)
    traits = workload.pool.traits
    if not shapes or not domains.tiers:
        return
    if traits.hides_unlabelled:
        yield from _unseen(traits.title, shapes, domains)
    if traits.forecast is not None:
        yield from traits.forecast().cluster_notices(domains.cluster, domains.topology)


def _unseen(scheduler: str, shapes: Collection[Shape], domains: Domains) -> Iterator[Notice]:
    concerned = _any_or_all([eligible(shape, domains.cluster, lift_transient=True) for shape in shapes])
    hidden = [domains.name(int(at)) for at in np.flatnonzero((domains.tiers[-1].of < 0) & concerned[domains.order])]
    if hidden:
        yield Notice(
            "HiddenFromScheduler",
            f"{scheduler} does not see nodes that lack a level's label, so they were not used: {fold(hidden)}",
        )
