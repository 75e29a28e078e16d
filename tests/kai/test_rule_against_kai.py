"""The rule predicts for random clusters what the real KAI does with them, pod by pod."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from lab.cluster import Lab
from lab.nodes import add

from coterie.backends.kai.forecast import ForecastPlacement, ForecastRefusal, kai_would_place
from coterie.backends.kai.manifests import objects, pods
from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.backends.kai.pod_group import LevelConstraint, PodGroupPart, pod_group_of
from coterie.config.configuration import Pool
from coterie.gang.tree import Gang, Shape, Task
from coterie.placement.capacity import Capacity
from coterie.sources.task_labels import TASK, WORKFLOW
from coterie.topology.cluster import CPU, PODS, Cluster, Node
from coterie.topology.domains import Domains
from tests.kai.random_clusters import OWN, Case, case, cluster, found

CASES = int(os.environ.get("COTERIE_KAI_CASES", "240"))
FIRST = int(os.environ.get("COTERIE_KAI_FIRST", "0"))
# KAI scores all nodes of the cluster for a pod without constraints, so many small clusters at once are slow.
AT_ONCE = 80
WORK = pods.Work("example.com/image", ["true"], [], [], [], [])


@dataclass(frozen=True)
class RenderedGang:
    """A gang as Coterie writes it for KAI: its topology, its pods, and then its PodGroup."""

    scene: ManifestContext
    root: PodGroupPart
    before: Sequence[Any]
    last: Any


def render(name: str, gang: Gang, pool: Pool, *, bare: bool = False) -> RenderedGang:
    scene = ManifestContext("default", name, pool)
    root = pod_group_of(gang, pool.topology)
    root = without_preferences(root) if bare else root
    seat = pods.PodPosition(gang.name, "", claims=False, found_by_name=False, attempt=1, exec_timeout=None)
    topologies = [one for one in objects.shared(scene) if one["kind"] == "Topology"]
    made = [pods.pod(scene, task, seat.within(leaf.name), WORK) for leaf, _ in root.walk() for task in leaf.tasks]
    return RenderedGang(scene, root, [*topologies, *made], objects.pod_group(scene, gang, root))


def without_preferences(part: PodGroupPart) -> PodGroupPart:
    """Return a PodGroup as others write it, without a preferred level below a required one."""
    required = part.constraint.required
    constraint = LevelConstraint(required) if required else part.constraint
    return replace(part, constraint=constraint, parts=tuple(map(without_preferences, part.parts)))


def pool_of(one: Case) -> Pool:
    return Pool("pool", "b", "kai", topology=one.topology)


class LastPod:
    """A pod on a node of its own. When one that was created last is bound, KAI has seen all that was there before."""

    node = Node("sentinel", {OWN: "sentinel"}, {CPU: 64_000, PODS: 110})

    def __init__(self, lab: Lab) -> None:
        """Add the node, as the last one, and a queue that is of these pods alone."""
        self._lab = lab
        self._count = 0
        self._pool = Pool("sentinels", "b", "kai")
        add(lab, Cluster.of([self.node], []))
        lab.apply(list(objects.queues(ManifestContext("default", "sentinel", self._pool))))

    def passes(self) -> None:
        name = f"sentinel{self._count}"
        self._count += 1
        shape = Shape(((CPU, 10),), selector=((OWN, "sentinel"),))
        made = render(name, Gang("g", tasks=(Task("t", shape),)), self._pool)
        for manifest in (*made.before, made.last):
            self._lab.api.create(manifest)
        pod = made.before[-1]["metadata"]["name"]
        self._lab.wait(
            lambda: "nodeName" in (self._lab.get("pod", pod) or {"spec": {}})["spec"], 120, f"{pod} is bound"
        )


def bound(lab: Lab) -> dict[str, dict[str, str]]:
    """Return the nodes of all pods that have one, by case and task."""
    places: dict[str, dict[str, str]] = {}
    for pod in lab.objects("pods", "default", selector=WORKFLOW):
        if node := pod["spec"].get("nodeName"):
            labels = pod["metadata"]["labels"]
            places.setdefault(labels[WORKFLOW], {})[labels[TASK]] = node
    return places


def unbound_requests(lab: Lab) -> set[str]:
    """Return the pods that KAI has chosen a node for and that are not there yet."""
    waiting = {pod["metadata"]["name"] for pod in lab.objects("pods", "default") if "nodeName" not in pod["spec"]}
    return waiting & {request["spec"]["podName"] for request in lab.objects("bindrequests", "default")}


def as_kai_takes_them(part: PodGroupPart, order: Mapping[str, tuple[str, str]]) -> PodGroupPart:
    """Return a PodGroup with its pods in the order of their creation, by the second, and then of their uids."""
    tasks = tuple(sorted(part.tasks, key=lambda task: order[task.name]))
    return replace(part, parts=tuple(as_kai_takes_them(below, order) for below in part.parts), tasks=tasks)


@dataclass(frozen=True)
class KaiOutcome:
    """The outcomes of a case: by the rule, and by KAI."""

    one: Case
    said: ForecastPlacement | ForecastRefusal
    did: Mapping[str, str]

    @property
    def agree(self) -> bool:
        """Whether the same pods are on the same nodes."""
        return (self.said.nodes if isinstance(self.said, ForecastPlacement) else {}) == self.did

    @property
    def kind(self) -> str:
        if isinstance(self.said, ForecastRefusal):
            reason = self.said.why.name.lower().replace("_", " ")
            return f"refused, {reason}{', although it fits' * (found(self.one) is not None)}"
        return "placed, some wait" if self.said.waiting else "placed"

    def __str__(self) -> str:
        return f"{self.one}\n  the rule says {self.said}\n  KAI did       {dict(sorted(self.did.items()))}"


def outcomes(lab: Lab, cases: Sequence[Case]) -> list[KaiOutcome]:
    """Hand all cases to KAI at once, and return what became of each."""
    made = {f"case{one.number}": render(f"case{one.number}", one.gang, pool_of(one), bare=one.bare) for one in cases}
    nodes = [node for one in cases for node in one.nodes]
    add(lab, Cluster.of(nodes, [pod for one in cases for pod in one.pods]))
    sentinel = LastPod(lab)
    lab.api.each(lab.api.create, [manifest for one in made.values() for manifest in one.before])
    lab.api.each(lab.api.create, [one.last for one in made.values()])
    order: dict[str, dict[str, tuple[str, str]]] = {}
    for pod in lab.objects("pods", "default", selector=WORKFLOW):
        meta = pod["metadata"]
        labels = meta["labels"]
        order.setdefault(labels[WORKFLOW], {})[labels[TASK]] = (meta["creationTimestamp"], meta["uid"])
    # Without their queue the gangs wait, so KAI knows all nodes and pods when it takes the first.
    sentinel.passes()
    lab.apply(list(objects.queues(next(iter(made.values())).scene)))
    sentinel.passes()
    # What KAI chose in the round of the first is chosen when it comes to the second.
    sentinel.passes()
    lab.wait(lambda: not unbound_requests(lab), 60, "all chosen pods are bound")
    did = bound(lab)
    compared = []
    for one, (name, rendered) in zip(cases, made.items(), strict=True):
        capacity = Capacity.now(Domains.of(cluster(one), one.topology))
        said = kai_would_place(as_kai_takes_them(rendered.root, order[name]), capacity)
        assert isinstance(said, ForecastPlacement | ForecastRefusal)
        compared.append(KaiOutcome(one, said, did.get(name, {})))
    return compared


def summary(compared: Sequence[KaiOutcome]) -> str:
    wrong = sum(not outcome.agree for outcome in compared)
    kinds = sorted(Counter(outcome.kind for outcome in compared).items())
    counts = "".join(f"\n  {count:4} {kind}" for kind, count in kinds)
    return f"{len(compared)} random clusters, {wrong} disagreements{counts}"


def test_the_rule_says_what_kai_does(make_lab: Callable[..., Lab], capsys: pytest.CaptureFixture[str]) -> None:
    compared: list[KaiOutcome] = []
    for first in range(FIRST, FIRST + CASES, AT_ONCE):
        # A new lab is there sooner than so many objects and the events of KAI are gone from another one.
        lab = make_lab(compute_domain=False)
        compared += outcomes(lab, [case(number) for number in range(first, min(first + AT_ONCE, FIRST + CASES))])
        lab.stop()

    with capsys.disabled():
        print(f"\n{summary(compared)}")  # noqa: T201 - how much was compared is to be seen
    wrong = [outcome for outcome in compared if not outcome.agree]
    assert not wrong, "\n".join(map(str, wrong[:5]))
