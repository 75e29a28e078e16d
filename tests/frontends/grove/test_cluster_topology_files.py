"""Files of Kubernetes objects: their content, and the faults around the objects themselves."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.errors import Fault, SpecErrors, field_path
from coterie.frontends.grove.topology_set import known_topologies, read_topologies
from coterie.frontends.kubernetes.objects import is_kubernetes, read_resources, resource_of
from tests.frontends.grove.test_cluster_topology import CT, CTB, RACK, ZONE, made
from tests.random_examples import examples

HEAD = "apiVersion: grove.io/v1alpha1\nkind: ClusterTopology\n"
TOPOLOGY = f"{HEAD}metadata: {{name: a}}\nspec: {{levels: [{{domain: rack, key: r}}]}}\n"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"


def refused(text: str) -> list[tuple[int | None, str, str, str]]:
    with pytest.raises(SpecErrors) as error:
        read_resources(text.encode(), "f.yaml")
    return [
        (fault.place.line if fault.place else None, str(fault.type), field_path(fault.path), fault.message)
        for fault in error.value.faults
    ]


def test_a_text_may_hold_several_documents_and_lists_and_other_kinds() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [made(CTB), {"apiVersion": "v1", "kind": "Secret"}]}
    typed = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSetList", "items": [{"metadata": {"name": "p"}}]}
    text = "\n---\n".join([TOPOLOGY, CONFIG_MAP, "", json.dumps(listed, indent=2), json.dumps(typed)])
    bundle = read_resources(text.encode(), "f.yaml")
    assert list(map(str, bundle.resources)) == [f'{CT} "a"', f'{CTB} "t"', 'PodCliqueSet "p"']
    assert [other.kind for other in bundle.others] == ["ConfigMap", "Secret"]
    (notice,) = bundle.notices
    assert notice.message == "ignored, because Coterie does not read them: 1 ConfigMap, 1 Secret"
    assert bundle.of(CTB)[0].get("spec", "levels", 0, "domain") == "zone"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- a\n", (1, "Invalid", "", "an object must be a mapping, not a list")),
        ("5\n", (1, "Invalid", "", "an object must be a mapping, not 5")),
        ("kind: ClusterTopology\n", (1, "Required", "apiVersion", "apiVersion is missing")),
        ("apiVersion: [v1]\nkind: X\n", (1, "Invalid", "apiVersion", "apiVersion must be text, not a list")),
        (
            TOPOLOGY.replace("v1alpha1", "v1"),
            (1, "NotSupported", "apiVersion", 'ClusterTopology is of apiVersion grove.io/v1alpha1, not "grove.io/v1"'),
        ),
        (
            TOPOLOGY.replace("ClusterTopology", "clustertopology"),
            (2, "NotSupported", "kind", 'there is no kind "clustertopology" in grove.io/v1alpha1'),
        ),
        (
            TOPOLOGY.replace("ClusterTopology", "ClusterToplogy"),
            (2, "NotSupported", "kind", 'there is no kind "ClusterToplogy" in grove.io/v1alpha1'),
        ),
        (HEAD, (1, "Required", "metadata.name", "the ClusterTopology has no name")),
        (f"{HEAD}metadata: {{}}\n", (3, "Required", "metadata.name", "the ClusterTopology has no name")),
        (f"{HEAD}metadata: x\n", (3, "Invalid", "metadata", 'metadata must be a mapping, not "x"')),
        (f"{HEAD}metadata: {{name: 5}}\n", (3, "Invalid", "metadata.name", "metadata.name must be text, not 5")),
        (f"{HEAD}metadata: {{name: A}}\n", (3, "Invalid", "metadata.name", '"A" cannot be the name of an object')),
        (
            f"{HEAD}metadata: {{name: a, namespace: b.c}}\n",
            (3, "Invalid", "metadata.namespace", '"b.c" cannot be the namespace of an object'),
        ),
        (f"{TOPOLOGY}---\n{TOPOLOGY}", (8, "Duplicate", "metadata.name", f'{CT} "a" is in the file twice')),
        ("apiVersion: v1\nkind: List\nitems: 5\n", (3, "Invalid", "items", "items of a List must be a list, not 5")),
    ],
)
def test_what_is_wrong_around_an_object_is_said_with_its_place(
    text: str, expected: tuple[int | None, str, str, str]
) -> None:
    assert refused(text) == [expected]


def test_all_faults_of_all_documents_are_told_in_the_order_of_the_file() -> None:
    text = f"{HEAD}---\nkind: List\nitems:\n- 5\n- apiVersion: grove.io/v2\n  kind: PodCliqueSet\n"
    assert [(line, field) for line, _, field, _ in refused(text)] == [(1, "metadata.name"), (6, ""), (7, "apiVersion")]


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("PodClique", "grove.io/v1alpha1"),
        ("Topology", "kai.scheduler/v1alpha1"),
        ("DynamoComponentDeployment", "nvidia.com/v1alpha1"),
        ("ClusterToplogy", "example.com/v1"),
    ],
)
def test_a_kind_of_somebody_else_is_no_misspelling(kind: str, version: str) -> None:
    bundle = read_resources(f"apiVersion: {version}\nkind: {kind}\n".encode(), "f")
    assert (bundle.resources, [other.kind for other in bundle.others]) == ((), [kind])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (TOPOLOGY, True),
        (f"# words\n---\n{TOPOLOGY}", True),
        ("--- {apiVersion: v1, kind: X}", True),
        ("\ufeffkind: ClusterTopology\n", True),
        (json.dumps(made()), True),
        (json.dumps({"metadata": {}, "kind": "X"}, indent=4), True),
        (json.dumps([made()]), True),
        ('{\n  "apiVersion": "v1", oops', True),
        ("workflow:\n  name: w\n", False),
        ("version: 2\nworkflow:\n  name: {{ x }}\n  files:\n  - contents: |\n      kind: Pod\n", False),
        ("default-values: {a: b}\nworkflow: {name: w}\nkind: x\n", False),
        ('{"workflow": {"name": "kind"}}', False),
        ("{% set x = 1 %}\nworkflow:\n", False),
        ("[]", False),
        ("", False),
        ("\x00\x01", False),
    ],
)
def test_objects_are_told_from_workflows(data: str, expected: bool) -> None:  # noqa: FBT001 - a table's column
    assert is_kubernetes(data.encode()) is expected


@pytest.mark.parametrize("more", ['"\\ud83d\\ude00"', '"\\/"', "\t1"])
def test_all_json_is_read(more: str) -> None:
    text = json.dumps(made(CT, [RACK]))[:-1] + f',"status":{more}}}'
    assert list(map(str, read_resources(text.encode(), "f").resources)) == [f'{CT} "t"']


def test_data_without_a_text_has_no_line() -> None:
    with pytest.raises(SpecErrors) as error:
        resource_of({"apiVersion": "grove.io/v1alpha1", "kind": CT}, "snapshot")
    (fault,) = error.value.faults
    assert fault.place
    assert (fault.place.file, fault.place.line) == ("snapshot", None)


def test_a_file_without_a_topology_says_so() -> None:
    with pytest.raises(SpecErrors, match="no topology in it"):
        read_topologies(CONFIG_MAP.encode(), "f")


def test_the_two_kinds_share_their_names() -> None:
    both = [made(CT), made(CTB)]
    assert list(read_topologies(json.dumps({"kind": "List", "items": both}).encode(), "f").found) == ["t"]
    both = [made(CT), made(CTB, [ZONE])]
    with pytest.raises(SpecErrors, match="differs from the ClusterTopology of the same name"):
        read_topologies(json.dumps({"kind": "List", "items": both}).encode(), "f")
    known = known_topologies(both, "f")
    assert len(known.found["t"].levels) == 4
    assert [notice.code for notice in known.notices] == ["TopologyWrong"]


def test_a_wrong_topology_of_a_cluster_is_kept_with_its_faults() -> None:
    known = known_topologies([made(CT, []), made(CT, [RACK]) | {"metadata": {"name": "u"}}], "f")
    assert (list(known.found), list(known.wrong)) == (["u"], ["t"])
    assert "is invalid and cannot be used" in known.notices[0].message


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_at_all_are_read_or_refused(data: bytes) -> None:
    found: tuple[Fault, ...] = ()
    is_kubernetes(data)
    try:
        read_resources(HEAD.encode() + data, "f")
    except SpecErrors as error:
        found = error.faults
    assert all(fault.place and fault.message for fault in found)
