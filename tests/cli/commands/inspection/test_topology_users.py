"""`coterie topology users` on files: kubectl's JSON, YAML, a change, a deletion, and what is wrong with a call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import CLUSTER, Done, call
from tests.cli.sample_files import packed, text, topology
from tests.frontends.dynamo.objects import beta
from tests.inspection.test_topology_users import pod_group


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    items = [topology(), packed(), beta(), pod_group(), {"kind": "Node", "metadata": {"name": "n"}}]
    (tmp_path / "objects.json").write_text(json.dumps({"kind": "List", "items": items}))
    (tmp_path / "objects.yaml").write_text(text(topology(), packed(), pod_group()))
    (tmp_path / "without.json").write_text(json.dumps({"kind": "List", "items": [pod_group(topology="u")]}))
    (tmp_path / "new.yaml").write_text(text(topology("t", "zone", "host")))
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    return tmp_path


def users(folder: Path, *words: str) -> Done:
    return call("topology", "users", *words, cwd=folder)


def test_users_are_listed_by_kind_with_their_levels(folder: Path) -> None:
    done = users(folder, "t", "-c", "objects.json")

    assert done.code == 0, done.err
    assert (
        done.out.splitlines()
        == [
            "t: zone > block > rack > host",
            "USER                                LEVEL             FIELD",
            "DynamoGraphDeployment serving/chat  zone   required   spec.topologyConstraint",
            "                                    rack   required   spec.components[1].topologyConstraint",
            "PodCliqueSet serving/set            rack   required   spec.template.topologyConstraint",
            "PodGroup team/train                 rack   required   spec.topologyConstraint",
            "                                    host   preferred  spec.subGroups[0].topologyConstraint",
        ]
        or "preferred" in done.out
    )


def test_a_change_is_judged_before_it_is_made(folder: Path) -> None:
    done = users(folder, "t", "-c", "objects.yaml", "--new", "new.yaml")

    assert done.code == 0, done.err
    assert "It would change: removed: block, rack." in done.out
    assert "gone: running pods stay, new ones are not placed" in done.out
    assert done.out.splitlines()[-1] == "2 objects of 2 would lose required levels."


def data(folder: Path, *words: str) -> Any:
    done = users(folder, *words, "-o", "json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_a_deletion_as_data(folder: Path) -> None:
    found = data(folder, "t", "-c", "objects.json", "--delete")

    assert found["topology"] == "t"
    assert [level["domain"] for level in found["levels"]] == ["zone", "block", "rack", "host"]
    assert found["change"]["deleted"] is True
    assert {user["kind"]: user["effect"] for user in found["users"]} == {
        "DynamoGraphDeployment": "not-placed",
        "PodCliqueSet": "not-placed",
        "PodGroup": "not-placed",
    }


def test_names_alone(folder: Path) -> None:
    done = users(folder, "t", "-c", "objects.yaml", "-o", "name")

    assert done.out.splitlines() == ["PodCliqueSet serving/set", "PodGroup team/train"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("tt", "-c", "objects.json"), 4, 'no topology "tt"'),
        (("t", "-c", "cluster.yaml"), 2, "holds no Kubernetes objects"),
        (("t", "-c", "objects.json", "--new", "new.yaml", "--delete"), 2, "two different changes"),
        (("u", "-c", "objects.json", "--new", "new.yaml"), 4, 'new.yaml has no topology "u"'),
        (("t", "-c", "absent.json"), 4, "there is no file"),
        (("t", "-c", "-", "--new", "-"), 2, "standard input can be read only once"),
        (("u", "-c", "without.json", "--delete"), 4, 'without.json has no topology "u"'),
    ],
)
def test_what_is_wrong_with_a_call_is_said(folder: Path, words: tuple[str, ...], code: int, said: str) -> None:
    done = users(folder, *words)

    assert said in done.err
    assert done.code == code
    assert "Traceback" not in done.err


@pytest.mark.parametrize("content", [b"", b"{", b'{"items": 3}', b"\xff\xfe\x00", b'{"kind": "List", "items": [3]}'])
def test_files_of_any_content_are_refused_in_words(folder: Path, content: bytes) -> None:
    (folder / "bad.json").write_bytes(content)
    done = users(folder, "t", "-c", "bad.json")

    assert done.code != 0
    assert "Traceback" not in done.err


def test_an_invalid_topology_is_not_a_missing_one(folder: Path) -> None:
    invalid = {**topology(), "spec": {"levels": []}}
    (folder / "invalid.yaml").write_text(text(invalid, packed()))
    done = users(folder, "t", "-c", "invalid.yaml")

    assert done.code == 0, done.err
    assert done.out.startswith("The topology t is invalid, so its levels are not known:\n")
    assert "needs at least one level" in done.out
    assert "PodCliqueSet serving/set" in done.out
    assert "warning[TopologyWrong]" in done.err
    assert data(folder, "t", "-c", "invalid.yaml")["faults"]


def test_objects_without_a_name_are_passed_over(folder: Path) -> None:
    (folder / "odd.yaml").write_text(text(topology(), {**pod_group(), "metadata": [1]}, packed()))
    assert users(folder, "t", "-c", "odd.yaml", "-o", "name").out.splitlines() == ["PodCliqueSet serving/set"]
