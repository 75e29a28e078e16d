from __future__ import annotations

import pytest

from coterie.frontends.fields import all_fields, describe_field, similar_fields


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


@pytest.mark.parametrize("asked", ["", ".", "nothing.like.this", "workflow..name", "tasks.pool"])
def test_an_unknown_field_is_not_found(asked: str) -> None:
    assert describe_field(asked) is None


def test_an_unknown_field_has_suggestions() -> None:
    assert similar_fields("tolpology")[0] == "workflow.resources.topology"
    assert similar_fields("workflow.tasks.imagee") == ["workflow.groups.tasks.image"]
    assert similar_fields("qqqqqq") == []
