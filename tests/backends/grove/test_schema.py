"""Manifests for Grove satisfy the schema of Grove's custom resources, unknown fields included.

The schema comes from Grove's Go module, whose version is in lab/modules/grove. Without Go or its proxy, these tests are
skipped with that reason.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from coterie.backends.grove.render import render_grove
from coterie.frontends.kubernetes.objects import resource_of
from coterie.frontends.kubernetes.pod_fields import BELOW, POD
from tests.frontends.dynamo.objects import Change, Data, changed
from tests.frontends.dynamo.test_lower import VARIANTS, lowered

MODULE = "github.com/ai-dynamo/grove/operator/api"
LAB = Path(__file__).parents[3] / "lab" / "modules" / "grove"


@functools.cache
def crds() -> Path | str:
    """Return the folder of Grove's custom resource definitions, or why there is none."""
    go = shutil.which("go")
    if go is None or not (LAB / "go.mod").exists():
        return "Go or lab/modules/grove is missing"
    command = [go, "mod", "download", "-json", MODULE]
    try:
        done = subprocess.run(command, cwd=LAB, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return "the Go module proxy does not answer"
    if done.returncode:
        return f"the Go module cannot be had: {done.stderr.strip() or done.stdout.strip()}"
    return Path(json.loads(done.stdout)["Dir"]) / "core" / "v1alpha1" / "crds"


@functools.cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    folder = crds()
    if isinstance(folder, str):
        pytest.skip(f"not checked against Grove's own schema: {folder}")
    definition = yaml.safe_load((folder / f"grove.io_{name}.yaml").read_text())
    [version] = definition["spec"]["versions"]
    return jsonschema.Draft202012Validator(closed(version["schema"]["openAPIV3Schema"]))


def closed(schema: Mapping[str, Any]) -> Any:
    """Return a schema of a custom resource as JSON schema that takes no unknown field."""
    found = {
        key: {name: closed(below) for name, below in value.items()}
        if key == "properties"
        else closed(value)
        if key in ("items", "additionalProperties", "not") and isinstance(value, dict)
        else [closed(each) for each in value]
        if key in ("anyOf", "allOf", "oneOf")
        else value
        for key, value in schema.items()
        if not key.startswith("x-") and key not in ("nullable", "format", "description", "default")
    }
    if schema.get("x-kubernetes-int-or-string"):
        found.pop("type", None)
        found["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if "properties" in found and not schema.get("x-kubernetes-preserve-unknown-fields"):
        found["additionalProperties"] = False
    return {"anyOf": [found, {"type": "null"}]} if schema.get("nullable") else found


def problems(name: str, manifest: Mapping[str, Any]) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(manifest)]


@pytest.mark.parametrize(("data", "changes"), VARIANTS.values(), ids=VARIANTS)
def test_the_podcliqueset_of_a_graph_keeps_groves_schema(data: Data, changes: tuple[Change, ...]) -> None:
    assert problems("podcliquesets", lowered(changed(data, *changes)).manifest) == []


def test_the_schema_notices_unknown_fields_and_wrong_values() -> None:
    manifest = lowered(VARIANTS["v1beta1"][0]).manifest
    manifest["spec"]["template"]["topologyConstraint"]["pack"]["requird"] = "zone"
    manifest["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulrName"] = "x"
    manifest["spec"]["replicas"] = "1"
    assert len(problems("podcliquesets", manifest)) == 3


def test_every_field_of_a_pod_spec_in_groves_schema_is_known() -> None:
    schema: Any = validator("podcliquesets").schema
    for step in ("spec", "template", "cliques", "spec", "podSpec"):
        schema = schema["properties"][step]
        schema = schema.get("items", schema)
    known: Mapping[tuple[str, ...], frozenset[str]] = {(): POD, **{steps: names for steps, _, names in BELOW}}

    for steps, names in known.items():
        found: Any = schema
        for step in steps:
            found = found["items"] if step == "*" else found["properties"][step]
        assert found["properties"].keys() - names == set(), steps


def test_a_binding_made_of_an_older_topology_keeps_groves_schema() -> None:
    older = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopology",
        "metadata": {"name": "t"},
        "spec": {
            "levels": [{"domain": "rack", "key": "fabric.example/rack"}],
            "schedulerReferences": [{"schedulerName": "kai-scheduler", "reference": "t"}],
        },
    }
    assert problems("clustertopologybindings", render_grove([resource_of(older)])[0]) == []
