"""The decision which groups get a ComputeDomain.

A node has one channel, so two pods with a claim never share a node: a group whose tasks take only a part of a node
would be spread out by one. By default a ComputeDomain goes to groups whose tasks take several whole nodes. The
workflow's label `nvlink` overrides that, "true" for all groups with GPUs, "false" for none, and `nvlink.GROUP` does so
for one group. A pool with `nvlink: always` gives one to every group with GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from coterie.config.configuration import Pool
from coterie.errors import Fault, Notice
from coterie.frontends.workflow.read import Workflow
from coterie.frontends.workflow.values import suggestion
from coterie.gang.tree import Gang, Shape
from coterie.placement.eligibility import eligible
from coterie.topology.cluster import GPU, Cluster

LABEL = "nvlink"


@dataclass(frozen=True, slots=True)
class ComputeDomainDecision:
    """Whether a group gets a ComputeDomain, and the notices about it."""

    wanted: bool
    notice: Notice | None = None


def label_value(labels: Mapping[str, str], group: str) -> str | None:
    """Return the value of the NVLink label of a workflow that applies to a group, if it has one."""
    return labels.get(f"{LABEL}.{group}", labels.get(LABEL))


def label_faults(workflow: Workflow, pool: Pool) -> list[Fault]:
    """Return the faults of the workflow's NVLink labels in a pool."""
    labels, groups = workflow.spec.labels, [team.name for team in workflow.teams]
    named = {key for key in labels if key == LABEL or key.startswith(f"{LABEL}.")}
    return [fault for key in labels if key in named for fault in _label_faults(key, labels[key], pool, groups)]


def _label_faults(key: str, value: str, pool: Pool, groups: Sequence[str]) -> Iterator[Fault]:
    path = ("workflow", "labels", key)
    group = key.removeprefix(LABEL).removeprefix(".")
    if group and group not in groups:
        yield Fault(f'the label {key} names no group "{group}"', path=path, hint=suggestion(group, list(groups)))
    if pool.nvlink and value not in ("true", "false"):
        message = f'the label {key} is "{value}", which is neither "true" nor "false"'
        hint = "It decides whether groups get a ComputeDomain; remove it for the default."
        yield Fault(message, path=path, hint=hint)
    elif pool.nvlink_always and value == "false":
        message = (
            f'the workflow wants no ComputeDomain, but pool "{pool.name}" gives one to every group (nvlink: always)'
        )
        yield Fault(message, path=path, hint="Remove the label, or choose another pool.")
    elif not pool.nvlink and value == "true":
        message = f'the workflow asks for NVLink, but pool "{pool.name}" has none'
        yield Fault(message, path=path, hint="Choose a pool with nvlink: true, or remove the label.")


def decide(gang: Gang, label: str | None, cluster: Cluster | None, *, always: bool = False) -> ComputeDomainDecision:
    """Decide for a gang in a pool with NVLink; without a cluster, tasks are assumed to fill their nodes."""
    shapes = [task.shape for task in gang.all_tasks() if task.shape.amount(GPU)]
    if not shapes or (label == "false" and not always):
        return ComputeDomainDecision(wanted=False)
    if always:
        return ComputeDomainDecision(wanted=True, notice=_alone(gang, shapes, cluster))
    if label == "true":
        return ComputeDomainDecision(wanted=True)
    nevertheless = f'the workflow label {LABEL}.{gang.name}: "true" asks for one nevertheless'
    if len(shapes) == 1:
        message = (
            f'group "{gang.name}" gets no ComputeDomain: it has one task with GPUs, and so one node; {nevertheless}'
        )
        return ComputeDomainDecision(wanted=False, notice=Notice("NoComputeDomain", message))
    if cluster is None:
        message = (
            f'group "{gang.name}" gets a ComputeDomain, which is right if its tasks take whole nodes; pass --cluster '
            f'to check that; the workflow label {LABEL}.{gang.name}: "true" or "false" decides it'
        )
        return ComputeDomainDecision(wanted=True, notice=Notice("WholeNodesAssumed", message))
    for shape in dict.fromkeys(shapes):
        if (larger := _larger(shape, cluster)) is not None:
            node, gpus = larger
            message = (
                f'group "{gang.name}" gets no ComputeDomain: its tasks ask for {shape.amount(GPU)} GPUs and nodes such '
                f"as {node} have {gpus}; {nevertheless}"
            )
            return ComputeDomainDecision(wanted=False, notice=Notice("NoComputeDomain", message))
    return ComputeDomainDecision(wanted=True)


def _alone(gang: Gang, shapes: Sequence[Shape], cluster: Cluster | None) -> Notice | None:
    """Return a warning where tasks of a group could share nodes without their claims."""
    if cluster is None or len(shapes) == 1:
        return None
    for shape in dict.fromkeys(shapes):
        if (larger := _larger(shape, cluster)) is not None:
            message = (
                f'each task of group "{gang.name}" takes a node for itself, because its pool gives every group a '
                f"ComputeDomain: it asks for {shape.amount(GPU)} GPUs and nodes such as {larger[0]} have {larger[1]}"
            )
            return Notice("NodesNotShared", message)
    return None


def claim_notices(shapes: Mapping[str, Shape], cluster: Cluster) -> Iterator[Notice]:
    """Yield warnings of cliques, by name, whose pods have claims although several of them would fit on a node."""
    for clique, shape in shapes.items():
        if (larger := _larger(shape, cluster)) is not None:
            message = (
                f'each pod of clique "{clique}" takes a node for itself, because it has a claim to a ComputeDomain: it '
                f"asks for {shape.amount(GPU)} GPUs and nodes such as {larger[0]} have {larger[1]}"
            )
            yield Notice("NodesNotShared", message)


def _larger(shape: Shape, cluster: Cluster) -> tuple[str, int] | None:
    """Return a node that is eligible for the shape and has more GPUs than it requests."""
    gpus = cluster.allocatable[cluster.resource(GPU)]
    found = (eligible(shape, cluster, lift_transient=True) & (gpus > shape.amount(GPU))).nonzero()[0]
    return (cluster.names[int(found[0])], int(gpus[found[0]])) if len(found) else None
