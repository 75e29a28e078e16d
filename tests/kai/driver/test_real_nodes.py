"""Tasks that really run on a cluster, through `coterie serve` and `coterie submit`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from coterie.service.driver import board
from coterie.service.settings import Submission
from lab import IMAGE, Lab, nodes
from tests.cli.command import Done
from tests.cli.service_fixtures import ServiceFixture, serving
from tests.eventually import eventually
from tests.kai.driver.service_on_kai import CLUSTER, CONFIG, KINDS, OWN, RACK, ZONE, KaiService, add_nodes, settings
from tests.kai.driver.service_on_kai import serving as in_process

pytestmark = pytest.mark.usefixtures("real_nodes_possible")

REAL = """\
    platforms: {real: {node_selector: {coterie.dev/lab-real: 'true'}}}
    workspace: {claim: files, folder: flows}
    pod_template:
      metadata: {annotations: {example.com/team: research}}
      spec:
        securityContext: {runAsUser: 1234, runAsGroup: 1234}
        volumes: [{name: scratch, emptyDir: {medium: Memory}}]
        containers:
        - {name: task, volumeMounts: [{name: scratch, mountPath: /scratch}], env: [{name: TEAM, value: research}]}
"""
SIDECAR = f"""\
        initContainers:
        - name: beside
          image: {IMAGE}
          command: [sh, -c, "trap exit TERM; echo beside > /scratch/note; sleep 1000 & wait"]
          restartPolicy: Always
          volumeMounts: [{{name: scratch, mountPath: /scratch}}]
          resources: {{requests: {{cpu: 100m}}}}
