"""Both versions of a graph deployment become one model, and what a pod is made of is carried through."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coterie.errors import FieldError, SpecErrors
from coterie.frontends.dynamo.template import native_resources, pod_template
from tests.frontends.dynamo_objects import alpha, beta, changed, put, read


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
            "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}],
        },
    }
    containers = ("podTemplate", "spec", "containers")
    assert origin[*containers, 0] == ("extraPodSpec", "mainContainer")
    assert origin[*containers, 0, "resources"] == ("resources",)
    assert origin[*containers, 1] == ("extraPodSpec", "containers", 0)


def test_the_main_container_wins_over_the_fields_of_its_service() -> None:
    resources = {"limits": {"nvidia.com/gpu": "8"}}
    template, origin = pod_template(
        {"resources": {"limits": {"gpu": "1"}}, "extraPodSpec": {"mainContainer": {"resources": resources}}}
    )
    assert template["spec"]["containers"][0]["resources"] == resources
    assert ("podTemplate", "spec", "containers", 0, "resources") not in origin


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
