"""NVLink on a real cluster: NVIDIA's controller makes the templates, KAI allocates the claims, and plans count them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.api import Object
from lab.cluster import Lab
from lab.process import Program

from tests.kai.handwritten import DrawnLab, pod, pod_group, stage, warned

TWO_CLIQUES = "cluster zone > clique\n  zone a: clique c1 [8 8]  clique c2 [8 8]"
SET = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: serve
  annotations: {grove.io/mnnvl-group: fabric}
spec:
  replicas: 1
  template:
    cliques:
    - name: decode
      spec:
        roleName: decode
        replicas: 2
        podSpec:
          schedulerName: kai-scheduler
          containers:
          - {name: engine, image: i, resources: {limits: {nvidia.com/gpu: "2"}}}
"""


def run(here: DrawnLab, count: int) -> dict[str, str]:
    """Wait until so many pods run, and return their nodes."""

    def running() -> bool:
        return [one["status"].get("phase") for one in here.pods().values()].count("Running") == count

    here.lab.wait(running, 30, f"{count} pods run")
    return here.nodes()


def claims(here: DrawnLab) -> dict[str, tuple[str, str]]:
    """Return for each pod with a reserved claim the node and the kind of device that were allocated."""
    found = {}
    for claim in here.lab.objects("resourceclaims"):
        status = claim.get("status", {})
        for user in status.get("reservedFor", ()):
            (result,) = status["allocation"]["devices"]["results"]
            found[user["name"]] = (result["pool"], result["device"].rpartition("-")[0])
    return found


def refusal(plan: Any) -> Any:
    (group,) = plan["groups"]
    return group["refusal"]


def tasks(count: int, gpus: int, *wants: str, first: str = "t") -> dict[str, str]:
    return {f"{first}{number}": " ".join([str(gpus), *wants]) for number in range(count)}


def test_a_group_gets_its_compute_domain_and_one_channel_for_each_node(lab: Lab, tmp_path: Path) -> None:
    here = stage(lab, tmp_path, TWO_CLIQUES, nvlink=True)
    workflow = here.workflow(tasks(2, 8, "clique=x"))
    here.render(workflow)
    nodes = run(here, 2)

    assert len(here.domains("clique", nodes)) == 1
    names = {task: one["metadata"]["name"] for task, one in here.pods().items()}
    assert claims(here) == {names[task]: (node, "channel") for task, node in nodes.items()}
    (domain,) = lab.objects("computedomains")
    template = domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
    made = lab.get("resourceclaimtemplate", template)
    assert made is not None
    assert made["spec"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"].startswith("compute-domain")
    states = lab.kubectl("get", "resourceclaims", "-n", "default", "--no-headers").splitlines()
    assert [line.split()[1] for line in states] == ["allocated,reserved"] * 2


def test_two_tasks_with_claims_never_share_a_node_in_the_plan_or_in_kai(lab: Lab, tmp_path: Path) -> None:
    here = stage(lab, tmp_path, TWO_CLIQUES, nvlink=True)
    asked = {"nvlink": "true"}
    workflow = here.workflow(tasks(2, 1, "clique=x"), "pair", asked)
    planned = {one["node"] for one in here.plan(workflow)["groups"][0]["assignments"]}
    assert len(planned) == 2

    here.render(workflow)
    assert len(set(run(here, 2).values())) == 2
    here.clear()

    three = here.workflow(tasks(3, 1, "clique=x"), "three", asked)
    plan = here.plan(three)
    assert plan["verdict"] == "impossible"
    assert refusal(plan)["reason"] == "NeverFits"
    assert "of tasks with a claim to a ComputeDomain, a node takes only one" in refusal(plan)["message"]
    here.render(three)
    assert here.settle() == {}
    # Without claims, one node would have done.
    assert here.plan(here.workflow(tasks(3, 1, "clique=x"), "three", {"nvlink": "false"}))["verdict"] == "placed"


def test_a_gang_waits_in_the_plan_and_in_kai_alike_while_others_have_the_channels(lab: Lab, tmp_path: Path) -> None:
    here = stage(lab, tmp_path, "cluster zone > clique\n  zone a: clique c1 [8 8]", nvlink=True)
    asked = {"nvlink": "true"}
    here.render(here.workflow(tasks(2, 1, "clique=x", first="a"), "first", asked))
    run(here, 2)

    second = here.workflow(tasks(2, 1, "clique=x", first="b"), "second", asked)
    plan = here.plan(second)
    assert plan["verdict"] == "waiting"
    assert refusal(plan)["reason"] == "ComputeDomainBlocked"
    assert refusal(plan)["message"].endswith("(2 nodes have their NVLink channel taken)")
    assert refusal(plan)["holders"] == [{"owner": "first", "gpus": 2, "domain": []}]
    assert [way["change"] for way in refusal(plan)["ways_out"]] == ["fits when first ends"]

    here.render(second)
    assert set(here.settle()) == {"a0", "a1"}
    (waiting,) = [
        one["metadata"]["name"]
        for one in lab.objects("podgroups.scheduling.run.ai", selector="coterie.dev/workflow=second")
    ]
    here.says(waiting, "cannot allocate all claims")

    for name in ("a0", "a1"):
        here.remove(name)
    # On a busy machine it may have bound the first ones slowly (trap P, below).
    restart(lab.programs["kai-scheduler"])
    assert set(run(here, 2)) == {"b0", "b1"}


def test_claims_do_not_count_when_kai_looks_for_a_domain(lab: Lab, tmp_path: Path) -> None:
    """Trap N: KAI tries the clique whose channels are taken first, fails on its nodes, and takes the other."""
    here = stage(lab, tmp_path, "cluster zone > clique\n  zone a: clique c1 [8 8]  clique c2 [8 8 8]", nvlink=True)
    here.render(here.workflow(tasks(2, 1, "clique=x", first="a"), "first", {"nvlink": "true"}))
    assert here.domains("clique", run(here, 2)) == ["c1"]

    second = here.workflow(tasks(2, 7, "clique=x", first="b"), "second", {"nvlink": "true"})
    plan = here.plan(second)
    assert {one["domains"]["clique"] for one in plan["groups"][0]["assignments"]} == {"c2"}
    assert "KaiWouldWait" not in warned(plan)
    here.render(second)
    nodes = run(here, 4)
    assert here.domains("clique", {task: nodes[task] for task in nodes if task[0] == "b"}) == ["c2"]


def test_a_clique_set_with_an_nvlink_group_takes_a_channel_for_each_pod(lab: Lab, tmp_path: Path) -> None:
    here = stage(lab, tmp_path, "cluster zone > clique\n  zone a: clique c1 [8 8]", nvlink=True)
    workflow = tmp_path / "serve.yaml"
    workflow.write_text(SET, encoding="utf-8")
    assert "NodesNotShared" in warned(here.plan(workflow))
    here.render(workflow)
    assert set(run(here, 2).values()) == {"a-c1-1", "a-c1-2"}
    assert len(claims(here)) == 2

    other = here.workflow(tasks(1, 1, first="b"), "other", {"nvlink": "true"})
    assert refusal(here.plan(other))["reason"] == "ComputeDomainBlocked"
    # Who has no claim is not concerned.
    assert here.plan(here.workflow(tasks(1, 1, first="b"), "other"))["verdict"] == "placed"


def test_a_claim_of_any_name_is_known_where_the_snapshot_has_claims(lab: Lab, tmp_path: Path) -> None:
    here = stage(lab, tmp_path, "cluster zone > clique\n  zone a: clique c1 [8]", nvlink=True)
    lab.apply(_domain("some-name"))
    lab.wait(lambda: lab.get("resourceclaimtemplate", "some-name"), 20, "the template is made")
    lab.apply(_claimant("foreign"))
    run(here, 1)

    plan = here.plan(here.workflow(tasks(1, 1), "other", {"nvlink": "true"}))
    assert refusal(plan)["reason"] == "ComputeDomainBlocked"
    assert refusal(plan)["holders"] == [{"owner": "default/foreign", "gpus": 1, "domain": []}]


def _domain(template: str) -> Object:
    """Return a ComputeDomain as a user writes it."""
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "mine", "namespace": "default"},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": template}}},
    }


