"""The pods of a workflow's tasks on KAI, one rule per test."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.backends.kai.manifests.pods import quantity
from coterie.topology.cluster import GPU
from tests.backends.kai.builders import (
    PAIR,
    container,
    faults_of,
    of_kind,
    rendered,
)
from tests.frontends.workflow.samples import grouped, plain, resource, task

# Pods


@pytest.mark.parametrize(
    ("resource_name", "amount", "expected"),
    [
        ("cpu", 64_000, "64"),
        ("cpu", 500, "500m"),
        ("memory", 400 << 30, "400Gi"),
        ("memory", 1_500_000_000, "1500000000"),
        ("ephemeral-storage", 2 << 40, "2Ti"),
        ("memory", 1536 << 20, "1536Mi"),
        (GPU, 8, "8"),
    ],
)
def test_amounts_are_written_exactly(resource_name: str, amount: int, expected: str) -> None:
    assert quantity(resource_name, amount) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [("$HOME", "$HOME"), ("$(date)", "$$(date)"), ("$$", "$$$"), ("$$(x)", "$$$$(x)"), ("cost: 5$", "cost: 5$")],
)
def test_kubernetes_does_not_touch_dollars_in_commands(written: str, expected: str) -> None:
    text = plain("{name: a, image: i, command: [sh, '" + written + "'], environment: {X: '" + written + "'}}")
    found = container(text)

    assert found["command"][1] == expected
    assert found["env"] == [{"name": "X", "value": expected}]


@settings(deadline=None)
@given(st.text(alphabet="$()aX ", max_size=12))
def test_an_escaped_text_expands_to_what_it_was(text: str) -> None:
    """Play Kubernetes' expansion, which halves $$ and looks up $(NAME), on what we write."""
    from coterie.backends.kai.manifests.pods import _literal  # noqa: PLC0415 - the one test that looks inside

    written, read_back, at = _literal(text), "", 0
    while at < len(written):
        if written[at] == "$" and written[at + 1 : at + 2] == "$":
            read_back, at = read_back + "$", at + 2
        else:
            assert not (written[at] == "$" and written[at + 1 : at + 2] == "(")
            read_back, at = read_back + written[at], at + 1
    assert read_back == text


def test_a_time_limit_becomes_the_deadline_of_pods() -> None:
    text = PAIR.replace("name: w\n", "name: w\n  timeout: {exec_timeout: 90s}\n", 1)

    assert of_kind(rendered(text), "Pod")[0]["spec"]["activeDeadlineSeconds"] == 90


def test_nodes_are_excluded_by_their_names_and_within_every_alternative() -> None:
    (pod,) = of_kind(rendered(plain(task("a")) + resource("nodesExcluded: [n2, n1]")), "Pod")
    (term,) = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]

    assert [found["values"] for found in term["matchFields"]] == [["n1"], ["n2"]]


# Tokens and files


def test_tokens_are_replaced_where_a_task_can_use_them() -> None:
    text = plain(
        task("a"),
        "{name: b, image: i, command: ['{{output}}'], args: ['{{input:0}}', '{{input:a}}'], inputs: [{task: a}], "
        "environment: {ID: '{{workflow_id}}', U: '{{uuid}}'}, files: [{path: /x, contents: '{{host:b}}'}]}",
    )
    found = rendered(text)
    spec = of_kind(found, "Pod")[1]["spec"]["containers"][0]
    (held,) = of_kind(found, "ConfigMap")

    assert spec["command"] == ["/coterie/output"]
    assert spec["args"] == ["/coterie/input/0", "/coterie/input/0"]
    assert re.fullmatch(r"w-[0-9a-f]{8}", spec["env"][0]["value"])
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f-]{21}", spec["env"][1]["value"])
    assert re.fullmatch(r"b\.w-b-group-[0-9a-f]{8}", held["data"]["0-x"])
    assert [mount["mountPath"] for mount in spec["volumeMounts"]] == ["/x", "/coterie/input/0", "/coterie/output"]


def test_tokens_that_name_nothing_are_faults_all_at_once() -> None:
    text = plain("{name: worker, image: i, command: ['{{host:wroker}}'], args: ['{{input:0}}']}")

    assert faults_of(text) == [
        "{{host:wroker}} names no task of the workflow",
        '{{input:0}} is not an input of task "worker"',
    ]


def test_tasks_with_the_same_files_share_them() -> None:
    files = "files: [{path: /a.sh, contents: x}, {path: /b, contents: eA==, base64: true}]"
    text = grouped(
        ("g", task("a", "lead: true", files), task("b", files), task("c", "files: [{path: /a.sh, contents: y}]"))
    )
    found = rendered(text)

    assert [one["data"] for one in of_kind(found, "ConfigMap")] == [{"0-a.sh": "x"}, {"0-a.sh": "y"}]
    assert [one["data"] for one in of_kind(found, "Secret")] == [{"0-b": "eA=="}]


def test_local_files_are_text_if_they_can_be() -> None:
    text = plain(task("a", "files: [{path: /t, localpath: t}, {path: /b, localpath: b}]"))
    found = rendered(text, local={"t": "ä {{output}}".encode(), "b": b"\xff"})

    assert of_kind(found, "ConfigMap")[0]["data"] == {"0-t": "ä /coterie/output"}
    assert of_kind(found, "Secret")[0]["data"] == {"0-b": "/w=="}


@pytest.mark.parametrize(
    ("fields", "local", "expected"),
    [
        ("files: [{path: /x, localpath: x}]", {"x": b"y" * 1_048_577}, 'the files of task "a" have 1,048,577 bytes'),
        ("files: [{path: /x, localpath: x, base64: true}]", {"x": b"%%"}, "the contents of x are not Base64"),
        ("files: [{path: /x, contents: y}], volumeMounts: [/x]", {}, '/x is used twice in task "a"'),
    ],
)
def test_files_that_no_pod_can_have_are_faults(fields: str, local: dict[str, bytes], expected: str) -> None:
    assert expected in faults_of(plain(task("a", fields)), local=local)[0]
