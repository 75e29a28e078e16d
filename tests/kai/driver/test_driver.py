"""Workflows of a service on a real cluster: objects created by KAI's rules, followed, and removed without a trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.cluster.operator import open_definition

from coterie.kube.kinds import POD_CLIQUE_SET
from coterie.operator.crds import definitions
from lab import Lab
from tests.kai.driver.service_on_kai import OWN, RACK, ZONE, KaiService, add_nodes, serving, settings
from tests.service.running_service import task, workflow

PAIR = {"g": [task("a", "run", "lead: true"), task("b", "run")]}
TOGETHER = "[{key: rack}]"


@pytest.fixture
def nvl(lab: Lab) -> Lab:
    """Give the shared lab with two racks of two nodes."""
    add_nodes(lab)
    return lab


def test_a_gang_is_placed_by_kai_runs_to_its_end_and_leaves_nothing(nvl: Lab, tmp_path: Path) -> None:
    with serving(nvl, settings(tmp_path)) as here:
        ident = here.submit(workflow("train", PAIR, gpu=8, topology=TOGETHER))
        here.running(ident, 2)
        nodes = {one["metadata"]["name"]: one["metadata"]["labels"] for one in nvl.objects("nodes")}
        assert len({nodes[one["node"]][RACK] for one in here.tasks(ident).values()}) == 1

        (group,) = nvl.objects("podgroups.scheduling.run.ai", selector=OWN)
        assert group["spec"]["priorityClassName"] == "coterie-normal"
        for pod in here.pods(ident):
            assert [one["uid"] for one in pod["metadata"]["ownerReferences"]] == [group["metadata"]["uid"]]
            assert pod["spec"]["automountServiceAccountToken"] is False
        (queue,) = [one for one in nvl.objects("queues") if one["spec"].get("parentQueue")]
        assert queue["spec"]["resources"]["gpu"] == {"quota": 8, "limit": 64, "overQuotaWeight": 2}

        here.end(ident, "b")
        here.end(ident, "a")
        assert here.finished(ident) == "COMPLETED"
        assert here.left() == {}


def test_a_task_that_fails_fails_its_group_with_its_exit_code(nvl: Lab, tmp_path: Path) -> None:
    with serving(nvl, settings(tmp_path)) as here:
        ident = here.submit(workflow("train", PAIR, gpu=1))
        here.running(ident, 2)
        here.end(ident, "a", code=7)
        assert here.finished(ident) == "FAILED"
        assert here.tasks(ident)["a"]["exit_code"] == 7
        assert here.left() == {}


def test_groups_that_wait_for_others_are_created_after_them(nvl: Lab, tmp_path: Path) -> None:
    second = task("late", "run", "inputs: [{task: early}]")
    with serving(nvl, settings(tmp_path)) as here:
        ident = here.submit(workflow("chain", {"one": [task("early", "run")], "two": [second]}, gpu=1))
        here.running(ident, 1)
        assert [one["metadata"]["labels"]["coterie.dev/task"] for one in here.pods(ident)] == ["early"]
        here.end(ident, "early")
        nvl.wait(lambda: here.tasks(ident)["late"]["status"] == "RUNNING", 60, "the second group runs")
        here.end(ident, "late")
        assert here.finished(ident) == "COMPLETED"
        assert here.left() == {}


def test_a_canceled_and_a_deleted_workflow_leave_nothing(nvl: Lab, tmp_path: Path) -> None:
    with serving(nvl, settings(tmp_path)) as here:
        ident = here.submit(workflow("train", PAIR, gpu=1))
        here.running(ident, 2)
        here.service.cancel(ident)
        assert here.finished(ident) == "FAILED_CANCELED"
        assert here.left() == {}
        here.service.delete(ident)


def test_a_retry_makes_new_objects_with_the_same_place_in_the_gang(nvl: Lab, tmp_path: Path) -> None:
    with serving(nvl, settings(tmp_path)) as here:
        ident = here.submit(workflow("train", PAIR, gpu=1, topology=TOGETHER))
        here.running(ident, 2)
        before = _shape(here, ident)
        here.end(ident, "a", code=1)
        assert here.finished(ident) == "FAILED"
        here.service.retry(ident)
        here.running(ident, 2)
        assert _shape(here, ident) == before
        assert {one["metadata"]["labels"]["coterie.dev/attempt"] for one in here.pods(ident)} == {"2"}
        here.end(ident, "a")
        assert here.finished(ident) == "COMPLETED"
        assert here.left() == {}


def _shape(here: KaiService, ident: str) -> dict[str, object]:
    """Return what must be the same for each attempt: subgroup, queue, claims, and environment but for its number."""
    found: dict[str, object] = {}
    for pod in here.pods(ident):
        labels = pod["metadata"]["labels"]
        (container,) = pod["spec"]["containers"]
        found[labels["coterie.dev/task"]] = (
            labels.get("kai.scheduler/subgroup-name"),
            labels["kai.scheduler/queue"],
            pod["spec"].get("hostname"),
            pod["spec"].get("subdomain"),
            container["resources"],
            [one for one in container["env"] if one["name"] != "COTERIE_ATTEMPT" and "valueFrom" not in one],
            # The domains of each attempt are in a map of its own.
            [one["name"] for one in container["env"] if "valueFrom" in one],
        )
    return found


def test_a_group_of_an_nvlink_pool_gets_a_compute_domain_that_goes_after_its_pods(nvl: Lab, tmp_path: Path) -> None:
    with serving(nvl, settings(tmp_path, nvlink=True)) as here:
        ident = here.submit(workflow("train", PAIR, gpu=8, topology=TOGETHER))
        here.running(ident, 2)
        (domain,) = nvl.objects("computedomains", selector=OWN)
        (group,) = nvl.objects("podgroups.scheduling.run.ai", selector=OWN)
        assert [one["uid"] for one in group["metadata"]["ownerReferences"]] == [domain["metadata"]["uid"]]
        states = nvl.kubectl("get", "resourceclaims", "-n", "default", "--no-headers").splitlines()
        assert [line.split()[1] for line in states] == ["allocated,reserved"] * 2

        # A pod that does not go keeps everything else.
        held = here.pods(ident, "a")[0]["metadata"]["name"]
        nvl.api.patch("pods", held, {"metadata": {"finalizers": ["example.com/hold"]}}, "default")
        here.service.cancel(ident)
        nvl.wait(lambda: len(here.pods(ident)) == 1, 60, "the other pod is gone")
        assert len(nvl.objects("computedomains", selector=OWN)) == 1
        assert len(nvl.objects("podgroups.scheduling.run.ai", selector=OWN)) == 1
        assert nvl.objects("computedomains", selector=OWN)[0]["metadata"].get("deletionTimestamp") is None
        nvl.api.patch("pods", held, {"metadata": {"finalizers": None}}, "default")
        assert here.finished(ident) == "FAILED_CANCELED"
        assert here.left() == {}
        assert nvl.objects("resourceclaimtemplates") == []
        nvl.wait(lambda: nvl.objects("resourceclaims") == [], 60, "no claim is left")


def test_a_restarted_service_goes_on_where_it_was(nvl: Lab, tmp_path: Path) -> None:
    found = settings(tmp_path)
    with serving(nvl, found) as here:
        first = here.submit(workflow("first", PAIR, gpu=1))
        second = here.submit(workflow("second", PAIR, gpu=1))
        here.running(first, 2)
        here.running(second, 2)
        before = {one["metadata"]["uid"] for one in here.pods(first)}
    here.end(first, "a")
    lost = here.pods(second, "b")[0]["metadata"]
    nvl.api.delete("pods", lost["name"], "default", grace=0)
    with serving(nvl, found) as here:
        assert here.finished(first) == "COMPLETED"
        # The lost task starts again beside the other.
        nvl.wait(lambda: len(here.pods(second)) == 2, 60, "the lost pod is replaced")
        here.running(second, 2)
        assert here.tasks(second)["b"]["attempt"] == 2
        assert before.isdisjoint(one["metadata"]["uid"] for one in here.pods(second))
        here.end(second, "a")
        assert here.finished(second) == "COMPLETED"
        assert here.left() == {}


def test_an_identical_pool_writes_nothing_and_new_levels_make_a_new_topology_first(nvl: Lab, tmp_path: Path) -> None:
    found = settings(tmp_path)
    file = tmp_path / "coterie.yaml"
    with serving(nvl, found) as here:
        ident = here.submit(workflow("train", PAIR, gpu=1, topology=TOGETHER))
        here.running(ident, 2)
        before = _versions(nvl)
    with serving(nvl, found) as here:
        nvl.wait(lambda: "is not known" not in here.problems(), 30, "the driver works")
        (old,) = nvl.objects("topologies")
        assert _versions(nvl) == before
        file.write_text(
            file.read_text().replace(
                f"- {{key: rack, label: {RACK}}}",
                f"- {{key: rack, label: {RACK}}}\n    - {{key: host, label: kubernetes.io/hostname}}",
            )
        )
        nvl.wait(lambda: len(nvl.objects("topologies")) == 2, 60, "the new topology is there")
        # The running gang still refers to the old one.
        (group,) = nvl.objects("podgroups.scheduling.run.ai", selector=OWN)
        assert group["spec"]["topologyConstraint"]["topology"] == old["metadata"]["name"]
        here.end(ident, "a")
        assert here.finished(ident) == "COMPLETED"
    with serving(nvl, found):
        nvl.wait(lambda: len(nvl.objects("topologies")) == 1, 60, "the old topology is removed")
        assert nvl.objects("topologies")[0]["metadata"]["name"] != old["metadata"]["name"]


def _versions(lab: Lab) -> dict[str, str]:
    kinds = ("queues", "topologies", "priorityclasses")
    return {
        one["metadata"]["name"]: one["metadata"]["resourceVersion"]
        for kind in kinds
        for one in lab.objects(kind, selector=OWN)
    }


def test_a_gang_whose_compute_domain_nobody_prepares_waits_for_that_reason(nvl: Lab, tmp_path: Path) -> None:
    controller = nvl.programs["compute-domain-controller"]
    controller.stop()
    try:
        with serving(nvl, settings(tmp_path, nvlink=True)) as here:
            ident = here.submit(workflow("train", PAIR, gpu=8, topology=TOGETHER))

            def waits() -> bool:
                (group,) = here.service.workflow(ident)["groups"]
                return bool(group["waiting"]) and group["waiting"]["reason"] == "ComputeDomainNotReady"

            nvl.wait(waits, 60, "the gang waits for its ComputeDomain")
            controller.start()
            here.running(ident, 2)
            here.end(ident, "a")
            assert here.finished(ident) == "COMPLETED"
            assert here.left() == {}
    finally:
        if not controller.running:
            controller.start()


@pytest.fixture
def topologies(nvl: Lab) -> Iterator[Lab]:
    """Give the lab with the kinds of ClusterTopologies and PodCliqueSets, which others do not expect there."""
    # Grove's own definitions may be there from an earlier test.
    added = [*definitions(beside_grove=True), open_definition(POD_CLIQUE_SET, "v1alpha1")]
    nvl.apply(added)
    names = [f"crd/{one['metadata']['name']}" for one in added]
    nvl.kubectl("wait", "--for=condition=Established", *names, "--timeout=180s")
    yield nvl
    nvl.kubectl("delete", *names, "--wait=true", "--timeout=300s")


def test_a_pool_that_names_a_cluster_topology_uses_the_topology_that_it_refers_to_and_knows_its_users(
    topologies: Lab, tmp_path: Path
) -> None:
    levels = [{"domain": "zone", "key": ZONE}, {"domain": "rack", "key": RACK}]
    references = [{"schedulerName": "kai-scheduler", "reference": "theirs"}]
    topologies.apply(
        [
            {
                "apiVersion": "grove.io/v1alpha1",
                "kind": "ClusterTopology",
                "metadata": {"name": "fleet"},
                "spec": {"levels": levels, "schedulerReferences": references},
            },
            {
                "apiVersion": "kai.scheduler/v1alpha1",
                "kind": "Topology",
                "metadata": {"name": "theirs"},
                "spec": {"levels": [{"nodeLabel": ZONE}, {"nodeLabel": RACK}]},
            },
            {
                "apiVersion": "grove.io/v1alpha1",
                "kind": "PodCliqueSet",
                "metadata": {"name": "serve", "namespace": "default"},
                "spec": {"template": {"topologyConstraint": {"topologyName": "fleet", "pack": {"required": "rack"}}}},
            },
        ]
    )
    config = "backends: {lab: {scheduler: kai, namespace: default}}\npools: {gb200: {topology: fleet}}\n"
    with serving(topologies, settings(tmp_path, config=config)) as here:
        ident = here.submit(workflow("train", PAIR, gpu=8, topology=TOGETHER))
        here.running(ident, 2)
        (group,) = topologies.objects("podgroups.scheduling.run.ai", selector=OWN)
        assert group["spec"]["topologyConstraint"] == {"topology": "theirs", "requiredTopologyLevel": RACK}
        report = here.service.topology_users("gb200", ["zone"])
        users = [(user["kind"], user["namespace"], user["name"], user["effect"]) for user in report["users"]]
        assert users == [("Workflow", "", ident, "not-placed"), ("PodCliqueSet", "default", "serve", "not-placed")]
        assert report["faults"] == []
        here.end(ident, "a")
        assert here.finished(ident) == "COMPLETED"
    # It is theirs: neither copied nor removed.
    assert [one["metadata"]["name"] for one in topologies.objects("topologies")] == ["theirs"]
