"""Both versions of a graph deployment become one model, and pod fields are passed through."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coterie.errors import FieldError, SpecErrors
from coterie.frontends.dynamo.pod_template import native_resources, pod_template
from coterie.frontends.dynamo.source_paths import follow
from tests.frontends.dynamo.objects import alpha, beta, changed, put, read


def test_both_versions_of_a_graph_are_the_same_components() -> None:
    older, newer = read(alpha()), read(beta())
    assert [component.name for component in older.components] == ["Decode", "Frontend"]
    for component in older.components:
        twin = next(each for each in newer.components if each.name == component.name)
        assert component == replace(twin, index=component.index)
    assert older.constraint == newer.constraint


SERVICE: dict[str, Any] = {
    "labels": {"a": "service", "b": "service"},
    "annotations": {"c": "d"},
    "resources": {
        "requests": {"cpu": "4", "memory": "16Gi", "custom": {"rdma/ib": "1"}},
        "limits": {"gpu": "2", "gpuType": "gpu.example/xe"},
        "claims": [{"name": "channel"}],
    },
    "envs": [{"name": "A", "value": "service"}, {"name": "B", "value": "service"}],
    "envFromSecret": "token",
    "volumeMounts": [{"name": "models", "mountPoint": "/models"}, {"name": "cache", "useAsCompilationCache": True}],
    "livenessProbe": {"httpGet": {"path": "/live", "port": 1}},
    "extraPodMetadata": {"labels": {"b": "pod"}},
    "extraPodSpec": {
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "sidecar", "image": "s"}],
        "mainContainer": {"image": "m", "env": [{"name": "B", "value": "main"}], "workingDir": "/w"},
    },
}


def test_the_pod_configuration_of_a_service_becomes_a_native_template() -> None:
    template, origin = pod_template(SERVICE)
    assert template == {
        "metadata": {"labels": {"a": "service", "b": "pod"}, "annotations": {"c": "d"}},
        "spec": {
            "tolerations": [{"operator": "Exists"}],
            "containers": [
                {
                    "name": "main",
                    "image": "m",
                    "env": [{"name": "A", "value": "service"}, {"name": "B", "value": "main"}],
                    "workingDir": "/w",
                    "resources": {
                        "requests": {"cpu": "4", "memory": "16Gi", "rdma/ib": "1"},
                        "limits": {"gpu.example/xe": "2"},
                        "claims": [{"name": "channel"}],
                    },
                    "livenessProbe": {"httpGet": {"path": "/live", "port": 1}},
                    "envFrom": [{"secretRef": {"name": "token"}}],
                    "volumeMounts": [{"name": "models", "mountPath": "/models"}],
                },
                {"name": "sidecar", "image": "s"},
            ],
        },
    }
    containers = ("podTemplate", "spec", "containers")
    assert origin[*containers, 0] == ("extraPodSpec", "mainContainer")
    assert origin[*containers, 0, "resources"] == ("resources",)
    assert origin[*containers, 1] == ("extraPodSpec", "containers", 0)


MAIN = ("podTemplate", "spec", "containers", 0)
PROBE = {"httpGet": {"path": "/live", "port": 8000}, "periodSeconds": 10}


def merged(service: dict[str, Any], main: dict[str, Any]) -> dict[str, Any]:
    template, _ = pod_template({**service, "extraPodSpec": {"mainContainer": main}})
    container: dict[str, Any] = template["spec"]["containers"][0]
    return container


@pytest.mark.parametrize(
    ("service", "main", "expected"),
    [
        pytest.param(
            {"limits": {"gpu": "4"}},
            {"requests": {"cpu": "32", "memory": "64Gi"}},
            {"limits": {"nvidia.com/gpu": "4"}, "requests": {"cpu": "32", "memory": "64Gi"}},
            id="what one of them says is kept",
        ),
        pytest.param(
            {"limits": {"gpu": "4", "memory": "1Gi"}, "requests": {"cpu": "1"}},
            {"limits": {"memory": "2Gi", "rdma/ib": "4"}},
            {"limits": {"nvidia.com/gpu": "4", "memory": "2Gi", "rdma/ib": "4"}, "requests": {"cpu": "1"}},
            id="of one resource mainContainer counts",
        ),
        pytest.param(
            {"limits": {"gpu": "1"}},
            {"limits": {"nvidia.com/gpu": "8"}},
            {"limits": {"nvidia.com/gpu": "8"}},
            id="GPUs",
        ),
        pytest.param(
            {"limits": {"gpu": "1"}},
            {"limits": {"nvidia.com/gpu": 0}},
            {"limits": {"nvidia.com/gpu": 0}},
            id="0 counts",
        ),
        pytest.param(
            {"limits": {"gpu": "1", "gpuType": "amd.com/gpu"}},
            {"limits": {"nvidia.com/gpu": "8"}},
            {"limits": {"amd.com/gpu": "1", "nvidia.com/gpu": "8"}},
            id="another kind of GPU is another resource",
        ),
        pytest.param(
            {"limits": {"gpu": "4"}, "claims": [{"name": "a"}]},
            {"claims": [{"name": "b"}]},
            {"limits": {"nvidia.com/gpu": "4"}, "claims": [{"name": "b"}]},
            id="claims are a list",
        ),
        pytest.param({"limits": {"gpu": "4"}}, {}, {"limits": {"nvidia.com/gpu": "4"}}, id="nothing overrules nothing"),
        pytest.param(
            {"limits": {"gpu": "4"}}, {"limits": None}, {"limits": {"nvidia.com/gpu": "4"}}, id="null overrules nothing"
        ),
    ],
)
def test_resources_of_service_and_main_container_are_merged_by_resource(
    service: dict[str, Any], main: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert merged({"resources": service}, {"resources": main})["resources"] == expected


@pytest.mark.parametrize(
    ("service", "main", "expected"),
    [
        (
            {"livenessProbe": PROBE},
            {"livenessProbe": {"periodSeconds": 5}},
            {"livenessProbe": PROBE | {"periodSeconds": 5}},
        ),
        ({"readinessProbe": PROBE}, {"readinessProbe": {"periodSeconds": 0}}, {"readinessProbe": PROBE}),
        (
            {"envFromSecret": "token"},
            {"envFrom": [{"configMapRef": {"name": "c"}}]},
            {"envFrom": [{"configMapRef": {"name": "c"}}]},
        ),
        ({"envFromSecret": "token"}, {"envFrom": []}, {"envFrom": [{"secretRef": {"name": "token"}}]}),
        (
            {"envs": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]},
            {"env": [{"name": "B", "value": "2"}]},
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        ),
        (
            {"volumeMounts": [{"name": "v", "mountPoint": "/v"}]},
            {"volumeMounts": [{"name": "w", "mountPath": "/w"}]},
            {"volumeMounts": [{"name": "w", "mountPath": "/w"}, {"name": "v", "mountPath": "/v"}]},
        ),
        ({}, {"name": "engine", "image": "i"}, {"name": "main", "image": "i"}),
    ],
)
def test_the_main_container_is_laid_over_the_fields_of_its_service(
    service: dict[str, Any], main: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert merged(service, main) == {"name": "main"} | expected


def test_a_merged_amount_leads_back_to_where_it_is_written() -> None:
    _, origin = pod_template(
        {
            "resources": {"limits": {"gpu": "4", "custom": {"rdma/ib": "1"}}},
            "extraPodSpec": {"mainContainer": {"resources": {"limits": {"rdma/ib": "2"}}}},
        }
    )
    limits = (*MAIN, "resources", "limits")
    assert follow(origin, (*limits, "nvidia.com/gpu")) == ("resources", "limits", "gpu")
    assert follow(origin, (*limits, "rdma/ib")) == (
        *("extraPodSpec", "mainContainer"),
        *("resources", "limits", "rdma/ib"),
    )


def test_a_second_container_called_main_is_left_out_with_a_word() -> None:
    others = [{"name": "main", "image": "x"}, {"name": "sidecar", "image": "s"}]
    graph = read(changed(alpha(), put("spec.services.Decode.extraPodSpec.containers", others)))
    component = graph.components[0]
    assert [each["name"] for each in component.containers] == ["main", "sidecar"]
    assert component.containers[0]["image"] != "x"
    [unused] = [each for each in graph.unused if "main" in each.name]
    assert unused.path == ("spec", "services", "Decode", "extraPodSpec", "containers", 0)
    sidecar = graph.written((*component.path, "podTemplate", "spec", "containers", 1))
    assert sidecar == ("spec", "services", "Decode", "extraPodSpec", "containers", 1)


def test_gpus_are_nvidias_unless_something_else_is_said() -> None:
    assert native_resources({"limits": {"gpu": "4"}}) == {"limits": {"nvidia.com/gpu": "4"}}
    assert native_resources({"limits": {}, "requests": None}) == {}


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        (None, "8Gi"),
        ({}, "8Gi"),
        ({"size": "16Gi"}, "16Gi"),
        ({"disabled": True}, "0"),
        ({"disabled": True, "size": "1Gi"}, "0"),
    ],
)
def test_shared_memory_is_8gi_unless_something_else_is_said(memory: Any, expected: str) -> None:
    graph = read(changed(alpha(), put("spec.services.Decode.sharedMemory", memory)))
    assert graph.components[0].shared_memory == expected


@pytest.mark.parametrize(
    ("path", "value", "type_"),
    [
        ("spec.components", {}, FieldError.INVALID),
        ("spec.components.0", [], FieldError.INVALID),
        ("spec.components.0.name", 7, FieldError.INVALID),
        ("spec.components.0.name", "a_b", FieldError.INVALID),
        ("spec.components.0.type", "main", FieldError.INVALID),
        ("spec.components.0.replicas", 2**31, FieldError.INVALID),
        ("spec.components.0.replicas", True, FieldError.INVALID),
        ("spec.components.0.podTemplate", "x", FieldError.INVALID),
        ("spec.components.0.podTemplate.spec.containers", {}, FieldError.INVALID),
        ("spec.components.0.podTemplate.spec.containers.0.env", [{"value": "x"}], FieldError.REQUIRED),
        ("spec.components.0.podTemplate.metadata.labels", {"a": 1}, FieldError.INVALID),
        ("spec.components.0.runtimeVersionOverride", "1.4", FieldError.INVALID),
        ("spec.backendFramework", "llama", FieldError.INVALID),
        ("spec.providerOverride", {"value": {}}, FieldError.REQUIRED),
        ("metadata.annotations", {"a": True}, FieldError.INVALID),
        ("spec.components.1.roles.1.name", "leader", FieldError.INVALID),
        ("spec.components.1.roles.0.replicas", 2, FieldError.INVALID),
        ("spec.components.1.roles.1.replicas", 4, FieldError.INVALID),
    ],
)
def test_a_wrong_shape_is_a_located_fault(path: str, value: Any, type_: FieldError) -> None:
    with pytest.raises(SpecErrors) as caught:
        read(
            changed(beta(), put("spec.components.1.roles", [{"name": "leader"}, {"name": "worker"}]), put(path, value))
        )
    [fault] = caught.value.faults
    assert fault.type == type_
    assert fault.place is not None
    assert fault.place.line
    assert list(fault.path[: len(path.split("."))]) == [
        int(step) if step.isdigit() else step for step in path.split(".")
    ]


def test_a_pod_template_is_carried_through_untouched() -> None:
    template = {
        "metadata": {"finalizers": ["x"], "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "main", "image": "i", "anything": [1, {"a": None}]}], "unheard": {"of": 1.5}},
    }
    assert read(changed(beta(), put("spec.components.0.podTemplate", template))).components[0].template == template
