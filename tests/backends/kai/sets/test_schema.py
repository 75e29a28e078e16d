"""Manifests for KAI satisfy the schemas of KAI's custom resources and of the ComputeDomain driver's.

The schemas come from the Go modules that lab/modules names. Without Go or its proxy, these tests are skipped with that
reason.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.backends.grove.test_schema import closed
from tests.backends.kai.sets.test_golden import FOR_KAI
from tests.backends.kai.test_golden import GOLDENS as WORKFLOWS

MODULES = Path(__file__).parents[4] / "lab" / "modules"
KAI = ("kai", "github.com/kai-scheduler/KAI-scheduler", "deployments/kai-scheduler/crds")
DRIVER = (
    "computedomain",
    "sigs.k8s.io/dra-driver-nvidia-gpu",
    "deployments/helm/dra-driver-nvidia-gpu/crds",
)
CRDS = {
    "PodGroup": (KAI, "scheduling.run.ai_podgroups.yaml"),
    "Queue": (KAI, "scheduling.run.ai_queues.yaml"),
    "Topology": (KAI, "kai.scheduler_topologies.yaml"),
    "ComputeDomain": (DRIVER, "resource.nvidia.com_computedomains.yaml"),
}


@functools.cache
def folder(lab: str, module: str, below: str) -> Path:
    """Return the folder of a module's custom resource definitions, or skip the test."""
    go = shutil.which("go")
    if go is None or not (MODULES / lab / "go.mod").exists():
        pytest.skip(f"not checked against the schemas of {module}: Go or lab/modules/{lab} is missing")
    command = [go, "mod", "download", "-json", module]
    try:
        done = subprocess.run(command, cwd=MODULES / lab, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"not checked against the schemas of {module}: the Go module proxy does not answer")
    if done.returncode:
        pytest.skip(f"not checked against the schemas of {module}: {done.stderr.strip() or done.stdout.strip()}")
    return Path(json.loads(done.stdout)["Dir"]) / below


@functools.cache
def validator(kind: str, version: str) -> jsonschema.Draft202012Validator:
    """Return what judges an object of a kind."""
    source, file = CRDS[kind]
    definition = yaml.safe_load((folder(*source) / file).read_text(encoding="utf-8"))
    schemas = {each["name"]: each["schema"]["openAPIV3Schema"] for each in definition["spec"]["versions"]}
    return jsonschema.Draft202012Validator(closed(schemas[version]))


def problems(manifest: Any) -> list[str]:
    """Return what is wrong with an object by its schema."""
    found = validator(manifest["kind"], manifest["apiVersion"].rpartition("/")[2])
    return [f"{error.json_path}: {error.message}" for error in found.iter_errors(manifest)]


@pytest.mark.parametrize("golden", [*FOR_KAI, *WORKFLOWS.values()], ids=str)
def test_rendered_objects_keep_the_schemas_of_those_who_read_them(golden: Any) -> None:
    judged = [manifest for manifest in golden.manifests if manifest["kind"] in CRDS]

    assert judged
    assert [problem for manifest in judged for problem in problems(manifest)] == []


def test_the_schemas_notice_unknown_fields_and_wrong_values() -> None:
    group = next(each for each in FOR_KAI[0].manifests if each["kind"] == "PodGroup")
    group["spec"]["minMembr"] = 1
    group["spec"]["minMember"] = "1"
    assert len(problems(group)) == 2
