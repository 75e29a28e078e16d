"""The traits of a set's pods: labels as Grove sets them, and inter-pod affinity.

Two labels differ from pod to pod or are unknown before the pods exist; a term that selects on them, or on a label of
Grove, Dynamo or KAI that is not known here, cannot be evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from coterie.document.located import Path
from coterie.document.schema import said
from coterie.errors import Fault
from coterie.frontends.grove.podcliqueset.lower import LoweredSet, SetPod
from coterie.frontends.grove.podcliqueset.model import PodCliqueSet
from coterie.frontends.kubernetes.pod_affinity import PodConstraints, unsupported
from coterie.gang.tree import Gang, Task
from coterie.topology.pod_affinity import AffinityTerm, PodTraits

_OPERATORS = ("grove.io/", "nvidia.com/", "kai.scheduler/")


@dataclass(frozen=True, slots=True)
class SetTraits:
    """The traits of pods by task, with the fault of each term for a caller that cannot honour it."""

    pods: Mapping[str, PodTraits] = field(default_factory=dict)
    refusals: Mapping[AffinityTerm, Fault] = field(default_factory=dict)


def set_traits(
    pcs: PodCliqueSet, lowered: LoweredSet, neighbours: Mapping[str, PodConstraints], namespace: str
) -> tuple[SetTraits, list[Fault]]:
    """Return the traits of all pods of a set, and the terms that cannot be evaluated as faults."""
    pods: dict[str, PodTraits] = {}
    written: dict[AffinityTerm, Path] = {}
    of_clique: dict[str, PodTraits] = {}
    for gang in lowered.gangs:
        for task in gang.all_tasks():
            seat = lowered.seats[task.name]
            traits = of_clique.get(task.clique)
            if traits is None:
                labels = _labels(pcs, gang, task, seat)
                beside = neighbours[seat.clique.name]
                apart = {term.of(labels, namespace): path for term, path in beside.apart.items()}
                near = {term.of(labels, namespace): path for term, path in beside.near.items()}
                written |= apart | near
                traits = PodTraits(namespace, labels, tuple(apart), tuple(near), frozenset(beside.ports))
                of_clique[task.clique] = traits
            pods[task.name] = traits
    known = {key for each in of_clique.values() for key in each.labels}
    faults = list(_unanswered(neighbours, known))
    refusals = {term: _refusal(path) for term, path in written.items()}
    return SetTraits(pods, refusals), faults


def _labels(pcs: PodCliqueSet, gang: Gang, task: Task, seat: SetPod) -> dict[str, str]:
    """Return the labels of a clique's pods, except those that are known only once the pods exist."""
    base = f"{pcs.name}-{seat.replica}"
    grouped = {}
    if seat.group is not None:
        grouped = {
            "grove.io/podcliquescalinggroup": f"{base}-{seat.group.name}",
            "grove.io/podcliquescalinggroup-replica-index": str(seat.group_replica),
        }
    return {
        **seat.clique.labels,
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": pcs.name,
        "grove.io/podclique": task.clique,
        "grove.io/podgang": gang.name,
        "grove.io/podcliqueset-replica-index": str(seat.replica),
        **grouped,
        **({"grove.io/base-podgang": gang.follows} if gang.follows else {}),
    }


def _unanswered(neighbours: Mapping[str, PodConstraints], known: set[str]) -> Iterator[Fault]:
    for each in neighbours.values():
        for terms in (each.apart, each.near):
            for term, path in terms.items():
                keys = (*(one.key for one in term.selector or ()), *term.same, *term.different)
                for key in dict.fromkeys(keys):
                    if key.startswith(_OPERATORS) and key not in known:
                        yield unsupported(path, f"pod affinity by the label {said(key)}, which operators set,")


def _refusal(path: Path) -> Fault:
    apart = "podAntiAffinity" in path
    kinds = "anti-affinity between two kinds of pods of which several may share a node"
    return unsupported(path, f"required pod {kinds if apart else 'affinity that binds only some pods to others'}")
