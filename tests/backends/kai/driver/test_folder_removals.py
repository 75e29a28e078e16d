"""The removal of deleted workflows' folders: by pods, one after the other, until each has succeeded."""

from __future__ import annotations

import errno
import math
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from coterie.backends.base.settings import DriverSettings
from coterie.backends.kai.driver.objects import AnyObject, ObjectMeta, TaskPod
from coterie.backends.kai.driver.removal import ObjectRemoval, RemovalScope, Remover, StuckObject, hurry_stuck
from coterie.backends.kai.driver.workspaces import folder_removals
from coterie.backends.kai.driver.workspaces.folder_removals import FolderRemoval, FolderRemovals
from coterie.backends.kai.driver.workspaces.records import WorkspaceRecord, WorkspaceRecords
from coterie.backends.kai.manifests.folder_removal import (
    on_current_nodes,
    platform_of,
    removal_objects,
    removal_pod,
    removed_folder,
)
from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.backends.kai.manifests.render import ServiceRun
from coterie.backends.shared.names import label_value
from coterie.config.configuration import Platform, Pool, Workspace
from coterie.errors import Unavailable
from coterie.gang.tree import Toleration
from coterie.kube.api import Api
from coterie.kube.errors import ApiForbidden, RequestDescription
from coterie.kube.kinds import PERSISTENT_VOLUME_CLAIM, POD_GROUP, ObjectKind
from coterie.sources.task_labels import WORKFLOW
from tests.backends.kai.builders import POOL, of_kind, rendered
from tests.backends.kai.driver.test_pod_report import ended, pod
from tests.frontends.workflow.samples import grouped, task

CLAIM = Workspace("data", "teams/a")
TEMPLATE = {
    "metadata": {"labels": {"example.com/team": "research"}},
    "spec": {
        "securityContext": {"runAsUser": 1234},
        "imagePullSecrets": [{"name": "pull"}],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "initContainers": [{"name": "beside", "image": "sidecar", "restartPolicy": "Always"}],
        "containers": [{"name": "task", "env": [{"name": "TEAM", "value": "research"}]}],
    },
}
SHARED = replace(POOL, workspace=CLAIM, pod_template=TEMPLATE, node_selector=(("pool", "gb200"),))
POOLS = {SHARED.name: SHARED}
HELD = StuckObject(POD_GROUP, ObjectMeta("held", labels={WORKFLOW: "w-1"}, finalizers=["example.com/hold"]))


def made(workflow: str, pool: Pool = SHARED) -> WorkspaceRecord:
    text = grouped(("g", task("t", "args: ['{{output}}/x']")))
    (found,) = of_kind(rendered(text, pool, run=ServiceRun(workflow, "s1", "NORMAL")), "Pod")
    scene = ManifestContext("default", workflow, pool, store="s1")
    assert pool.workspace
    return WorkspaceRecord(pool.name, removal_pod(scene, pool.workspace, found), "")


