"""PodCliqueSets for KAI: the objects around the pods, and pods that keep all of the user's fields."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.backends.kai.sets import checks
from coterie.backends.shared.constraint_annotation import ANNOTATION, read
from coterie.gang.tree import Toleration
from coterie.topology.cluster import STORAGE, Cluster, Node
from tests.backends.kai.sets.builders import (
    BLOCK,
    POOL,
    codes,
    faults_of,
    following,
    gangs,
    names,
    nodes,
    of_kind,
    only_pod,
    pods,
    rendered,
    with_pod,
)
from tests.frontends.grove.objects import annotated, assigned, changed, clique, constrained, group, podcliqueset

SOFT = {"topologyName": "t", "pack": {"preferred": "block"}}
CLIQUE = "spec.template.cliques.0"


def test_a_set_that_names_its_queue_gets_no_queues() -> None:
    found = rendered(podcliqueset())

    assert not of_kind(found, "Queue")
    assert of_kind(found, "PodGroup")[0]["spec"]["queue"] == "inference"
    assert {pod["metadata"]["labels"]["kai.scheduler/queue"] for pod in of_kind(found, "Pod")} == {"inference"}


def test_a_set_without_a_queue_gets_coteries_own_pair() -> None:
    found = rendered(changed(podcliqueset(), assigned("metadata.labels", {})))

    parent, queue = of_kind(found, "Queue")
    assert queue["spec"]["parentQueue"] == parent["metadata"]["name"]
    assert of_kind(found, "PodGroup")[0]["spec"]["queue"] == queue["metadata"]["name"]


def test_the_topology_is_that_of_the_name_the_set_uses() -> None:
    found = rendered(changed(podcliqueset(), constrained("set", BLOCK)))

    (topology,) = of_kind(found, "Topology")
    assert topology["metadata"]["name"] == "t"
    assert [level["nodeLabel"] for level in topology["spec"]["levels"]][1] == "fabric.example.com/block"
    assert of_kind(found, "PodGroup")[0]["spec"]["topologyConstraint"]["topology"] == "t"


def test_a_set_that_names_no_topology_gets_none() -> None:
    found = rendered(podcliqueset())

    assert not of_kind(found, "Topology")
    assert "topologyConstraint" not in of_kind(found, "PodGroup")[0]["spec"]


def test_podgroups_and_pods_have_groves_names_and_a_digest_of_their_namespace() -> None:
    here, there = (rendered(podcliqueset(), namespace=namespace) for namespace in ("one", "two"))

    for kind in ("PodGroup", "Pod"):
        assert not set(names(here, kind)) & set(names(there, kind))
    assert names(here, "PodGroup")[0].rpartition("-")[0] == "set-0"
    assert [name.rpartition("-")[0] for name in names(here, "Pod")] == [
        "set-0-a-0",
        "set-0-a-1",
        "set-0-b-0",
        "set-0-b-1",
    ]
    assert names(here, "Pod") == names(rendered(podcliqueset(), namespace="one"), "Pod")


def test_each_replica_of_a_set_is_a_gang_with_a_service() -> None:
    found = rendered(changed(podcliqueset(), assigned("spec.replicas", 2)))

    assert gangs(found) == ["set-0", "set-1"]
    assert names(found, "Service") == ["set-0", "set-1"]
    for service, replica in zip(of_kind(found, "Service"), "01", strict=True):
        selector = service["spec"]["selector"]
        chosen = [pod for pod in of_kind(found, "Pod") if selector.items() <= pod["metadata"]["labels"].items()]
        assert [pod["spec"]["subdomain"] for pod in chosen] == [f"set-{replica}"] * 4
        assert service["spec"]["clusterIP"] == "None"
        assert service["spec"]["publishNotReadyAddresses"] is True


def test_addresses_of_pods_that_are_not_ready_are_published_unless_the_set_says_no() -> None:
    headless = assigned("spec.template.headlessServiceConfig", {"publishNotReadyAddresses": False})

    (service,) = of_kind(rendered(changed(podcliqueset(), headless)), "Service")
    assert service["spec"]["publishNotReadyAddresses"] is False


def test_a_podgroup_counts_what_is_needed_and_keeps_what_was_meant() -> None:
    found = rendered(following(), groups=("set-0",))
    (podgroup,) = of_kind(found, "PodGroup")

    assert podgroup["spec"]["minMember"] == 4
    assert len(of_kind(found, "Pod")) == 5
    leaves = {each["name"]: each["minMember"] for each in podgroup["spec"]["subGroups"] if "minMember" in each}
    homes = [pod["metadata"]["labels"]["kai.scheduler/subgroup-name"] for pod in of_kind(found, "Pod")]
    assert leaves == {"0-rack-set-0-shard-0": 3, "1-set-0-a": 1}
    assert sorted(homes) == ["0-rack-set-0-shard-0"] * 3 + ["1-set-0-a"] * 2
    recorded = read(podgroup["metadata"]["annotations"][ANNOTATION]).gang
    assert [task.name for task in recorded.all_tasks() if not task.needed] == ["set-0-a-1"]


def test_a_podgroup_has_the_sets_priority_labels_and_annotations_but_not_groves() -> None:
    own = {"example.com/owner": "us", "grove.io/x": "y", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    made = changed(
        podcliqueset(priorityClassName="high"),
        assigned("metadata.annotations", own),
        assigned("metadata.labels.team", "serving"),
    )
    (podgroup,) = of_kind(rendered(made), "PodGroup")

    assert podgroup["spec"]["priorityClassName"] == "high"
    assert set(podgroup["metadata"]["annotations"]) == {"example.com/owner", ANNOTATION}
    assert podgroup["metadata"]["labels"]["team"] == "serving"


def test_pods_have_labels_of_coterie_grove_and_kai_over_the_users_own() -> None:
    made = changed(
        following(),
        assigned("spec.template.cliques.1.labels", {"app": "engine", "grove.io/podgang": "mine"}),
        assigned("spec.template.cliques.1.annotations", {"note": "n", "grove.io/topology-name": "x"}),
    )
    (pod,) = pods(rendered(made), "set-0-shard-0-lead")

    assert pod["metadata"]["labels"] == {
        "app": "engine",
        "app.kubernetes.io/managed-by": "coterie",
        "app.kubernetes.io/part-of": "set",
        "coterie.dev/attempt": "1",
        "coterie.dev/group": "set-0",
        "coterie.dev/task": "set-0-shard-0-lead-0",
        "coterie.dev/workflow": "set",
        "grove.io/pod-template-hash": pod["metadata"]["labels"]["grove.io/pod-template-hash"],
        "grove.io/podclique": "set-0-shard-0-lead",
        "grove.io/podclique-pod-index": "0",
        "grove.io/podcliquescalinggroup": "set-0-shard",
        "grove.io/podcliquescalinggroup-replica-index": "0",
        "grove.io/podcliqueset-replica-index": "0",
        "grove.io/podgang": "set-0",
        "kai.scheduler/queue": "inference",
        "kai.scheduler/subgroup-name": "0-rack-set-0-shard-0",
        "kai.scheduler/task-priority": "2",
        "runai/queue": "inference",
    }
    assert pod["metadata"]["annotations"] == {
        "note": "n",
        "kai.scheduler/skip-podgrouper": "true",
        "pod-group-name": names(rendered(made), "PodGroup")[0],
    }


def test_the_template_hash_is_of_the_template() -> None:
    def hashes(manifest: Any) -> set[str]:
        found = of_kind(rendered(manifest), "Pod")
        return {pod["metadata"]["labels"]["grove.io/pod-template-hash"] for pod in found}

    same = podcliqueset(clique("a", 4))
    assert len(hashes(same)) == 1
    assert hashes(same) == hashes(changed(same, assigned("spec.replicas", 2)))
    assert hashes(same).isdisjoint(hashes(changed(same, assigned(f"{CLIQUE}.spec.podSpec.priority", 1))))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.text(min_size=1, max_size=5), below, max_size=2),
    max_leaves=5,
)


@given(extra=st.dictionaries(st.text(min_size=1, max_size=6).map(lambda word: f"x{word}"), JSON, max_size=4))
def test_no_field_of_a_pod_spec_is_lost(extra: Mapping[str, Any]) -> None:
    made = with_pod(**extra)
    written = copy.deepcopy(made["spec"]["template"]["cliques"][0]["spec"]["podSpec"])
    written["containers"][0].update(extra)
    made["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0].update(extra)
    (pod,) = of_kind(rendered(made), "Pod")

    for key, value in extra.items():
        assert pod["spec"][key] == value
        assert pod["spec"]["containers"][0][key] == value
    assert written.keys() <= pod["spec"].keys()
    assert written["containers"][0].keys() <= pod["spec"]["containers"][0].keys()


def test_pods_have_groves_host_names_and_always_restart() -> None:
    found = rendered(with_pod(restartPolicy="Never", hostname="mine", subdomain="ours"))
    (pod,) = of_kind(found, "Pod")

    assert pod["spec"]["schedulerName"] == "kai-scheduler"
    assert pod["spec"]["restartPolicy"] == "Always"
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("set-0-a-0", "set-0")
    (notice,) = (notice for notice in found.notices if notice.code == "FieldReplaced")
    assert "hostname" in notice.message
    assert notice.place
    assert notice.place.line


def test_another_scheduler_is_replaced_with_a_warning() -> None:
    found = rendered(with_pod(schedulerName="default-scheduler"))

    assert of_kind(found, "Pod")[0]["spec"]["schedulerName"] == "kai-scheduler"
    assert "FieldReplaced" in codes(found)


def test_every_container_has_groves_variables_before_its_own_which_win() -> None:
    own = [{"name": "HOST", "value": "$(GROVE_PCS_NAME)"}, {"name": "GROVE_PCS_INDEX", "value": "7"}]
    before = {"name": "before", "image": "i"}
    pod = only_pod(containers=[{"name": "main", "image": "i", "env": own}], initContainers=[before])

    for container in (*pod["spec"]["containers"], *pod["spec"]["initContainers"]):
        variables = [each["name"] for each in container["env"]]
        assert len(set(variables)) == len(variables)
        assert {"GROVE_PCS_NAME", "GROVE_PCS_INDEX", "GROVE_PCLQ_NAME", "GROVE_PCLQ_POD_INDEX"} <= set(variables)
    env = pod["spec"]["containers"][0]["env"]
    assert env[-2:] == own
    values = {each["name"]: each.get("value") for each in env}
    assert values["GROVE_HEADLESS_SERVICE"] == "set-0.serving.svc.cluster.local"
    assert values["GROVE_PCS_INDEX"] == "7"


def test_members_of_a_scaling_group_know_their_group() -> None:
    (pod,) = pods(rendered(following()), "set-0-shard-0-lead")
    values = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}

    assert values["GROVE_PCLQ_NAME"] == "set-0-shard-0-lead"
    assert values["GROVE_PCSG_NAME"] == "set-0-shard"
    assert values["GROVE_PCSG_INDEX"] == "0"
    assert values["GROVE_PCSG_TEMPLATE_NUM_PODS"] == "3"


def test_pods_keep_to_the_nodes_of_their_pool() -> None:
    pool = replace(POOL, node_selector=(("pool", "p"), ("kind", "x")), tolerations=(Toleration("gpu", "Exists"),))
    kept = {"key": "mine", "operator": "Exists"}
    (pod,) = of_kind(rendered(with_pod(nodeSelector={"kind": "y"}, tolerations=[kept]), pool), "Pod")

    assert pod["spec"]["nodeSelector"] == {"pool": "p", "kind": "y"}
    assumed = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert pod["spec"]["tolerations"] == [kept, {"key": "gpu", "operator": "Exists"}, assumed]


def test_pods_of_a_pool_without_resource_tolerations_have_only_those_that_were_written() -> None:
    kept = {"key": "mine", "operator": "Exists", "tolerationSeconds": 5}
    strict = replace(POOL, resource_tolerations=False)
    (pod,) = of_kind(rendered(with_pod(tolerations=[kept]), strict), "Pod")

    assert pod["spec"]["tolerations"] == [kept]


def test_each_nvlink_group_of_a_replica_gets_a_compute_domain_and_claims_for_gpu_containers() -> None:
    made = changed(
        podcliqueset(clique("a", 4), clique("b", 4), clique("cpu")),
        assigned("spec.replicas", 2),
        annotated("set", "one"),
        annotated("b", "two"),
        assigned(f"{CLIQUE}.spec.podSpec.containers.0.resources.requests", {"cpu": "1"}),
    )
    made["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"].append({"name": "side", "image": "i"})
    found = rendered(made)

    assert names(found, "ComputeDomain") == ["set-0-one", "set-0-two", "set-1-one", "set-1-two"]
    domain = of_kind(found, "ComputeDomain")[0]
    assert domain["spec"] == {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "set-0-one"}}}
    assert domain["metadata"]["labels"]["grove.io/mnnvl-group"] == "one"
    first = pods(found, "set-1-a")[0]["spec"]
    assert first["resourceClaims"] == [{"name": "mnnvl-claim", "resourceClaimTemplateName": "set-1-one"}]
    assert first["containers"][0]["resources"]["claims"] == [{"name": "mnnvl-claim"}]
    assert "claims" not in first["containers"][1].get("resources", {})
    assert "resourceClaims" not in pods(found, "set-0-cpu")[0]["spec"]


def test_pods_with_claims_that_could_share_a_node_are_warned_of() -> None:
    made = changed(podcliqueset(clique("a", 4)), annotated("set", "one"))

    assert "NodesNotShared" in codes(rendered(made, cluster=Cluster.of(nodes())))
    assert "NodesNotShared" not in codes(rendered(made))
    whole = changed(podcliqueset(clique("a", 8)), annotated("set", "one"))
    assert "NodesNotShared" not in codes(rendered(whole, cluster=Cluster.of(nodes())))


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        (changed(podcliqueset(), assigned("metadata.name", "a.b")), "metadata.name"),
        (changed(podcliqueset(), assigned("metadata.name", "7b")), "metadata.name"),
        (changed(podcliqueset(), assigned(f"{CLIQUE}.name", "a.b")), "spec.template.cliques[0].name"),
        (
            podcliqueset(clique("a"), groups=[group("g.h", "a")]),
            "spec.template.podCliqueScalingGroups[0].name",
        ),
        (
            changed(podcliqueset(), assigned(f"{CLIQUE}.spec.podSpec.containers.0.env", {"A": "b"})),
            "spec.template.cliques[0].spec.podSpec.containers[0].env",
        ),
        (
            changed(podcliqueset(), assigned(f"{CLIQUE}.spec.podSpec.containers.0.env", ["A=b"])),
            "spec.template.cliques[0].spec.podSpec.containers[0].env",
        ),
        (
            changed(podcliqueset(), assigned(f"{CLIQUE}.spec.podSpec.containers.0.resources", {"claims": "x"})),
            "spec.template.cliques[0].spec.podSpec.containers[0].resources.claims",
        ),
    ],
)
def test_what_no_pod_or_service_can_be_made_of_is_refused(manifest: Any, field: str) -> None:
    assert field in faults_of(manifest)


def test_more_than_can_be_written_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MOST_WRITTEN", 400)

    assert "spec.replicas" in faults_of(podcliqueset())
    assert rendered(podcliqueset(clique("a", replicas=1)))


def test_a_gang_whose_record_is_too_large_is_refused() -> None:
    many = podcliqueset(clique("a-rather-long-name-of-a-clique", replicas=7000))

    assert "too large" in faults_of(many)["metadata.name"]


def test_what_nobody_carries_out_is_said_once() -> None:
    made = podcliqueset(
        clique("a", autoScalingConfig={"maxReplicas": 9}),
        clique("b", startsAfter=["a"]),
        cliqueStartupType="CliqueStartupTypeExplicit",
        terminationDelay="1h",
    )
    found = rendered(changed(made, assigned("spec.updateStrategy", {"type": "OnDelete"})))
    (notice,) = (notice for notice in found.notices if notice.code == "NotCarriedOut")

    for word in ("autoscaling", "cliqueStartupType", "terminationDelay", "updateStrategy"):
        assert word in notice.message
    assert notice.place
    assert "NotCarriedOut" not in codes(rendered(podcliqueset()))


def test_replicas_that_are_alike_are_warned_of_once() -> None:
    mixed = changed(podcliqueset(clique("a", 4), clique("b", 8)), constrained("set", BLOCK))
    found = rendered(changed(mixed, assigned("spec.replicas", 5)))

    (notice,) = (notice for notice in found.notices if notice.code == "MixedSizes")
    assert "set-0" in notice.message
    assert "and 4 more like it" in notice.message


def test_needed_pods_come_before_wanted_ones_and_large_before_small() -> None:
    found = rendered(podcliqueset(clique("a", 1, minAvailable=1), clique("b", 4, replicas=1)))
    order = {
        pod["metadata"]["labels"]["coterie.dev/task"]: int(pod["metadata"]["labels"]["kai.scheduler/task-priority"])
        for pod in of_kind(found, "Pod")
    }

    assert sorted(order, key=lambda name: -order[name]) == ["set-0-b-0", "set-0-a-0", "set-0-a-1"]


def test_pods_of_different_sizes_that_share_a_domain_are_told_apart_by_a_little_storage() -> None:
    cluster = Cluster.of(replace(node, allocatable={**node.allocatable, STORAGE: 1 << 30}) for node in nodes())
    mixed = changed(podcliqueset(clique("a", 4), clique("b", 8)), constrained("set", BLOCK))
    found = rendered(mixed, cluster=cluster)

    asked = [pod["spec"]["containers"][0]["resources"].get("requests") for pod in of_kind(found, "Pod")]
    assert asked == [None, None, {"ephemeral-storage": "1Ki"}, None]
    assert codes(found) == ["StorageRequested"]


def test_a_set_whose_domains_kai_would_take_for_one_is_refused() -> None:
    labels = ({"zone": "a.b", "block": "c"}, {"zone": "a", "block": "b.c"})
    cluster = Cluster.of(
        Node(
            f"n{index}",
            {
                "topology.kubernetes.io/zone": found["zone"],
                "fabric.example.com/block": found["block"],
                "fabric.example.com/rack": "r",
                "kubernetes.io/hostname": f"n{index}",
            },
        )
        for index, found in enumerate(labels)
    )
    two = changed(podcliqueset(), constrained("set", BLOCK), assigned("spec.replicas", 2))

    assert list(faults_of(two, cluster=cluster)) == ["metadata.name"]
    assert "DomainsMerged" in codes(rendered(changed(podcliqueset(), constrained("set", SOFT)), cluster=cluster))


def test_a_pool_of_another_scheduler_is_warned_of() -> None:
    pool = replace(POOL, scheduler="kueue")
    default = changed(podcliqueset(clique("a")), assigned(f"{CLIQUE}.spec.podSpec.schedulerName", "default-scheduler"))

    assert "OtherScheduler" in codes(rendered(default, pool))
