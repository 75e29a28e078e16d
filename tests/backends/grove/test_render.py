"""Manifests for Grove: graphs become PodCliqueSets, and older objects get today's form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coterie.backends.grove.render import render_grove, render_notices
from coterie.errors import SpecErrors, UsageError
from coterie.frontends.kubernetes.objects import Resource, read_resources
from tests.frontends.dynamo.objects import alpha, beta, changed, drop, read

CONTAINERS = {"containers": [{"name": "main", "image": "i"}]}


def resource(data: dict[str, Any]) -> Resource:
    bundle = read_resources(json.dumps(data).encode(), "grove.yaml")
    return (*bundle.resources, *bundle.others)[0]


def clique(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "spec": {"roleName": name, "replicas": 1, "podSpec": CONTAINERS}, **fields}


def podcliqueset(**template: Any) -> dict[str, Any]:
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "chat", "uid": "1", "resourceVersion": "7", "generation": 1},
        "spec": {"replicas": 1, "template": {"cliques": [clique("a"), clique("b")], **template}},
        "status": {"replicas": 1},
    }


def template_of(data: dict[str, Any]) -> Any:
    [manifest] = render_grove([resource(data)])
    return manifest["spec"]["template"]


def test_a_graph_of_either_version_becomes_its_podcliqueset() -> None:
    kinds = [manifest["kind"] for manifest in render_grove([read(beta()), read(alpha())])]
    assert kinds == ["PodCliqueSet", "PodCliqueSet"]


def test_packdomain_becomes_a_required_pack_and_the_name_stays() -> None:
    found = template_of(
        podcliqueset(
            topologyConstraint={"topologyName": "t", "packDomain": "zone"},
            cliques=[clique("a", topologyConstraint={"packDomain": "rack"}), clique("b")],
            podCliqueScalingGroups=[{"name": "g", "cliqueNames": ["b"], "topologyConstraint": {"packDomain": "host"}}],
        )
    )
    assert found["topologyConstraint"] == {"topologyName": "t", "pack": {"required": "zone"}}
    assert found["cliques"][0]["topologyConstraint"] == {"pack": {"required": "rack"}}
    assert found["podCliqueScalingGroups"][0]["topologyConstraint"] == {"pack": {"required": "host"}}


def test_a_name_without_a_level_moves_to_all_that_it_was_meant_for() -> None:
    found = template_of(
        podcliqueset(
            topologyConstraint={"topologyName": "t"},
            cliques=[clique("a", topologyConstraint={"packDomain": "rack"}), clique("b")],
        )
    )
    assert "topologyConstraint" not in found
    assert found["cliques"][0]["topologyConstraint"] == {"topologyName": "t", "pack": {"required": "rack"}}
    assert "topologyConstraint" not in found["cliques"][1]


def test_todays_form_stays_as_it_is() -> None:
    data = podcliqueset(topologyConstraint={"topologyName": "t", "pack": {"required": "zone", "preferred": "rack"}})
    [manifest] = render_grove([resource(data)])
    assert manifest["spec"] == data["spec"]


def test_what_a_server_wrote_is_not_rendered() -> None:
    [manifest] = render_grove([resource(podcliqueset())])
    assert manifest["metadata"] == {"name": "chat"}
    assert "status" not in manifest


def test_a_clustertopology_becomes_a_binding_and_comes_first() -> None:
    levels = [{"domain": "zone", "key": "topology.kubernetes.io/zone"}]
    older = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopology",
        "metadata": {"name": "t"},
        "spec": {"levels": levels, "schedulerReferences": [{"schedulerName": "kai-scheduler", "reference": "k"}]},
    }
    binding, pcs = render_grove([resource(podcliqueset()), resource(older)])
    assert pcs["kind"] == "PodCliqueSet"
    assert binding == {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopologyBinding",
        "metadata": {"name": "t"},
        "spec": {
            "levels": levels,
            "schedulerTopologyBindings": [{"schedulerName": "kai-scheduler", "topologyReference": "k"}],
        },
    }
    assert render_grove([resource(binding)]) == [binding]


def test_an_object_of_a_wrong_shape_is_refused_with_its_faults() -> None:
    with pytest.raises(SpecErrors):
        render_grove([resource(podcliqueset(cliques={"a": 1}))])


def test_other_objects_are_not_rendered() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    with pytest.raises(UsageError, match='ConfigMap "x"'):
        render_grove([resource(config)])


def test_engines_across_nodes_are_warned_about_their_arguments() -> None:
    [notice] = render_notices([read(beta())])
    assert notice.code == "EngineArguments"
    assert render_notices([read(changed(beta(), drop("spec.components.1.multinode"))), resource(podcliqueset())]) == []