def test_the_pod_has_what_lets_it_run_where_the_task_ran_and_nothing_else_of_the_task() -> None:
    group, found = removal_objects(made("w-1").pod, {"kai.scheduler/queue": "q", "runai/queue": "q"}, "")
    name = group["metadata"]["name"]
    assert found["metadata"]["name"] == name
    assert len(name) <= 52
    assert (group["spec"], found["metadata"]["annotations"]["pod-group-name"]) == ({"queue": "q", "minMember": 1}, name)
    assert found["metadata"]["labels"] == group["metadata"]["labels"]
    assert found["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "coterie",
        "coterie.dev/backend": "b",
        "coterie.dev/store": "s1",
        "coterie.dev/workflow": "w-1",
        "example.com/team": "research",
        "kai.scheduler/queue": "q",
        "runai/queue": "q",
    }
    spec = found["spec"]
    assert spec["nodeSelector"] == {"pool": "gb200"}
    assert spec["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert (spec["securityContext"], spec["imagePullSecrets"]) == ({"runAsUser": 1234}, [{"name": "pull"}])
    assert spec["automountServiceAccountToken"] is False
    assert spec["activeDeadlineSeconds"] == 3600
    (container,) = spec["containers"]
    assert "env" not in container
    assert "initContainers" not in spec
    assert [volume["name"] for volume in spec["volumes"]] == ["workspace"]
    assert removed_folder(made("w-1").pod) == ("w-1", "data", "teams/a/s1/w-1")


@pytest.mark.parametrize(
    ("image", "runs", "mounts", "folder"),
    [
        ("", "i", "teams/a/s1/w-1", "/coterie/workspace"),
        ("busybox:1", "busybox:1", "teams/a/s1", "/coterie/workspace/w-1"),
    ],
)
def test_only_an_image_of_the_configuration_sees_more_than_the_folder_of_the_workflow(
    image: str, runs: str, mounts: str, folder: str
) -> None:
    _, found = removal_objects(made("w-1").pod, {"kai.scheduler/queue": "q"}, image)
    (container,) = found["spec"]["containers"]
    assert container["image"] == runs
    mount = {"name": "workspace", "mountPath": "/coterie/workspace", "subPath": mounts}
    assert (container["volumeMounts"], container["command"][-1]) == ([mount], folder)


def deep(folder: Path) -> None:
    """Make a path that no program can name at once."""
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(40):
        os.mkdir("n" * 250, dir_fd=handle)
        below = os.open("n" * 250, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    os.close(handle)


@pytest.mark.parametrize("image", ["", "busybox:1"])
@pytest.mark.parametrize("shell", [["sh"], ["busybox", "sh"]])
def test_the_script_removes_hidden_files_links_read_only_folders_and_deep_ones(
    tmp_path: Path, image: str, shell: list[str]
) -> None:
    if not shutil.which(shell[0]):
        pytest.skip(f"{shell[0]} is not installed")
    other = tmp_path / "w-2"
    folder = tmp_path / "w-1"
    for each in (other / "g", folder / "g" / "t", folder / ".hidden", folder / "..two"):
        each.mkdir(parents=True)
        (each / "file").touch()
    (folder / "g" / "link").symlink_to(other)
    (folder / "g" / "t").chmod(0o500)
    deep(folder / ".hidden")
    _, found = removal_objects(made("w-1").pod, {"kai.scheduler/queue": "q"}, image)
    command = found["spec"]["containers"][0]["command"]
    for _ in range(2):
        done = subprocess.run([*shell, *command[1:-1], str(folder)], capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert folder.exists() is not bool(image)
        assert not folder.exists() or not list(folder.iterdir())
    assert (other / "g" / "file").exists()


def test_the_pod_goes_where_the_nodes_of_its_pool_are_now() -> None:
    taint = Toleration("old", "Exists")
    platforms = {"arm": Platform((("arch", "arm64"),), (taint,))}
    then = replace(SHARED, platforms=platforms)
    record = made("w-1", then)
    of_platform = {**record.pod, "spec": {**record.pod["spec"], "nodeSelector": {"arch": "arm64", "pool": "gb200"}}}
    assert (platform_of(record.pod, then), platform_of(of_platform, then)) == ("", "arm")
    new = Toleration("new", "Exists")
    now = replace(then, node_selector=(("pool", "gb300"),), tolerations=(*then.tolerations, new))
    spec = on_current_nodes(record.pod, now, "")["spec"]
    assert spec["nodeSelector"] == {"pool": "gb300"}
    assert {each["key"] for each in spec["tolerations"]} == {"gpu", "new"}
    spec = on_current_nodes(of_platform, now, "arm")["spec"]
    assert spec["nodeSelector"] == {"arch": "arm64", "pool": "gb300"}
    assert on_current_nodes(of_platform, replace(now, platforms={}), "arm") == of_platform


def test_records_outlast_the_process_and_are_those_of_one_backend_and_namespace(tmp_path: Path) -> None:
    settings = DriverSettings(tmp_path / "tasks", backend="lab", namespace="n")
    records = WorkspaceRecords(settings)
    assert (records.workflows(), records.of("w-1")) == (set(), [])
    first, moved = made("w-1"), made("w-1", replace(SHARED, workspace=Workspace("other", "f")))
    for each in (first, moved, first):
        records.add("w-1", each)
    again = WorkspaceRecords(settings)
    assert again.of("w-1") == [first, moved]
    again.add("w-1", replace(first, pool="another"))
    assert again.of("w-1") == [first, moved]
    assert WorkspaceRecords(replace(settings, backend="two")).workflows() == set()
    assert WorkspaceRecords(replace(settings, namespace="m")).workflows() == set()
    again.forget("w-1")
    assert records.workflows() == set()


def test_a_record_that_cannot_be_written_keeps_the_task_from_starting(tmp_path: Path) -> None:
    (tmp_path / "workspaces").write_text("a file is in the way")
    records = WorkspaceRecords(DriverSettings(tmp_path / "tasks", backend="lab"))
    with pytest.raises(Unavailable, match="the folder of w-1 on its workspace cannot be read"):
        records.add("w-1", made("w-1"))
    with pytest.raises(Unavailable, match="cannot be listed"):
        records.workflows()
    (tmp_path / "workspaces").unlink()
    draft = tmp_path / "workspaces" / "lab" / "default" / "w-1.draft"
    draft.mkdir(parents=True)
    with pytest.raises(Unavailable, match="the folder of w-1 on its workspace cannot be recorded"):
        records.add("w-1", made("w-1"))


def test_records_that_cannot_be_read_are_neither_overwritten_nor_forgotten(
    tmp_path: Path, scene: Callable[..., Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = scene("w-1")
    here.go_on()
    here.pods[here.created[0]] = pod(ended(0))
    here.go_on()
    moved = made("w-1", replace(SHARED, workspace=Workspace("other", "f")))
    here.records.add("w-1", made("w-1"))
    with monkeypatch.context() as patch:

        def refuse(*_: object, **__: object) -> str:
            raise OSError(errno.EMFILE, "Too many open files")

        patch.setattr(Path, "read_text", refuse)
        with pytest.raises(Unavailable, match=r"cannot be read: .*Too many open files"):
            here.records.add("w-1", moved)
        here.removals.begin("w-1")
        assert "Too many open files" in here.removals.problems[0]
        assert here.removals.workflows == {"w-1"}
    assert here.records.of("w-1") == [made("w-1")]
    here.now = here.removals.due
    here.go_on()
    assert (len(here.created), here.removals.problems) == (2, [])
    path = tmp_path / "workspaces" / "lab" / "default" / "w-2.json"
    # The pod of a record without a platform mounts another folder.
    for text in ("", "{}x", '[{"pool": "a"}]', '[{"pool": "a", "pod": {}}]', "[7]"):
        path.write_text(text)
        with pytest.raises(Unavailable, match=r"w-2\.json is damaged .*; remove that file"):
            here.records.add("w-2", made("w-2"))
        here.removals.begin("w-2")
        assert "w-2.json is damaged" in here.removals.problems[0]
        assert path.read_text() == text
    path.unlink()
    here.now = here.removals.due
    here.go_on()
    assert (here.removals.problems, here.removals.workflows) == ([], {"w-1"})


class Scene:
    """Removals whose cluster is a script: which pods there are, and whether their removal has ended."""

    def __init__(self, folder: Path, *workflows: str) -> None:
        self.now = 0.0
        self.pods: dict[str, TaskPod] = {}
        self.created: list[str] = []
        self.fails = ""
        self.claim: AnyObject | None = AnyObject(ObjectMeta("data"))
        self.forbidden = False
        self.looks = 0
        self.held: tuple[StuckObject, ...] = ()
        self.records = WorkspaceRecords(DriverSettings(folder / "tasks", backend="lab"))
        for each in workflows:
            self.records.add(each, made(each))
        self.removals = FolderRemovals(
            cast("Api", None), cast("Remover", self), self.records, self.pods.get, lambda: self.now
        )
        for each in workflows:
            self.removals.begin(each)

    def create(self, _api: Api, manifests: Sequence[Any], _known: Callable[[Any], str]) -> Iterator[Any]:
        """Create a pod that runs."""
        if self.fails:
            raise Unavailable(self.fails)
        name = manifests[-1]["metadata"]["name"]
        self.created.append(name)
        self.pods[name] = pod({"running": {}})
        return iter(manifests)

    def step(self, removal: ObjectRemoval, now: float, clock: float) -> bool:
        """Remove the pod of a folder at once; its PodGroup goes unless somebody holds it."""
        del now
        self.pods.pop(removal.scope.name, None)
        removal.stuck, removal.due = self.held, clock + 60.0
        return True

    def find(self, _api: Api, kind: ObjectKind, *_: object) -> AnyObject | None:
        """Find the claim of all folders, and no pod that is not known."""
        self.looks += 1
        if self.forbidden:
            raise ApiForbidden("no rule for it", "", RequestDescription("get", kind), "somebody")
        return self.claim if kind is PERSISTENT_VOLUME_CLAIM else None

    def go_on(self, pools: dict[str, Pool] = POOLS, others: Sequence[ObjectRemoval] = ()) -> None:
        """Take as many steps as it takes until nothing is due."""
        for _ in range(50):
            self.removals.step("default", "s1", pools, others)
            if self.removals.due > self.now:
                return
        pytest.fail("there is always something due")


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scene]:
    def make(*workflows: str) -> Scene:
        found = Scene(tmp_path, *workflows)
        monkeypatch.setattr(folder_removals, "create", found.create)
        monkeypatch.setattr(folder_removals, "find", found.find)
        return found

    return make


def test_a_folder_is_gone_when_its_pod_has_succeeded_and_is_gone_as_well(scene: Callable[..., Scene]) -> None:
    here = scene("w-1")
    here.go_on()
    (name,) = here.created
    assert here.removals.due == math.inf
    assert here.removals.problems == []
    assert [each.workflow for each in here.removals.scopes] == ["w-1"]
    here.pods[name] = pod(ended(0))
    here.go_on()
    assert (here.pods, here.removals.workflows, here.records.workflows()) == ({}, set(), set())


def test_a_pod_that_fails_is_told_removed_and_made_again_later_and_later(scene: Callable[..., Scene]) -> None:
    here = scene("w-1")
    waits = []
    for number in range(1, 5):
        here.go_on()
        assert len(here.created) == number
        here.pods[here.created[0]] = pod(ended(1, message="rm: can't remove 'x': Permission denied"))
        here.go_on()
        assert here.pods == {}
        (told,) = here.removals.problems
        folder = "folder teams/a/s1/w-1 of the deleted workflow w-1 is still on the volume of data"
        assert told == f"{folder}: rm: can't remove 'x': Permission denied (pod {here.created[0]})"
        assert here.records.workflows() == {"w-1"}
        waits.append(here.removals.due - here.now)
        here.now = here.removals.due
    assert waits[0] < waits[-1]
    here.go_on()
    here.pods[here.created[0]] = pod(ended(0))
    here.go_on()
    assert (here.removals.problems, here.records.workflows()) == ([], set())


def test_pods_of_many_workflows_are_made_a_few_at_a_time(scene: Callable[..., Scene]) -> None:
    here = scene(*(f"w{number}-1" for number in range(10)))
    done: set[str] = set()
    while here.records.workflows():
        here.go_on()
        assert 0 < len(here.pods) <= 4
        first = next(iter(here.pods))
        assert first not in done
        done.add(first)
        here.pods[first] = pod(ended(0))
        here.go_on()
    assert len(done) == 10


def test_it_waits_for_pools_for_objects_that_still_go_and_for_the_cluster(scene: Callable[..., Scene]) -> None:
    here = scene("w-1")
    # A removal of all that the workflow has goes on with the PodGroup of the pod, also while something is stuck.
    for other in (ObjectRemoval(RemovalScope("w-1"), 0.0), ObjectRemoval(RemovalScope("w-1"), 0.0, stuck=(HELD,))):
        here.go_on(others=[other])
        assert (here.created, here.removals.due) == ([], math.inf)
    here.go_on({})
    assert "no pool of the backend is known here" in here.removals.problems[0]
    here.now = here.removals.due
    here.fails = "the cluster is busy"
    here.go_on()
    assert "the cluster is busy" in here.removals.problems[0]
    here.now, here.fails = here.removals.due, ""
    here.go_on()
    here.go_on()
    # The pod that was seen is gone, and not because it has ended.
    here.pods.clear()
    here.go_on()
    assert "its pod was deleted by somebody else" in here.removals.problems[0]


def test_a_pod_without_a_node_makes_way_for_other_folders(scene: Callable[..., Scene]) -> None:
    stuck = [f"stuck{number}-1" for number in range(4)]
    here = scene(*stuck, "w-1")
    here.go_on()
    waits = {"type": "PodScheduled", "status": "False", "message": "no such claim"}
    for name in here.created:
        here.pods[name] = pod(node="", conditions=[waits])
    here.now = 599.0
    here.go_on()
    assert len(here.created) == 4
    here.now = 601.0
    here.go_on()
    assert f"pod {here.created[0]} got no node in 601 s: no such claim" in here.removals.problems[0]
    # Folders that were not tried yet go first, and the others again after a while.
    assert here.created[4].startswith("w-1-")
    here.now = 604.0
    here.go_on()
    assert len(here.created) == 8
    # A pod on a node is not one of these.
    here.now = 4500.0
    here.go_on()
    assert len(here.created) == 8
    # But its node may never end it.
    here.now = 6000.0
    here.go_on()
    assert any("did not end in" in each for each in here.removals.problems)


def test_objects_that_somebody_holds_are_told_with_their_age_and_take_no_place_from_other_folders(
    scene: Callable[..., Scene],
) -> None:
    here = scene("a-1", "b-1", "c-1", "d-1", "w-1")
    here.go_on()
    since = datetime.fromtimestamp(time.time() - 90, UTC).isoformat()
    here.held = (StuckObject(POD_GROUP, msgspec.structs.replace(HELD.meta, deletion_timestamp=since)),)
    first = list(here.created)
    for name in first:
        here.pods[name] = pod(ended(0))
    here.go_on()
    assert len(here.created) == 5
    told = here.removals.problems[0]
    found = re.fullmatch(r"PodGroup held of workflow w-1 has been stuck for (\d+) s \(example.com/hold\)", told)
    assert found
    assert int(found[1]) >= 90
    # Their folders are gone: after a crash, nothing is done for them again.
    assert here.records.workflows() == {"w-1"}
    here.held = ()
    hurry_stuck(here.removals.removals)
    here.go_on()
    assert (here.removals.problems, here.removals.workflows) == ([], {"w-1"})


def test_the_words_about_many_objects_that_somebody_holds_are_few(scene: Callable[..., Scene]) -> None:
    here = scene(*(f"w{number}-1" for number in range(9)))
    here.held = (HELD,)
    for _ in range(3):
        here.go_on()
        here.pods.update({name: pod(ended(0)) for name in here.pods})
        here.go_on()
    assert len(here.created) == 9
    assert (len(here.removals.problems), here.removals.problems[-1]) == (
        4,
        "and 6 more objects of pods that remove folders",
    )


def test_a_folder_whose_pods_never_had_a_node_is_forgotten_and_not_made(
    scene: Callable[..., Scene], tmp_path: Path
) -> None:
    here = scene()
    long = f"{'n' * 80}-1"
    for name in ("never-1", "bound-1", long):
        here.records.add(name, replace(made(name), bound=False))
    here.records.note_bound("bound-1")
    here.records.note_bound(label_value(long))
    # After a crash only the disk knows.
    again = WorkspaceRecords(DriverSettings(tmp_path / "tasks", backend="lab"))
    assert [again.of(name)[0].bound for name in ("never-1", "bound-1", long)] == [False, True, True]
    here.removals.begin("never-1")
    assert (here.removals.workflows, here.records.workflows()) == (set(), {"bound-1", long})
    here.removals.begin("bound-1")
    here.go_on()
    assert len(here.created) == 1


def test_a_bound_pod_that_cannot_be_recorded_is_remembered_and_recorded_with_the_next(tmp_path: Path) -> None:
    settings = DriverSettings(tmp_path / "tasks", backend="lab")
    records = WorkspaceRecords(settings)
    records.add("w-1", replace(made("w-1"), bound=False))
    draft = tmp_path / "workspaces" / "lab" / "default" / "w-1.draft"
    draft.mkdir()
    records.note_bound("w-1")
    assert records.of("w-1")[0].bound
    assert not WorkspaceRecords(settings).of("w-1")[0].bound
    draft.rmdir()
    records.note_bound("w-1")
    assert WorkspaceRecords(settings).of("w-1")[0].bound


def test_a_folder_whose_claim_is_gone_is_told_and_given_up_after_a_while(scene: Callable[..., Scene]) -> None:
    here = scene("w-1")
    here.claim = AnyObject(ObjectMeta("data", deletion_timestamp="2026-01-01T00:00:00Z"))
    here.go_on()
    assert here.removals.problems[0].endswith("PersistentVolumeClaim data is being deleted")
    here.claim, here.now = None, here.removals.due
    here.go_on()
    assert here.removals.problems[0].endswith("PersistentVolumeClaim data does not exist")
    first = here.now
    while here.removals.workflows and here.now < first + 3600.0:
        here.now = here.removals.due
        here.go_on()
    assert 600.0 <= here.now - first <= 900.0
    assert (here.created, here.removals.problems, here.records.workflows()) == ([], [], set())


def test_a_claim_that_comes_back_or_may_not_be_read_is_used(scene: Callable[..., Scene]) -> None:
    here = scene("w-1")
    claim, here.claim = here.claim, None
    here.go_on()
    here.claim, here.now = claim, here.removals.due + 601.0
    here.go_on()
    assert len(here.created) == 1
    other = scene("w-2")
    other.forbidden = True
    other.go_on()
    assert len(other.created) == 1


def test_the_words_about_many_folders_are_few(scene: Callable[..., Scene], tmp_path: Path) -> None:
    here = scene(*(f"w{number}-1" for number in range(9)))
    here.go_on({})
    told = here.removals.problems
    assert len(told) == 4
    assert told[-1] == "and 6 more folders of deleted workflows"
    here.claim, here.now = None, here.removals.due
    before = here.looks
    here.removals.step("default", "s1", POOLS)
    assert here.looks == before + 1
    for number in range(5):
        (tmp_path / "workspaces" / "lab" / "default" / f"v{number}-1.json").write_text("")
        here.removals.begin(f"v{number}-1")
    assert (len(here.removals.problems), here.removals.problems[-1]) == (8, "and 2 more records of folders")


def test_the_work_of_a_step_grows_no_faster_than_the_number_of_folders(
    scene: Callable[..., Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def active(self: FolderRemoval) -> bool:
        nonlocal looks
        looks += 1
        return self.since is not None or self.objects is not None

    monkeypatch.setattr(FolderRemoval, "active", property(active))
    here = scene(*(f"w{number}-1" for number in range(200)))
    here.removals.step("default", "s1", POOLS)
    assert here.removals.due == math.inf
    assert (len(here.created), looks < 10 * 200) == (4, True)
