"""Files in the forms that Dynamo's and Grove's users publish: each is planned, with the right number of GPUs.

The cluster has two NVLink cliques of six nodes with eight GPUs each, as kubectl shows them. The files are written here.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
import yaml

from tests.cli.command import Done, SampleFolder, call

CLIQUE = "nvidia.com/gpu.clique"
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
IMAGE = "example.com/serving/runtime:1.4.0"
Data = dict[str, Any]


def node(name: str, clique: str, **labels: str) -> Data:
    offered = {"cpu": "144", "memory": "1800Gi", "nvidia.com/gpu": "8", "pods": "110", "ephemeral-storage": "4Ti"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, CLIQUE: clique, **labels}},
        "status": {"allocatable": {**offered, "rdma/ib": "8"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def running(name: str, on: str, *, labels: Data | None = None, **spec: Any) -> Data:
    metadata = {"name": name, "namespace": "serving", "labels": labels or {}}
    container = {"name": "c", "ports": spec.pop("ports", [])}
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": on, "containers": [container], **spec},
        "status": {"phase": "Running"},
    }


NODES = [node(f"n{clique}-{index}", f"uuid.{clique}") for clique in (1, 2) for index in range(6)]


def snapshot(*more: Data) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [*NODES, *more]})


def planned(desk: SampleFolder, *documents: Data, cluster: str = "", levels: bool = True) -> tuple[Done, Any]:
    """Plan a file; return how it ended and its data."""
    file = desk.file("serve.yaml", yaml.safe_dump_all(documents, sort_keys=False))
    there = desk.file("cluster.json", cluster or snapshot())
    extra = ["--levels", f"clique={CLIQUE}"] if levels else []
    done = call("plan", file, "--cluster", there, "-o", "json", *extra, cwd=desk.folder)
    return done, json.loads(done.out)


def nodes(said: Any) -> Counter[str]:
    return Counter(each["node"] for group in said["groups"] for each in group["assignments"])


def nodes_of(said: Any, word: str) -> list[str]:
    return [each["node"] for group in said["groups"] for each in group["assignments"] if word in each["task"]]


def gpus(desk: SampleFolder) -> int:
    """Return how many GPUs the manifests of the file ask for in all."""
    done = call("render", desk.folder / "serve.yaml", "--levels", f"clique={CLIQUE}", "-o", "json", cwd=desk.folder)
    assert done.code == 0, done.err
    items = json.loads(done.out)["items"]
    return sum(
        int(container.get("resources", {}).get("limits", {}).get("nvidia.com/gpu", 0))
        for item in items
        if item["kind"] == "Pod"
        for container in item["spec"]["containers"]
    )


def codes(said: Any) -> set[str]:
    return {each["code"] for each in said["warnings"]}


DOMAIN = {
    "apiVersion": "resource.nvidia.com/v1beta1",
    "kind": "ComputeDomain",
    "metadata": {"name": "engines"},
    "spec": {"numNodes": 5, "channel": {"resourceClaimTemplate": {"name": "engines-imex"}}},
}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "engine-settings"}, "data": {"a": "b"}}


def alpha(services: Data) -> Data:
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "chat", "namespace": "serving"},
        "spec": {"backendFramework": "trtllm", "services": services},
    }


def beta(*components: Data) -> Data:
    return {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "chat", "namespace": "serving"},
        "spec": {"backendFramework": "vllm", "components": list(components)},
    }


def component(name: str, *, gpu: int = 4, replicas: int = 1, labels: Data | None = None, **spec: Any) -> Data:
    container = {"name": "main", "image": IMAGE, "resources": {"limits": {"nvidia.com/gpu": str(gpu)}}}
    container |= spec.pop("container", {})
    template = {"spec": {"containers": [container], **spec}, **({"metadata": {"labels": labels}} if labels else {})}
    return {"name": name, "replicas": replicas, "minAvailable": replicas, "podTemplate": template}


def service(*, main: Data | None = None, **fields: Any) -> Data:
    extra = fields.pop("extra", {})
    return {
        "componentType": "worker",
        "replicas": 1,
        **fields,
        "extraPodSpec": {"tolerations": [], "affinity": {}, "mainContainer": {"image": IMAGE, **(main or {})}, **extra},
    }


CLAIM = {"resourceClaims": [{"name": "imex", "resourceClaimTemplateName": "engines-imex"}]}
FRONTEND = {"componentType": "frontend", "replicas": 1, "extraPodSpec": {"mainContainer": {"image": IMAGE}}}


def test_gpus_of_a_service_stay_where_its_main_container_has_resources_too(desk: SampleFolder) -> None:
    worker = service(
        resources={"limits": {"gpu": "4"}}, main={"resources": {"requests": {"cpu": "32", "memory": "64Gi"}}}
    )
    done, said = planned(desk, alpha({"Frontend": FRONTEND, "Worker": {**worker, "replicas": 3, "minAvailable": 3}}))
    assert (done.code, said["verdict"]) == (0, "placed")
    assert max(Counter(nodes_of(said, "worker")).values()) == 2
    assert gpus(desk) == 12


def test_engines_with_claims_to_a_compute_domain_beside_them_each_have_a_node(desk: SampleFolder) -> None:
    claimed: Data = {"resources": {"limits": {"gpu": "4"}, "claims": [{"name": "imex"}]}, "extra": CLAIM}
    graph = alpha(
        {
            "Frontend": FRONTEND,
            "prefill": service(subComponentType="prefill", **claimed),
            "decode": service(subComponentType="decode", multinode={"nodeCount": 4}, **claimed),
        }
    )
    done, said = planned(desk, CONFIG, DOMAIN, graph)
    assert (done.code, said["verdict"]) == (0, "placed")
    engines = nodes_of(said, "prefill") + nodes_of(said, "decode")
    assert len(engines) == len(set(engines)) == 5
    assert gpus(desk) == 20
    assert "ClaimsNotPlanned" not in codes(said)
    assert "NodesNotShared" in codes(said)
    assert "ignored, because Coterie does not read them: 1 ConfigMap (" in done.err


@pytest.mark.parametrize(
    ("claim", "objects"),
    [
        (
            {"name": "imex", "resourceClaimTemplateName": "engines-imex"},
            [{**DOMAIN, "metadata": {"name": "d", "namespace": "serving"}}],
        ),
        (
            {"name": "imex", "resourceClaimTemplateName": "own"},
            [
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceClaimTemplate",
                    "metadata": {"name": "own", "namespace": "serving"},
                    "spec": {
                        "spec": {
                            "devices": {
                                "requests": [
                                    {"exactly": {"deviceClassName": "compute-domain-default-channel.nvidia.com"}}
                                ]
                            }
                        }
                    },
                }
            ],
        ),
        ({"name": "compute-domain-channel", "resourceClaimTemplateName": "anything"}, []),
        ({"name": "c", "resourceClaimTemplateName": "engines-channel"}, []),
    ],
    ids=["a ComputeDomain", "a claim template", "the name of the claim", "the name of the template"],
)
def test_claims_to_channels_are_known_by_what_the_snapshot_has_or_by_name(
    desk: SampleFolder, claim: Data, objects: list[Data]
) -> None:
    holder = running("holder", "n1-0", resourceClaims=[claim])
    done, said = planned(
        desk, beta(component("Worker", replicas=11, resourceClaims=[claim])), cluster=snapshot(*objects, holder)
    )
    assert (done.code, said["verdict"]) == (0, "placed")
    assert set(nodes(said)) == {each["metadata"]["name"] for each in NODES} - {"n1-0"}
    assert "ClaimsNotPlanned" not in codes(said)


def test_other_claims_are_planned_under_a_warning(desk: SampleFolder) -> None:
    nics: Data = {"resourceClaims": [{"name": "nics", "resourceClaimTemplateName": "all-nics"}]}
    done, said = planned(desk, beta(component("Worker", replicas=2, **nics)))
    assert (done.code, said["verdict"]) == (0, "placed")
    assert len(nodes(said)) == 1
    [message] = [each["message"] for each in said["warnings"] if each["code"] == "ClaimsNotPlanned"]
    assert '"all-nics"' in message


def spread(key: str, *names: str, kind: str = "podAntiAffinity") -> Data:
    term = {
        "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": list(names)}]},
        "topologyKey": key,
    }
    return {kind: {REQUIRED: [term]}}


def test_replicas_with_anti_affinity_by_host_are_on_different_nodes(desk: SampleFolder) -> None:
    worker = component("Worker", gpu=2, replicas=12, labels={"app": "chat"}, affinity=spread(HOST, "chat"))
    done, said = planned(desk, beta(worker))
    assert (done.code, said["verdict"]) == (0, "placed")
    assert set(nodes(said).values()) == {1}
    done, said = planned(desk, beta({**worker, "replicas": 13, "minAvailable": 13}))
    assert (done.code, said["groups"][0]["refusal"]["reason"]) == (7, "NeverFits")
    assert "do not share a node" in said["groups"][0]["refusal"]["message"]


def test_replicas_with_anti_affinity_by_clique_are_in_different_cliques(desk: SampleFolder) -> None:
    worker = component("Worker", replicas=2, labels={"app": "chat"}, affinity=spread(CLIQUE, "chat"))
    done, said = planned(desk, beta(worker))
    assert (done.code, {name.partition("-")[0] for name in nodes(said)}) == (0, {"n1", "n2"})
    assert planned(desk, beta({**worker, "replicas": 3, "minAvailable": 3}))[0].code == 7


def test_pods_that_run_are_avoided_and_avoid_others(desk: SampleFolder) -> None:
    shy = running("shy", "n1-0", labels={"app": "shy"}, affinity=spread(HOST, "chat"))
    avoided = running("loud", "n1-1", labels={"app": "loud"})
    listening = running("proxy", "n1-2", ports=[{"containerPort": 8000, "hostPort": 8000, "protocol": "TCP"}])
    worker = component(
        "Worker",
        replicas=9,
        labels={"app": "chat"},
        affinity=spread(HOST, "loud"),
        container={"ports": [{"containerPort": 8000, "hostPort": 8000}]},
    )
    done, said = planned(desk, beta(worker), cluster=snapshot(shy, avoided, listening))
    assert (done.code, said["verdict"]) == (0, "placed")
    assert not {"n1-0", "n1-1", "n1-2"} & set(nodes(said))
    done, said = planned(
        desk, beta({**worker, "replicas": 10, "minAvailable": 10}), cluster=snapshot(shy, avoided, listening)
    )
    assert (done.code, said["verdict"]) == (6, "waiting")


def test_on_the_network_of_the_host_pods_with_one_port_have_a_node_each(desk: SampleFolder) -> None:
    ports = {"ports": [{"containerPort": 9090, "name": "system"}]}
    done, said = planned(desk, beta(component("Worker", gpu=1, replicas=5, hostNetwork=True, container=ports)))
    assert (done.code, len(nodes(said))) == (0, 5)


def test_affinity_by_nvlink_clique_keeps_the_replicas_in_one(desk: SampleFolder) -> None:
    near = spread(CLIQUE, "chat", kind="podAffinity")
    worker = component("Worker", gpu=8, replicas=6, labels={"app": "chat"}, affinity=near)
    busy = [running("b", "n1-0", labels={"app": "x"}, ports=[{"containerPort": 1, "hostPort": 1}])]
    worker["podTemplate"]["spec"]["containers"][0]["ports"] = [{"containerPort": 1, "hostPort": 1}]
    done, said = planned(desk, beta(worker), cluster=snapshot(*busy))
    assert (done.code, said["verdict"]) == (0, "placed")
    assert {name.partition("-")[0] for name in nodes(said)} == {"n2"}
    assert [each["satisfied"] for each in said["groups"][0]["constraints"]] == [True]


def test_preferred_anti_affinity_is_a_warning(desk: SampleFolder) -> None:
    soft = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}
    done, said = planned(desk, beta(component("Worker", replicas=2, affinity=soft)))
    assert (done.code, said["verdict"]) == (0, "placed")
    [message] = [each["message"] for each in said["warnings"] if each["code"] == "FieldIgnored"]
    assert "preferred pod anti-affinity" in message


GPU_TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpus"},
    "spec": {
        "spec": {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 4}}]}}
    },
}


def apart(**term: Any) -> Data:
    return {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOST, **term}]}}


UNSUPPORTED: dict[str, tuple[Data, str]] = {
    "GPUs by claim": (
        component("Worker", resourceClaims=[{"name": "g", "resourceClaimTemplateName": "gpus"}]),
        "resourceClaims[0]",
    ),
    "an existing claim": (
        component("Worker", resourceClaims=[{"name": "g", "resourceClaimName": "shared"}]),
        "resourceClaims[0]",
    ),
    "namespaces by label": (
        component("Worker", affinity=apart(labelSelector={}, namespaceSelector={"matchLabels": {"a": "b"}})),
        f"affinity.podAntiAffinity.{REQUIRED}[0].namespaceSelector",
    ),
    "affinity to pods that are not there": (
        component("Worker", affinity=spread(CLIQUE, "cache", kind="podAffinity")),
        f"affinity.podAffinity.{REQUIRED}[0]",
    ),
    "a label that an operator sets": (
        component("Worker", affinity=apart(labelSelector={"matchLabels": {"nvidia.com/selector": "x"}})),
        f"affinity.podAntiAffinity.{REQUIRED}[0]",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("worker", "field"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_what_no_plan_can_honour_is_unsupported_and_not_invalid(desk: SampleFolder, worker: Data, field: str) -> None:
    done, said = planned(desk, GPU_TEMPLATE, beta(worker))
    assert done.code == 8
    [error] = said["errors"]
    assert error["code"] == "Unsupported"
    assert error["field"].endswith(f"podSpec.{field}")
    assert error["line"]
    assert "emove" not in error["hint"]
    assert call("validate", desk.folder / "serve.yaml", cwd=desk.folder).code == 0


def test_what_is_wrong_comes_before_what_is_unsupported(desk: SampleFolder) -> None:
    wrong = component("Worker", resourceClaims=[{"name": "g", "resourceClaimName": "shared"}], nodeSelector={"a": 1})
    assert planned(desk, beta(wrong))[0].code == 3


def clique(name: str, replicas: int, *, gpu: int = 0, labels: Data | None = None, **spec: Any) -> Data:
    container = {"name": "c", "image": IMAGE, **({"resources": {"limits": {"nvidia.com/gpu": gpu}}} if gpu else {})}
    return {
        "name": name,
        **({"labels": labels} if labels else {}),
        "spec": {"roleName": name, "replicas": replicas, "podSpec": {"containers": [container], **spec}},
    }


def test_a_set_of_scaled_engines_with_anti_affinity_within_each_replica_is_planned(desk: SampleFolder) -> None:
    within = {
        "podAntiAffinity": {
            REQUIRED: [
                {
                    "topologyKey": HOST,
                    "labelSelector": {"matchLabels": {"role": "engine"}},
                    "matchLabelKeys": ["grove.io/podcliquescalinggroup-replica-index"],
                }
            ]
        }
    }
    pcs = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "engines", "namespace": "serving", "labels": {"kai.scheduler/queue": "q"}},
        "spec": {
            "replicas": 1,
            "template": {
                "cliques": [
                    clique("router", 1),
                    clique("leader", 1, gpu=4, labels={"role": "engine"}, affinity=within),
                    clique("worker", 3, gpu=4, labels={"role": "engine"}, affinity=within),
                ],
                "podCliqueScalingGroups": [
                    {"name": "engine", "cliqueNames": ["leader", "worker"], "replicas": 3, "minAvailable": 2}
                ],
            },
        },
    }
    done, said = planned(desk, pcs)
    assert (done.code, said["verdict"]) == (0, "placed")
    for replica in range(3):
        found = nodes_of(said, f"engine-{replica}-")
        assert len(found) == len(set(found)) == 4
    assert len(nodes_of(said, "-engine-")) == 12