"""
RESOURCES = "  resources: {default: {gpu: 1, cpu: 1, memory: 64Mi, platform: real}}\n"
LIMIT = "300s"
SECURITY = "pod-security.kubernetes.io/enforce"
FORBIDDEN = ", volumeMounts: ['/etc:/node']"


@pytest.fixture(scope="module")
def real() -> Iterator[Lab]:
    """Give two real nodes in a rack, and two that KWOK simulates in another."""
    with Lab(real_nodes=2, compute_domain=False) as lab, TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        add_nodes(lab, CLUSTER)
        lab.apply(nodes.workspace("files", Path(folder)))
        # Pods that could harm their nodes are refused, as in most namespaces of others.
        lab.api.patch("namespaces", "default", {"metadata": {"labels": {SECURITY: "baseline"}}})
        yield lab


@pytest.fixture
def here(
    real: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[ServiceFixture]:
    """Give a service in a process of its own, whose only pool is the lab; a parameter adds to its configuration."""
    monkeypatch.setenv("KUBECONFIG", str(real.kubeconfig))
    more = getattr(request, "param", "")
    (tmp_path / "coterie.yaml").write_text(CONFIG.replace("NVLINK", "false") + REAL + more, encoding="utf-8")
    with serving(tmp_path) as (url, _):
        yield ServiceFixture(url, tmp_path)


def _task(name: str, script: str, more: str = "", image: str = IMAGE, program: str = "sh") -> str:
    return f"    - {{name: {name}, image: {image}, command: [{program}, -c, {script!r}]{more}}}\n"


def _flow(name: str, *tasks: str, after: str = "") -> str:
    second = f"  - name: h\n    tasks:\n{after}" if after else ""
    return f"workflow:\n  name: {name}\n  groups:\n  - name: g\n    tasks:\n{''.join(tasks)}{second}{RESOURCES}"


def _ended(here: ServiceFixture, text: str) -> tuple[str, Any]:
    """Submit a workflow as soon as the cluster is known, wait for its end, and return its id and its view."""
    file = here.file("flow.yaml", text)
    submitted: list[Done] = []

    def taken() -> bool:
        submitted.append(here.call("submit", file))
        return submitted[-1].code == 0

    eventually(taken, lambda: submitted[-1].err)
    ident = submitted[-1].out.strip()
    here.call("wait", ident, "--timeout", LIMIT)
    return ident, here.data("show", ident)


def _nothing_left(lab: Lab) -> None:
    kinds = [kind for kind in KINDS if kind != "computedomains"]
    lab.wait(lambda: not any(lab.objects(kind, selector=OWN) for kind in kinds), 60, "nothing is left")


def test_a_gang_runs_with_its_environment_files_and_hosts_and_its_logs_stay(real: Lab, here: ServiceFixture) -> None:
    files = ", files: [{path: /data/greeting, contents: 'hello {{host:b}}'}], environment: {MINE: $(pwd)}"
    script = "cat /data/greeting; echo; echo $COTERIE_RANK/$COTERIE_WORLD_SIZE on $COTERIE_NODE: $MINE; "
    a = _task("a", script + "echo $COTERIE_DOMAIN_ZONE $COTERIE_DOMAIN_RACK $COTERIE_GPUS", files)
    ident, shown = _ended(here, _flow("train", a.replace("name: a,", "name: a, lead: true,"), _task("b", "sleep 1")))
    assert shown["status"] == "COMPLETED"
    _nothing_left(real)
    node = shown["groups"][0]["tasks"][0]["node"]
    assert node in real.real_nodes
    lines = here.call("logs", f"{ident}/a").out.splitlines()
    assert lines[0].startswith("hello b.train-1-g-")
    assert lines[1] == f"0/2 on {node}: $(pwd)"
    assert lines[2] == "a r1 0"
    assert here.call("logs", f"{ident}/a", "--tail", "1").out.splitlines() == lines[2:]
    assert here.call("logs", f"{ident}/a", "--since", "1h", "--follow").out.splitlines() == lines


def test_a_task_that_fails_says_its_last_words(real: Lab, here: ServiceFixture) -> None:
    _, shown = _ended(here, _flow("fails", _task("t", "echo begin; echo no such dataset; exit 7")))
    assert shown["status"] == "FAILED"
    (task,) = shown["groups"][0]["tasks"]
    assert (task["exit_code"], task["message"]) == (7, "exit code 7 (no such dataset)")
    _nothing_left(real)


def test_a_task_that_the_pod_security_of_its_namespace_forbids_fails_with_its_words(
    real: Lab, here: ServiceFixture
) -> None:
    _, shown = _ended(here, _flow("mounts", _task("t", "true", FORBIDDEN)))
    assert shown["status"] == "FAILED_BACKEND_ERROR"
    (task,) = shown["groups"][0]["tasks"]
    assert 'violates PodSecurity "baseline:latest": hostPath volumes' in task["message"]
    _nothing_left(real)


@pytest.mark.parametrize("here", [SIDECAR], indirect=True)
def test_tasks_of_two_groups_read_each_others_output_with_what_the_pool_gives_to_pods(
    real: Lab, here: ServiceFixture
) -> None:
    script = (
        "id -u; until cat /scratch/note 2>/dev/null; do sleep 0.1; done; echo $TEAM; echo from a > $COTERIE_OUTPUT/x"
    )
    # The first process of a container does not end by SIGTERM unless it says so, and the grace period is long.
    first = (
        _task("a", script).replace("name: a,", "name: a, lead: true,"),
        _task("b", "trap exit TERM; sleep 60 & wait"),
    )
    # Only standard output is compared: a container's two streams are copied side by side, in any order.
    read = "cat {{input:0}}/x; touch {{input:0}}/y 2>&1 || echo may not write; touch {{output}}/y && echo may write"
    ident, shown = _ended(here, _flow("pair", *first, after=_task("c", read, ", inputs: [{task: a}]")))
    assert shown["status"] == "COMPLETED", shown
    assert here.call("logs", f"{ident}/a").out.splitlines()[-3:] == ["1234", "beside", "research"]
    lines = here.call("logs", f"{ident}/c").out.splitlines()
    assert (lines[0], lines[-2:]) == ("from a", ["may not write", "may write"])
    _nothing_left(real)


@dataclass(frozen=True)
class Story:
    """A task, and what becomes of it: its status, exit code and last attempt, the same on every backend that can tell.

    Those that are not `local` cannot be told of processes.
    """

    name: str
    script: str
    status: str
    code: int | None
    attempt: int = 1
    more: str = ""
    image: str = IMAGE
    program: str = "sh"
    local: bool = True


RETRY = ", exitActions: {RESCHEDULE: 3}"
STORIES = (
    Story("succeeds", "env", "COMPLETED", 0, more=", environment: {MINE: $(pwd), COTERIE_RANK: '7'}"),
    Story("fails", "exit 7", "FAILED", 7),
    Story("is-retried", "test $COTERIE_ATTEMPT = 2 || exit 3", "COMPLETED", 0, attempt=2, more=RETRY),
    Story("is-killed", "sleep 100 & kill -9 $!; wait $!", "FAILED", 137),
    # A process has no memory of its own, and no image. At that port no registry answers.
    Story("takes-all-memory", "x=x; while :; do x=$x$x$x; done", "FAILED", 137, local=False),
    Story("misses-its-image", "true", "FAILED_IMAGE_PULL", None, image="127.0.0.1:1/none:1", local=False),
    Story("misses-its-command", "true", "FAILED_START_ERROR", None, program="not-there", local=False),
    Story("ignores-sigterm", "trap '' TERM; while :; do sleep 0.1; done", "FAILED_CANCELED", None),
)
LOCAL = "  here: {scheduler: local, cluster: cluster.yaml}\n"
LOCAL_POOL = f"""\
  local:
    backend: here
    topology_keys: [{{key: zone, label: {ZONE}}}, {{key: rack, label: {RACK}}}]
