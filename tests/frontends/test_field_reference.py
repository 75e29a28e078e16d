"""The field reference: every field has a description and is found by its path or path ending."""

from __future__ import annotations

import pytest

from coterie.frontends.field_reference import all_fields, describe_field, similar_fields


@pytest.mark.parametrize("path", all_fields())
def test_every_field_is_described_in_one_sentence(path: str) -> None:
    doc = describe_field(path)
    assert doc is not None
    assert doc.path == path
    assert doc.kind
    assert doc.description.endswith(".")
    assert doc.description[:1].isupper()


@pytest.mark.parametrize(
    ("asked", "path", "kind"),
    [
        ("workflow.groups.tasks.resource", "workflow.groups.tasks.resource", "text"),
        ("topology", "workflow.resources.topology", "a list"),
        ("requirementType", "workflow.resources.topology.requirementType", "required or preferred"),
        ("requirementtype", "workflow.resources.topology.requirementType", "required or preferred"),
        ("pools.topology_keys", "pools.topology_keys", "a list"),
        ("topology_keys.label", "pools.topology_keys.label", "text"),
        ("workflow.tasks[].command", "workflow.tasks.command", "a list"),
        ("exitActions.FAIL", "workflow.tasks.exitActions.FAIL", "exit codes such as 0-10,16"),
        ("memory", "workflow.resources.memory", "an amount such as 16Gi"),
        ("exec_timeout", "workflow.timeout.exec_timeout", "a time such as 10h5m, or seconds"),
        ("lead", "workflow.tasks.lead", "true or false"),
        ("pools", "pools", "a mapping by name"),
        ("environment", "workflow.tasks.environment", "a mapping of names to values"),
        ("resources", "resources", "a mapping by name"),
        ("PodCliqueSet", "PodCliqueSet", "an object of grove.io/v1alpha1"),
        ("clustertopology.spec.levels", "ClusterTopology.spec.levels", "a list"),
        ("topologyName", "PodCliqueSet.spec.template.topologyConstraint.topologyName", "text"),
        ("packDomain", "DynamoGraphDeployment.spec.topologyConstraint.packDomain", "a level such as rack"),
        ("nodeCount", "DynamoGraphDeployment.spec.components.multinode.nodeCount", "a whole number, at least 2"),
        ("DynamoGraphDeployment", "DynamoGraphDeployment", "an object of nvidia.com/v1beta1"),
        (
            "DynamoGraphDeployment.spec.services",
            "DynamoGraphDeployment/v1alpha1.spec.services",
            "a mapping by name",
        ),
    ],
)
def test_fields_are_found_by_whole_path_or_ending(asked: str, path: str, kind: str) -> None:
    doc = describe_field(asked)
    assert doc is not None
    assert (doc.path, doc.kind) == (path, kind)


def test_a_field_says_what_stands_below_and_where_else_its_name_is_used() -> None:
    doc = describe_field("topology")
    assert doc is not None
    assert [child.path.rpartition(".")[2] for child in doc.children] == ["key", "group", "requirementType"]
    assert [child.required for child in doc.children] == [True, False, False]
    assert [child.default for child in doc.children] == ["", "default", "required"]
    assert "pools.topology" in doc.also


def test_fields_that_two_versions_have_in_the_same_place_are_named_once() -> None:
    doc = describe_field("packDomain")
    assert doc is not None
    assert "DynamoGraphDeployment/v1alpha1.spec.topologyConstraint.packDomain" not in doc.also
    assert "DynamoGraphDeployment/v1alpha1.spec.services.topologyConstraint.packDomain" in doc.also


def test_of_a_name_that_is_everywhere_some_places_are_named() -> None:
    doc = describe_field("name")
    assert doc is not None
    assert len(doc.also) == 12
    assert doc.also[-1].startswith("and ")


def test_what_belongs_to_kubernetes_is_not_described() -> None:
    assert describe_field("nodeSelectorTerms") is None
    assert all("podSpec." not in path for path in all_fields())


@pytest.mark.parametrize("asked", ["", ".", "nothing.like.this", "workflow..name", "tasks.pool"])
def test_an_unknown_field_is_not_found(asked: str) -> None:
    assert describe_field(asked) is None


def test_an_unknown_field_has_suggestions() -> None:
    assert similar_fields("tolpology")[0] == "workflow.resources.topology"
    assert similar_fields("workflow.tasks.imagee") == ["workflow.groups.tasks.image"]
    assert similar_fields("qqqqqq") == []
