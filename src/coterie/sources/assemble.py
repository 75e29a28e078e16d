"""The assembly of a `Cluster` from nodes and pods, with the checks that all sources share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from coterie.errors import Fault, Notice, Place, SpecErrors
from coterie.sources.task_labels import GROUP, TASK, WORKFLOW
from coterie.topology.channels import CHANNEL, with_channels
from coterie.topology.cluster import Cluster, Member, Node, Pod
from coterie.topology.quantity import LARGEST
from coterie.topology.ranges import fold

MAX_NODES = 200_000
_MAX_NAME = 253
_MAX_VALUE = 63
_FIRST = "Fix these to see the others."
_MAX_FAULTS = 50

_Thing = TypeVar("_Thing", Node, Pod)


@dataclass(frozen=True, slots=True)
class Assembly:
    """A cluster, and the notices of its assembly."""

    cluster: Cluster
    notices: tuple[Notice, ...]


def assemble(nodes: Sequence[Node], pods: Sequence[Pod], where: Place) -> Assembly:
    """Build a cluster from nodes and pods of any origin; raise SpecErrors for inconsistent ones.

    Pods on unknown nodes are left out, with a notice. Amounts so large that sums over the cluster would exceed an int64
    are lowered, with a notice.
    """
    faults = [*_twins("node", nodes), *_twins("pod", pods), *_names(nodes)]
    if not nodes:
        faults.append(Fault("there are no nodes in it", hint="A cluster needs at least one node."))
    if len(nodes) > MAX_NODES:
        message = f"{len(nodes):,} nodes are too many: at most {MAX_NODES:,} are read"
        faults.append(Fault(message, hint="Select the nodes of interest with kubectl's -l option."))
    refuse(fault.at(where) for fault in faults)

    known = {node.name for node in nodes}
    placed = [pod for pod in pods if pod.node in known]
    notices = []
    if len(placed) != len(pods):
        absent = {pod.node[:_MAX_NAME] for pod in pods} - known
        count = len(pods) - len(placed)
        notices.append(
            Notice(
                "PodsWithoutNode",
                f"{count} {'pod is' if count == 1 else 'pods are'} left out: on nodes that are not in the snapshot "
                f"({shortened(fold(absent))})",
                where,
            )
        )
    nodes, too_much = _bounded_nodes(nodes)
    placed, too_many = _bounded_pods(placed)
    if lowered := sorted(too_much | too_many):
        notices.append(Notice("AmountLowered", f"impossibly large amounts of {', '.join(lowered)} were lowered", where))

    cluster = Cluster.of(nodes, placed)
    if CHANNEL in cluster.resources:
        cluster = with_channels(cluster)
    refuse(fault.at(where) for fault in _values(cluster))
    return Assembly(cluster, (*notices, *_overfull(cluster, where)))


def refuse(faults: Iterable[Fault]) -> None:
    """Raise SpecErrors when there is any fault; a long list is cut, and its length stated."""
    found = list(faults)
    if len(found) > _MAX_FAULTS:
        rest = len(found) - _MAX_FAULTS
        found = [*found[:_MAX_FAULTS], Fault(f"and {rest:,} more like these", hint=_FIRST, place=found[0].place)]
    if found:
        raise SpecErrors(found)


def member_of(labels: Mapping[str, str]) -> Member | None:
    """Return the task that a pod belongs to, by Coterie's labels, when all three are present."""
    workflow, group, task = (labels.get(key) for key in (WORKFLOW, GROUP, TASK))
    return Member(workflow, group, task) if workflow and group and task else None


def shortened(text: str, limit: int = 120) -> str:
    """Return a text cut to a length that fits on one line."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _twins(kind: str, things: Sequence[_Thing]) -> list[Fault]:
    if len({thing.name for thing in things}) == len(things):
        return []
    seen = Counter(thing.name for thing in things)
    return [
        Fault(f'{kind} "{shortened(name)}" is listed {_times(count)}', hint=f"Each {kind} has a name of its own.")
        for name, count in sorted(seen.items())
        if count > 1
    ]


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"


def _names(nodes: Sequence[Node]) -> list[Fault]:
    faults = []
    for node in nodes:
        if not node.name or len(node.name) > _MAX_NAME:
            problem = f"is {len(node.name)} characters long" if node.name else "is empty"
            message = f'node name "{shortened(node.name, 40)}" {problem}: 1 to {_MAX_NAME} are allowed'
            faults.append(Fault(message, hint="Use the name that Kubernetes has for the node."))
    return faults


def _values(cluster: Cluster) -> list[Fault]:
    """Return the faults of label values beyond Kubernetes' length, once per distinct value."""
    return [
        Fault(
            f'value "{shortened(value, 40)}" of label "{shortened(label, 80)}" has {len(value)} characters: '
            f"at most {_MAX_VALUE} are allowed",
            hint="Shorten the value, as Kubernetes would require.",
        )
        for label, column in cluster.columns.items()
        for value in column.values
        if len(value) > _MAX_VALUE
    ]


def _overfull(cluster: Cluster, where: Place) -> list[Notice]:
    """Return notices of nodes whose pods hold more than allocatable: lost devices, or an error in the cluster file."""
    over = cluster.held(range(len(cluster.pods))) > cluster.allocatable
    notices = []
    for row in np.flatnonzero(over.any(axis=1)):
        names = [cluster.names[node] for node in np.flatnonzero(over[row])]
        text = f"pods hold more {cluster.resources[row]} than there is on {shortened(fold(names))}"
        notices.append(Notice("NodeOverfull", text, where))
    return notices


def _bounded_nodes(nodes: Sequence[Node]) -> tuple[Sequence[Node], set[str]]:
    tops = _excessive([node.allocatable for node in nodes])
    if not tops:
        return nodes, set()
    return [replace(node, allocatable=_lowered(node.allocatable, tops)) for node in nodes], set(tops)


def _bounded_pods(pods: Sequence[Pod]) -> tuple[list[Pod], set[str]]:
    tops = _excessive([pod.requests for pod in pods])
    if not tops:
        return list(pods), set()
    return [replace(pod, requests=_lowered(pod.requests, tops)) for pod in pods], set(tops)


def _excessive(amounts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the resources whose total would overflow, each with the largest amount that one holder may count."""
    top = LARGEST // max(1, len(amounts))
    suspects = {name for each in amounts for name, amount in each.items() if amount > top}
    totals = {name: sum(each.get(name, 0) for each in amounts) for name in suspects}
    return {name: top for name, total in totals.items() if total > LARGEST}


def _lowered(amounts: Mapping[str, int], tops: Mapping[str, int]) -> dict[str, int]:
    return {name: min(amount, tops.get(name, amount)) for name, amount in amounts.items()}