"""
# Variables that only name a place of the machine or the cluster in which a task runs.
PLACES = ("COTERIE_WORKFLOW", "COTERIE_NODE", "COTERIE_HOSTS", "COTERIE_FILES", "COTERIE_OUTPUT", "COTERIE_GPUS")
# By this the local backend knows its own processes.
MARK = "COTERIE_MARK"


def test_tasks_have_the_same_outcome_as_processes_and_as_pods(real: Lab, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    config = CONFIG.replace("NVLINK", "false").replace("pools:", LOCAL + "pools:") + REAL + LOCAL_POOL
    # Limits are those of the namespace.
    limits = {"limits": [{"type": "Container", "default": {"memory": "96Mi"}}]}
    metadata = {"name": "small", "namespace": "default"}
    real.apply([{"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": limits}])
    with in_process(real, settings(tmp_path, config=config)) as here:
        runs = {
            (story, pool): here.submit(Submission(_told(story).encode(), pool=pool))
            for story in STORIES
            for pool in ("gb200", "local")
            if story.local or pool == "gb200"
        }
        stubborn = [ident for (story, _), ident in runs.items() if story.name == "ignores-sigterm"]
        for ident in stubborn:
            here.running(ident, 1)
            here.service.cancel(ident)
        outcomes = {}
        for (story, pool), ident in runs.items():
            status = here.finished(ident)
            (task,) = here.tasks(ident).values()
            outcomes[story.name, pool] = (status, task["exit_code"], task["attempt"])
        pod, process = (_environment(here, runs[STORIES[0], pool]) for pool in ("gb200", "local"))
        (memory,) = here.tasks(runs[STORIES[4], "gb200"]).values()
        assert memory["message"] == "exit code 137 (out of memory)"
        _nothing_left(real)
    assert outcomes == {(story.name, pool): (story.status, story.code, story.attempt) for story, pool in runs}
    assert pod.keys() == process.keys() - {MARK}
    assert {name for name in pod if name.startswith("COTERIE_DOMAIN_")} == {
        "COTERIE_DOMAIN_ZONE",
        "COTERIE_DOMAIN_RACK",
    }
    assert all(pod[name] and process[name] for name in pod)
    # All nodes are in one zone; the rack is that of the node.
    told = [name for name in pod if name not in (*PLACES, "COTERIE_DOMAIN_RACK")]
    assert {name: pod[name] for name in told} == {name: process[name] for name in told}
    assert len(pod["COTERIE_GPUS"].split(",")) == len(process["COTERIE_GPUS"].split(",")) == 1
    assert len(pod["COTERIE_HOSTS"].split(",")) == len(process["COTERIE_HOSTS"].split(",")) == 1


def _environment(here: KaiService, ident: str) -> dict[str, str]:
    """Return the variables that a task has printed."""
    lines = here.service.log(ident, "t").decode().splitlines()
    return dict(line.split("=", 1) for line in lines if line.startswith(("COTERIE_", "MINE")))


def _told(story: Story) -> str:
    return _flow(story.name, _task("t", story.script, story.more, story.image, story.program))


def test_the_folder_of_a_deleted_workflow_is_removed_from_the_workspace_also_after_a_restart(
    real: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "_AGAIN_S", 1.0)
    volume = real.get("persistentvolumes", "files")
    assert volume
    root = Path(volume["spec"]["hostPath"]["path"]) / "flows"
    found = settings(tmp_path, config=CONFIG + REAL)
    # A folder that its owner may not write to does not stay because of that.
    script = "mkdir $COTERIE_OUTPUT/d; touch $COTERIE_OUTPUT/d/x; chmod 500 $COTERIE_OUTPUT/d"
    names = ("empty", "gone", "stays")
    with in_process(real, found) as here:
        idents = [here.submit(Submission(_flow(name, _task("t", script)).encode())) for name in names]
        assert [here.finished(ident) for ident in idents] == ["COMPLETED"] * 3
        store = here.service.store.identity()
        empty, gone, stays = (root / store / ident for ident in idents)
        # No folder is made for a workflow none of whose pods had a node, not even to be removed.
        never = here.submit(Submission(_flow("never", _task("t", "true", FORBIDDEN)).encode()))
        assert here.finished(never) == "FAILED_BACKEND_ERROR"
        assert list(tmp_path.rglob(f"{never}.json"))
        here.service.delete(never)
        real.wait(lambda: not list(tmp_path.rglob(f"{never}.json")), 120, "the folder is forgotten")
        assert not (root / store / never).exists()
        assert (gone / "g" / "t" / "1" / "d" / "x").exists()
        # The image of a task sees no folder of other workflows, so that of its own stays.
        here.service.delete(idents[0])
        real.wait(lambda: not list(empty.iterdir()), 120, "the folder is empty")
        foreign = gone / "g" / "t" / "foreign"
        foreign.mkdir(mode=0o755)
        (foreign / "file").touch()
        here.service.delete(idents[1])
        told = f"folder flows/{store}/{idents[1]} of the deleted workflow {idents[1]} is still on the volume of files: "
        real.wait(lambda: told in (said := here.problems()) and "ermission denied" in said, 120, "the failure is told")
    shutil.rmtree(foreign)
    trusted = REAL.replace("folder: flows", f"folder: flows, removal_image: {IMAGE!r}")
    with in_process(real, settings(tmp_path, config=CONFIG + trusted)) as here:
        real.wait(lambda: not gone.exists(), 120, "the folder is gone")
        _nothing_left(real)
        assert (stays / "g" / "t" / "1" / "d" / "x").exists()
        here.service.delete(idents[2])
        real.wait(lambda: not stays.exists(), 120, "the other folder is gone")
        _nothing_left(real)
        real.wait(lambda: "is still on the volume" not in here.problems(), 60, "nothing is told any more")


def test_tasks_of_a_node_without_power_run_again_on_another_and_their_pods_are_deleted_by_force(
    real: Lab, tmp_path: Path
) -> None:
    config = CONFIG + REAL
    found = replace(settings(tmp_path, config=config), node_grace_s=1.0, force_s=1.0)
    with in_process(real, found) as here:
        text = _flow("power", _task("a", "sleep 600", ", lead: true"), _task("b", "sleep 600"))
        ident = here.submit(Submission(text.encode()))
        here.running(ident, 2)
        before = {name: one["node"] for name, one in here.tasks(ident).items()}
        failed = real.real_nodes[before["a"]]
        failed.stop()
        try:

            def moved() -> bool:
                return all(
                    one["status"] == "RUNNING" and one["node"] != before["a"] for one in here.tasks(ident).values()
                )

            real.wait(moved, 120, "all tasks run elsewhere")
            assert "ForceDeleted" in [each["kind"] for each in here.events(ident)]
        finally:
            failed.start()
        here.service.cancel(ident, force=True)
        here.finished(ident)
        _nothing_left(real)
