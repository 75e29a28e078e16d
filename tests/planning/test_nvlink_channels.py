"""A plan for a pool with NVLink counts the channel that each task with a claim takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coterie.config.configuration import Pool
from coterie.errors import SpecErrors
from coterie.planning.load import read_documents, workload_for
from coterie.planning.plan import Plan, Planner
from coterie.planning.workload import Workload
from coterie.topology.channels import CHANNEL
from coterie.topology.cluster import GPU, Pod
from tests.frontends.workflow.samples import grouped, resource, task
from tests.planning.builders import cluster, drawn, nodes, pool, workload
from tests.scenarios.sketch import Drawing

CLIQUES = "cluster clique\n  clique c1 [8 8]  clique c2 [8 8]"
SET = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: serve, annotations: {grove.io/mnnvl-group: fabric}}
spec:
  replicas: 1
  template:
    cliques:
    - name: decode
      spec:
        roleName: decode
        replicas: 2
        podSpec: {containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: "2"}}}]}
    - name: router
      annotations: {grove.io/mnnvl-group: none}
      spec:
        roleName: router
        replicas: 2
        podSpec: {containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: "2"}}}]}
"""


def linked(drawing: Drawing, text: str, label: str | None = None) -> Workload:
    """Return a workload for a pool with NVLink."""
    made = workload(drawing, text, where=replace(pool(drawing), nvlink=True))
    return replace(made, nvlink={gang.name: label for gang in made.gangs})


def planned(drawing: Drawing, one: Workload) -> Plan:
    return Planner(cluster(drawing)).plan(one)


def channels(plan: Plan) -> list[int]:
    return [one.shape.amount(CHANNEL) for gang in plan.gangs for one in gang.gang.all_tasks()]


def codes(plan: Plan) -> list[str]:
    return [notice.code for notice in plan.notices]


def test_tasks_that_take_whole_nodes_take_a_channel() -> None:
    assert channels(planned(drawn(CLIQUES), linked(drawn(CLIQUES), "g: 2 x 8gpu + 1 x 1cpu"))) == [1, 1, 0]


def test_tasks_that_share_a_node_take_none_and_the_plan_says_so() -> None:
    plan = planned(drawn(CLIQUES), linked(drawn(CLIQUES), "g: 2 x 4gpu"))

    assert channels(plan) == [0, 0]
    assert codes(plan) == ["NoComputeDomain"]


def test_a_single_task_with_gpus_takes_none_and_the_plan_says_so() -> None:
    plan = planned(drawn(CLIQUES), linked(drawn(CLIQUES), "g: 1 x 8gpu + 1 x 1cpu"))

    assert channels(plan) == [0, 0]
    assert codes(plan) == ["NoComputeDomain"]


def test_a_pool_can_give_a_channel_to_every_task_with_gpus_and_the_plan_says_what_that_costs() -> None:
    one = linked(drawn(CLIQUES), "g: 2 x 4gpu + 1 x 1cpu")
    plan = planned(drawn(CLIQUES), replace(one, pool=replace(one.pool, nvlink_always=True)))

    assert channels(plan) == [1, 1, 0]
    assert codes(plan) == ["NodesNotShared"]


@pytest.mark.parametrize(("label", "most"), [("true", 1), ("false", 2)])
def test_the_label_of_a_workflow_decides(label: str, most: int) -> None:
    plan = planned(drawn(CLIQUES), linked(drawn(CLIQUES), "g: 4 x 4gpu", label))
    placed = nodes(plan, "g")

    assert placed is not None
    assert max(map(placed.count, placed)) == most


def test_without_nvlink_in_the_pool_nothing_is_counted() -> None:
    assert channels(planned(drawn(CLIQUES), workload(drawn(CLIQUES), "g: 2 x 8gpu"))) == [0, 0]


def test_a_node_whose_channel_is_taken_is_no_candidate() -> None:
    drawing = drawn(CLIQUES)
    drawing.pods.append(Pod("default/p", "c1-1", {CHANNEL: 1}, "other"))

    assert nodes(planned(drawing, linked(drawing, "g: 2 x 8gpu required=clique")), "g") == ["c2-1", "c2-2"]


def test_what_an_earlier_workload_took_is_gone_for_a_later_one() -> None:
    drawing = drawn("cluster clique\n  clique c1 [8 8]")
    planner = Planner(cluster(drawing))
    planner.plan(linked(drawing, "g: 2 x 1gpu", "true"))
    refusal = planner.plan(replace(linked(drawing, "h: 1 x 1gpu", "true"), name="later")).gangs[0].decision.refusal

    assert refusal is not None
    assert refusal.reason == "ComputeDomainBlocked"
    assert refusal.tally is not None
    assert [(one.obstacle, one.about, one.nodes) for one in refusal.tally.causes] == [("InUse", CHANNEL, 2)]


def test_where_gpus_are_short_as_well_the_channel_is_not_the_reason() -> None:
    drawing = drawn("cluster clique of 8\n  clique c1 [. .]")
    drawing.pods.append(Pod("default/p", "c1-1", {CHANNEL: 1}, "other"))
    refusal = planned(drawing, linked(drawing, "g: 1 x 1gpu", "true")).gangs[0].decision.refusal

    assert refusal is not None
    assert refusal.reason == "NoCapacity"


def test_pods_of_a_set_take_channels_where_their_clique_is_in_an_nvlink_group() -> None:
    (written,) = read_documents(SET.encode(), "set.yaml").workloads
    one = workload_for(written, Pool("p", "b", "kai"), {}, configured=True)
    plan = planned(drawn(CLIQUES), one)

    assert one.claiming == {"serve-0-decode": "decode"}
    assert channels(plan) == [1, 1, 0, 0]
    assert codes(plan) == ["NoQueue", "NodesNotShared"]
    assert 'clique "decode"' in plan.notices[-1].message
    assert all(found.shape.amount(GPU) == 2 for found in plan.gangs[0].gang.all_tasks())


@pytest.mark.parametrize(
    ("label", "nvlink", "said"),
    [
        ("maybe", True, 'the label nvlink is "maybe", which is neither "true" nor "false"'),
        ("true", False, 'the workflow asks for NVLink, but pool "p" has none'),
    ],
)
def test_a_wish_that_cannot_be_met_is_a_fault_of_the_workflow(label: str, said: str, *, nvlink: bool) -> None:
    text = grouped(("g", task("a", "lead: true")), extra=f"  labels: {{nvlink: '{label}'}}\n{resource('gpu: 8')}")
    (written,) = read_documents(text.encode(), "w.yaml").workloads
    with pytest.raises(SpecErrors) as caught:
        workload_for(written, Pool("p", "b", "kai", nvlink=nvlink), {}, configured=True)

    (fault,) = caught.value.faults
    assert fault.message == said
    assert fault.place
    assert fault.hint
