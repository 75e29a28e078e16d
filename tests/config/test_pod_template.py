"""The pod template of a pool: what it may contain, and what is refused with the place where it belongs."""

from __future__ import annotations

import pytest

from coterie.config.configuration import Config, read_config
from coterie.errors import SpecErrors
from coterie.gang.tree import Toleration
from coterie.topology.cluster import CPU, MEMORY

HEAD = "backends: {b: {scheduler: kai}}\npools:\n  p:\n    pod_template:\n"
GOOD = """\
      metadata: {labels: {team: research}, annotations: {example.com/note: 3}}
      spec:
        serviceAccountName: trainer
        imagePullSecrets: [{name: registry}]
        runtimeClassName: nvidia
        securityContext: {runAsUser: 1000, fsGroup: 1000}
        tolerations: [{key: example.com/maintenance, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]
        volumes: [{name: scratch, emptyDir: {medium: Memory}}]
        containers:
        - {name: task, volumeMounts: [{name: scratch, mountPath: /scratch}], env: [{name: HTTPS_PROXY, value: "http://p:1"}]}
        initContainers:
        - {name: fetch, image: i, command: [fetch, 3]}
        - {name: agent, image: a, restartPolicy: Always, resources: {requests: {cpu: 500m}, limits: {memory: 1Gi}}}
        - {name: proxy, image: p, restartPolicy: Always, resources: {requests: {cpu: 1}}}
"""


def config(body: str) -> Config:
    return read_config((HEAD + body).encode(), "coterie.yaml")


def test_a_template_is_kept_as_it_is_written() -> None:
    pool = config(GOOD).pools["p"]
    spec = pool.pod_template["spec"]
    assert pool.pod_template["metadata"] == {"labels": {"team": "research"}, "annotations": {"example.com/note": "3"}}
    assert spec["securityContext"] == {"runAsUser": 1000, "fsGroup": 1000}
    assert spec["initContainers"][0] == {"name": "fetch", "image": "i", "command": ["fetch", "3"]}
    assert "automountServiceAccountToken" not in spec


def test_plans_know_its_tolerations_and_what_its_sidecars_take() -> None:
    pool = config(GOOD).pools["p"]
    assert pool.tolerations == (Toleration("example.com/maintenance", "Exists", "", "NoExecute"),)
    assert dict(pool.sidecar_requests) == {CPU: 1500, MEMORY: 1 << 30}


@pytest.mark.parametrize(
    ("body", "message", "hint"),
    [
        ("spec: {nodeSelector: {a: b}}", 'unknown field "nodeSelector"', "node_selector"),
        ("spec: {schedulerName: x}", 'unknown field "schedulerName"', "scheduler of the pool's backend"),
        ("spec: {restartPolicy: Always}", 'unknown field "restartPolicy"', "exitActions"),
        ("spec: {runtimeClass: x}", 'unknown field "runtimeClass"', 'Did you mean "runtimeClassName"?'),
        ("{volumes: []}", 'unknown field "volumes"', "pod_template.spec.volumes"),
        ("{annotations: {}}", 'unknown field "annotations"', "pod_template.metadata.annotations"),
        ("spec: {containers: [{name: task, image: x}]}", 'unknown field "image"', "The workflow names the image"),
        ("spec: {containers: [{name: agent}]}", 'must be called "task", not "agent"', "initContainers"),
        ("spec: {containers: [{name: task}, {name: task}]}", '"task" twice', "Keep one"),
        ("spec: {initContainers: [{name: task, image: x}]}", 'the name "task" is taken', "Choose"),
        ("spec: {initContainers: [{name: a}]}", '"image" is missing', "image of the container"),
        (
            "spec: {initContainers: [{name: a, image: x, resources: {requests: {cpu: 1}}}]}",
            "for sidecars (restartPolicy: Always) only",
            "uses what the task requested",
        ),
        (
            "spec: {initContainers: [{name: a, image: x, restartPolicy: Always, resources: {limits: {gpu: 1}}}]}",
            'a sidecar must not take "gpu"',
            "cpu, memory",
        ),
        (
            "spec: {initContainers: [{name: a, image: x, restartPolicy: Always, resources: {requests: {cpu: much}}}]}",
            "cpu:",
            "Example",
        ),
        (
            "spec: {initContainers: [{name: a, image: x, ports: [{containerPort: 1, hostPort: 1}]}]}",
            "a host port is not allowed",
            "containerPort",
        ),
        ("spec: {volumes: [{emptyDir: {}}]}", "entry 0 of volumes has no name", "by their names"),
        ("spec: {volumes: [{name: a}, {name: a}]}", 'volumes has "a" twice', "Keep one"),
        ("spec: {volumes: [{name: input-0}]}", 'must not be called "input-0"', "Choose another"),
        ("spec: {containers: [{name: task, env: [{name: A, value: 1}]}]}", "value must be text, not 1", '"1"'),
        ("spec: {containers: [{name: task, env: [{name: COTERIE_RANK}]}]}", "cannot be set here", "another name"),
        ("metadata: {labels: {coterie.dev/task: x}}", '"coterie.dev/task" is set by Coterie', "another name"),
        ("metadata: {annotations: {pod-group-name: x}}", '"pod-group-name" is set by Coterie', "another name"),
        ("metadata: {annotations: {gpu-fraction: '0.5'}}", '"gpu-fraction" requests a fraction of a GPU', "whole GPUs"),
        ("metadata: {annotations: {gpu-memory: '2000'}}", '"gpu-memory" requests a fraction of a GPU', "whole GPUs"),
        (
            "metadata: {annotations: {gpu-fraction-num-devices: '2'}}",
            '"gpu-fraction-num-devices" requests a fraction of a GPU',
            "whole GPUs",
        ),
        ("metadata: {labels: {'a b': x}}", '"a b" is not allowed', "Example"),
        ("spec: {serviceAccountName: 3}", "serviceAccountName must be text, not 3", "quotes"),
    ],
)
def test_what_a_template_cannot_have_is_refused_with_its_line(body: str, message: str, hint: str) -> None:
    with pytest.raises(SpecErrors) as caught:
        config(f"      {body}\n")
    found = [fault for fault in caught.value.faults if message in fault.message]
    assert found, caught.value.faults
    assert hint in found[0].hint
    assert found[0].place is not None
    assert found[0].place.line == 5


def test_a_pool_of_processes_has_no_template() -> None:
    text = (HEAD + "      spec: {hostIPC: true}\n").replace("kai", "local")
    with pytest.raises(SpecErrors, match="run as processes"):
        read_config(text.encode(), "coterie.yaml")
