"""The serving examples render to the golden manifests in `golden`, and these are valid.

`pytest --rewrite` regenerates them; commit that only if you understand the difference.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coterie.backends.shared.constraint_annotation import ANNOTATION, read
from tests.backends.kai.golden_file import GoldenFile, printed
from tests.backends.kai.sets.builders import nodes
from tests.examples.console import ROOT

GOLDEN = Path(__file__).parent / "golden"


def _golden(name: str, arguments: tuple[str, ...]) -> GoldenFile:
    return GoldenFile(GOLDEN, name, arguments)


def _example(folder: str, file: str, *more: str) -> tuple[str, ...]:
    topology = ROOT / "examples" / folder / "topology.yaml"
    given = ("--topology", f"examples/{folder}/topology.yaml") if topology.exists() else ()
    return ("render", f"examples/{folder}/{file}", *given, *more)


_OWN = ("render", str((GOLDEN / "everything.yaml").relative_to(ROOT)))
GOLDENS = {
    golden.name: golden
    for golden in (
        _golden("07-aggregated-serving", _example("07-aggregated-serving", "deployment.yaml")),
        _golden("08-disaggregated-serving", _example("08-disaggregated-serving", "deployment.yaml")),
        _golden("09-scaling-groups", _example("09-scaling-groups", "podcliqueset.yaml")),
        _golden("10-two-generations", _example("10-two-generations", "workloads.yaml")),
        _golden(
            "11-multinode-worker", _example("11-multinode-worker", "deployment.yaml", "--group", "wide-ep-0-worker-0")
        ),
        _golden("everything", _OWN),
        _golden("everything-grove", (*_OWN, "--backend", "grove")),
        _golden("08-grove", _example("08-disaggregated-serving", "deployment.yaml", "--backend", "grove")),
    )
}
FOLLOWERS = _golden("everything-followers", _OWN)
FOR_KAI = [golden for golden in (*GOLDENS.values(), FOLLOWERS) if "grove" not in golden.name]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("golden", GOLDENS.values(), ids=str)
def test_an_example_renders_to_its_manifests(golden: GoldenFile, *, rewrite: bool) -> None:
    golden.compare(printed(*golden.arguments), rewrite=rewrite)


def test_followers_are_bound_to_the_block_in_which_their_leader_was_placed(tmp_path: Path, *, rewrite: bool) -> None:
    snapshot = tmp_path / "snapshot.json"
    items: list[Any] = [
        {
            "kind": "Node",
            "metadata": {"name": node.name, "labels": dict(node.labels)},
            "status": {"allocatable": {"nvidia.com/gpu": "8", "cpu": "64", "memory": "512Gi", "pods": "110"}},
        }
        for node in nodes()
    ]
    snapshot.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}), encoding="utf-8")
    plan = json.loads(printed("plan", *GOLDENS["everything"].arguments[1:], "--cluster", str(snapshot), "-o", "json"))
    chosen = {one["task"]: one["node"] for group in plan["groups"] for one in group["assignments"]}
    for pod in GOLDENS["everything"].manifests:
        if pod["kind"] == "Pod":
            node = chosen[pod["metadata"]["labels"]["coterie.dev/task"]]
            items.append({**pod, "spec": {**pod["spec"], "nodeName": node}, "status": {"phase": "Running"}})
    snapshot.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}), encoding="utf-8")

    text = printed(*FOLLOWERS.arguments, "--cluster", str(snapshot), "--group", "everything-0-shard-0")
    FOLLOWERS.compare(text, rewrite=rewrite)


def test_every_golden_file_belongs_to_a_call() -> None:
    files = {golden.file.name for golden in (*GOLDENS.values(), FOLLOWERS)}

    assert {file.name for file in GOLDEN.glob("*.golden.yaml")} == files


@pytest.mark.parametrize("golden", GOLDENS.values(), ids=str)
def test_json_and_names_tell_the_same_as_yaml(golden: GoldenFile) -> None:
    found = golden.manifests
    named = printed(*golden.arguments, "-o", "name").splitlines()

    assert json.loads(printed(*golden.arguments, "-o", "json"))["items"] == found
    assert [name.rpartition("/")[2] for name in named] == [each["metadata"]["name"] for each in found]


@pytest.mark.parametrize("golden", FOR_KAI, ids=str)
def test_manifests_name_only_what_is_there_and_pods_and_subgroups_agree(golden: GoldenFile) -> None:
    kinds: dict[str, dict[str, Any]] = {}
    for found in golden.manifests:
        same = kinds.setdefault(found["kind"], {})
        assert found["metadata"]["name"] not in same
        same[found["metadata"]["name"]] = found
    for group in kinds["PodGroup"].values():
        _check_group(group, kinds)
    hosts = [pod["spec"]["hostname"] for pod in kinds["Pod"].values()]
    assert len(set(hosts)) == len(hosts)
    for pod in kinds["Pod"].values():
        assert pod["metadata"]["annotations"]["pod-group-name"] in kinds["PodGroup"]
        assert pod["spec"]["subdomain"] in kinds["Service"]
        claims = {claim["resourceClaimTemplateName"] for claim in pod["spec"].get("resourceClaims", ())}
        assert claims <= kinds.get("ComputeDomain", {}).keys()


def _check_group(group: Any, kinds: dict[str, dict[str, Any]]) -> None:
    name, spec = group["metadata"]["name"], group["spec"]
    pods = [pod for pod in kinds["Pod"].values() if pod["metadata"]["annotations"]["pod-group-name"] == name]
    homes = [pod["metadata"]["labels"].get("kai.scheduler/subgroup-name") for pod in pods]
    subgroups = {found["name"]: found for found in spec.get("subGroups", ())}
    parents = {found.get("parent") for found in subgroups.values()} - {None}
    assert parents <= subgroups.keys()
    for found in subgroups.values():
        assert ("minMember" in found) == (found["name"] not in parents)
        assert found.get("minMember", 0) <= homes.count(found["name"])
    assert set(homes) == (subgroups.keys() - parents or {None})
    recorded = read(group["metadata"]["annotations"][ANNOTATION]).gang
    needed = [task for task in recorded.all_tasks() if task.needed]
    assert {pod["metadata"]["labels"]["coterie.dev/task"] for pod in pods} == {t.name for t in recorded.all_tasks()}
    assert spec["minMember"] == len(needed)
    assert sum(found.get("minMember", 0) for found in subgroups.values()) == (len(needed) if subgroups else 0)
    for constraint in (found.get("topologyConstraint") for found in (spec, *subgroups.values())):
        if constraint is not None:
            levels = [level["nodeLabel"] for level in kinds["Topology"][constraint["topology"]]["spec"]["levels"]]
            assert {constraint[key] for key in constraint if key != "topology"} <= set(levels)