def _claimant(name: str) -> list[Object]:
    """Return a pod with a claim to the channel of its node, and its PodGroup."""
    made = pod(name, name, 1, spec={"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "some-name"}]})
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "c"}]
    return [made, pod_group(name)]


def restart(program: Program) -> None:
    program.stop()
    program.start()


def channel_left_taken(lab: Lab, folder: Path) -> DrawnLab:
    """Have KAI bind and lose a pod with a claim on the only node, so slowly that it takes the channel for taken."""
    here = stage(lab, folder, "cluster zone > clique\n  zone a: clique c1 [8]", nvlink=True)
    lab.apply(_domain("some-name"))
    lab.wait(lambda: lab.get("resourceclaimtemplate", "some-name"), 20, "the template is made")
    scheduler, binder = lab.programs["kai-scheduler"], lab.programs["kai-binder"]
    binder.stop()
    try:
        lab.apply(_claimant("first"))
        lab.wait(lambda: lab.objects("bindrequests"), 30, "KAI has chosen a node")
        # The round after that notes the claim.
        said = scheduler.log.stat().st_size
        lab.wait(lambda: scheduler.log.read_bytes()[said:].count(b"End scheduling") > 2, 30, "KAI goes on")
    finally:
        binder.start()
    run(here, 1)
    here.remove("first")
    lab.wait(lambda: not lab.objects("resourceclaims"), 30, "its claim is gone")
    return here


def test_kai_takes_a_channel_for_taken_that_was_bound_slowly_until_it_is_restarted(lab: Lab, tmp_path: Path) -> None:
    """Trap P: what KAI notes about a claim between its choice and the binding is never forgotten."""
    here = channel_left_taken(lab, tmp_path)
    lab.apply(_claimant("second"))
    here.says("second", "cannot allocate all claims")
    assert here.settle() == {}
    # Nobody has the channel.
    plan = here.plan(here.workflow(tasks(1, 1), "other", {"nvlink": "true"}))
    assert plan["verdict"] == "placed"

    restart(lab.programs["kai-scheduler"])
    run(here, 1)


def test_a_channel_that_stays_taken_is_not_met_by_the_next_test_of_a_lab(lab: Lab, tmp_path: Path) -> None:
    channel_left_taken(lab, tmp_path)
    lab.reset(120)
    here = stage(lab, tmp_path, "cluster zone > clique\n  zone a: clique c1 [8]", nvlink=True)
    lab.apply(_domain("some-name"))
    lab.wait(lambda: lab.get("resourceclaimtemplate", "some-name"), 20, "the template is made")
    lab.apply(_claimant("next"))
    run(here, 1)
