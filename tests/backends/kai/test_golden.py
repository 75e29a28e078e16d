"""Every example, and one workflow with every feature, renders to the golden manifests in this folder.

`pytest --rewrite` regenerates them; commit that only if you understand the difference.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from coterie.backends.shared.constraint_annotation import ANNOTATION, read
from tests.backends.kai.golden_file import GoldenFile, printed
from tests.examples.console import ROOT
from tests.examples.test_examples import EXAMPLES

GOLDEN = Path(__file__).parent / "golden"
# The example of 64 tasks shows nothing that four do not.
_SMALLER = {"06-training-4x4x4": ("--set", "tensor=1", "--set", "pipeline=2", "--set", "data=2")}


def _name(file: Path) -> str:
    return file.parent.name if file.stem == "workflow" else file.stem


def is_workflow(file: Path) -> bool:
    """Tell whether a file of the examples holds a workflow."""
    return bool(re.search(r"^workflow:", file.read_text(encoding="utf-8"), re.MULTILINE))


def _goldens() -> dict[str, GoldenFile]:
    found: dict[str, GoldenFile] = {}
    for example in EXAMPLES:
        # Sets and graph deployments have golden files of their own.
        if example.verdict is not None and is_workflow(example.file):
            folder = _name(example.file)
            command = ("render", *example.arguments[1:], *_SMALLER.get(folder, ()))
            found.setdefault(folder, GoldenFile(GOLDEN, folder, command))
    everything = ("render", str(GOLDEN / "everything.yaml"), "--config", str(GOLDEN / "coterie.yaml"))
    found["everything"] = GoldenFile(GOLDEN, "everything", everything)
    return found


GOLDENS = _goldens()


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("golden", GOLDENS.values(), ids=str)
def test_an_example_renders_to_its_manifests(golden: GoldenFile, *, rewrite: bool) -> None:
    golden.compare(printed(*golden.arguments), rewrite=rewrite)


def test_every_golden_file_belongs_to_an_example() -> None:
    assert {file.name for file in GOLDEN.glob("*.golden.yaml")} == {golden.file.name for golden in GOLDENS.values()}


@pytest.mark.parametrize("golden", GOLDENS.values(), ids=str)
def test_json_and_names_tell_the_same_as_yaml(golden: GoldenFile) -> None:
    manifests = golden.manifests
    names = printed(*golden.arguments, "-o", "name").splitlines()

    assert json.loads(printed(*golden.arguments, "-o", "json")) == {
        "apiVersion": "v1",
        "kind": "List",
        "items": manifests,
    }
    assert [name.rpartition("/")[2] for name in names] == [found["metadata"]["name"] for found in manifests]


@pytest.mark.parametrize("golden", GOLDENS.values(), ids=str)
def test_manifests_of_an_example_are_sound(golden: GoldenFile) -> None:
    manifests = golden.manifests

    check(manifests)
    assert not re.search(r"(^|[\s\[,])[&*][A-Za-z]", golden.file.read_text(encoding="utf-8").replace("'", ""))


def check(manifests: list[Any]) -> None:
    """Assert what must hold of any manifests: all that is named is there, and pods and subgroups agree."""
    kinds: dict[str, dict[str, Any]] = {}
    for found in manifests:
        same = kinds.setdefault(found["kind"], {})
        assert found["metadata"]["name"] not in same
        same[found["metadata"]["name"]] = found
    order = [found["kind"] for found in manifests]
    first = [kind for kind in order[: order.index("PodGroup")] if kind not in ("ConfigMap", "Secret", "Service")]
    assert first in (
        ["Queue", "Queue", *extra, *domain] for extra in ([], ["Topology"]) for domain in ([], ["ComputeDomain"])
    )
    for group in kinds["PodGroup"].values():
        _check_group(group, kinds)
    for pod in kinds["Pod"].values():
        assert pod["metadata"]["annotations"]["pod-group-name"] in kinds["PodGroup"]
        assert len(pod["metadata"]["name"]) <= 63
        _check_mounts(pod, kinds)


def _check_group(group: Any, kinds: dict[str, dict[str, Any]]) -> None:
    name, spec = group["metadata"]["name"], group["spec"]
    pods = [pod for pod in kinds["Pod"].values() if pod["metadata"]["annotations"]["pod-group-name"] == name]
    homes = [pod["metadata"]["labels"].get("kai.scheduler/subgroup-name") for pod in pods]
    assert spec["queue"] in kinds["Queue"]
    assert spec["minMember"] == len(pods)
    subgroups = {found["name"]: found for found in spec.get("subGroups", ())}
    parents = {found.get("parent") for found in subgroups.values()} - {None}
    assert len(subgroups) == len(spec.get("subGroups", ()))
    assert parents <= set(subgroups)
    for found in subgroups.values():
        assert ("minMember" in found) == (found["name"] not in parents)
        assert found.get("minMember", 0) == homes.count(found["name"])
    assert bool(subgroups) or set(homes) == {None}
    assert sum(found.get("minMember", 0) for found in subgroups.values()) == (len(pods) if subgroups else 0)
    for constraint in (found.get("topologyConstraint") for found in (spec, *subgroups.values())):
        if constraint is not None:
            levels = [level["nodeLabel"] for level in kinds["Topology"][constraint["topology"]]["spec"]["levels"]]
            asked = [constraint[key] for key in constraint if key != "topology"]
            assert asked
            assert set(asked) <= set(levels)
    recorded = read(group["metadata"]["annotations"][ANNOTATION])
    tasks = {pod["metadata"]["labels"]["coterie.dev/task"] for pod in pods}
    assert tasks == {task.name for task in recorded.gang.all_tasks()}


def _check_mounts(pod: Any, kinds: dict[str, dict[str, Any]]) -> None:
    (container,) = pod["spec"]["containers"]
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", ())}
    mounts = container.get("volumeMounts", [])
    assert {mount["name"] for mount in mounts} == set(volumes)
    for mount in mounts:
        volume = volumes[mount["name"]]
        if "configMap" in volume:
            assert mount["subPath"] in kinds["ConfigMap"][volume["configMap"]["name"]]["data"]
        if "secret" in volume:
            assert mount["subPath"] in kinds["Secret"][volume["secret"]["secretName"]]["data"]
    claims = [claim["name"] for claim in container.get("resources", {}).get("claims", ())]
    assert claims == [claim["name"] for claim in pod["spec"].get("resourceClaims", ())]
    if "subdomain" in pod["spec"]:
        assert pod["spec"]["subdomain"] in kinds["Service"]
