"""The decision which groups get a ComputeDomain.

A node has one channel, so two pods with a claim never share a node: a group whose tasks take only a part of a node
would be spread out by one. By default a ComputeDomain goes to groups whose tasks take whole nodes; the workflow's label
`nvlink` overrides that, "true" for all groups with GPUs, "false" for none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from coterie.errors import Fault, Notice
from coterie.frontends.workflow.read import Workflow
from coterie.gang.tree import Gang, Shape
from coterie.placement.eligibility import eligible
from coterie.topology.cluster import GPU, Cluster

LABEL = "nvlink"


@dataclass(frozen=True, slots=True)
class ComputeDomainDecision:
    """Whether a group gets a ComputeDomain, and the notices about it."""

    wanted: bool
    notice: Notice | None = None


def label_faults(workflow: Workflow, *, nvlink: bool, pool: str) -> list[Fault]:
    """Return the faults of the workflow's NVLink label, for a pool with or without NVLink."""
    wish = workflow.spec.labels.get(LABEL)
    path = ("workflow", "labels", LABEL)
    if nvlink and wish not in (None, "true", "false"):
        message = f'the label nvlink is "{wish}", which is neither "true" nor "false"'
        return [
            Fault(message, path=path, hint="It decides whether groups get a ComputeDomain; remove it for the default.")
        ]
    if not nvlink and wish == "true":
        message = f'the workflow asks for NVLink, but pool "{pool}" has none'
        hint = "Choose a pool with nvlink: true, or remove the label."
        return [Fault(message, path=path, hint=hint)]
    return []


def decide(gang: Gang, wish: str | None, cluster: Cluster | None) -> ComputeDomainDecision:
    """Decide for a gang in a pool with NVLink; without a cluster, tasks are assumed to fill their nodes."""
    shapes = list(dict.fromkeys(task.shape for task in gang.all_tasks() if task.shape.amount(GPU)))
    if not shapes or wish == "false":
        return ComputeDomainDecision(wanted=False)
    if wish == "true":
        return ComputeDomainDecision(wanted=True)
    if cluster is None:
        message = (
            f'group "{gang.name}" gets a ComputeDomain, which is right if its tasks take whole nodes; --cluster has '
            f'that checked, and the workflow label {LABEL}: "true" or "false" decides it'
        )
        return ComputeDomainDecision(wanted=True, notice=Notice("WholeNodesAssumed", message))
    for shape in shapes:
        if (larger := _larger(shape, cluster)) is not None:
            node, gpus = larger
            message = (
                f'group "{gang.name}" gets no ComputeDomain: its tasks ask for {shape.amount(GPU)} GPUs and nodes such '
                f'as {node} have {gpus}; the workflow label {LABEL}: "true" asks for one nevertheless'
            )
            return ComputeDomainDecision(wanted=False, notice=Notice("NoComputeDomain", message))
    return ComputeDomainDecision(wanted=True)


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
