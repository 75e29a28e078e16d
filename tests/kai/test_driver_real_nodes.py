"""Tasks that really run on a cluster, through `coterie serve` and `coterie submit`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coterie.service.settings import Submission
from lab import IMAGE, Lab
from tests.cli.command import Done
from tests.cli.service_fixtures import ServiceFixture, serving
from tests.eventually import eventually
from tests.kai.service_on_kai import CLUSTER, CONFIG, KINDS, OWN, add_nodes, settings
from tests.kai.service_on_kai import serving as in_process

pytestmark = pytest.mark.usefixtures("real_nodes_possible")

REAL = "    platforms: {real: {node_selector: {coterie.dev/lab-real: 'true'}}}\n"
RESOURCES = "  resources: {default: {gpu: 1, cpu: 1, memory: 64Mi, platform: real}}\n"
LIMIT = "90s"


@pytest.fixture(scope="module")
def real() -> Iterator[Lab]:
    """Give two real nodes in a rack, and two that KWOK plays in another."""
    with Lab(real_nodes=2, compute_domain=False) as lab:
        add_nodes(lab, CLUSTER)
        yield lab


@pytest.fixture
def here(real: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceFixture]:
    """Give a service in a process of its own, whose only pool is the lab."""
    monkeypatch.setenv("KUBECONFIG", str(real.kubeconfig))
    (tmp_path / "coterie.yaml").write_text(CONFIG.replace("NVLINK", "false") + REAL, encoding="utf-8")
    with serving(tmp_path) as (url, _):
        yield ServiceFixture(url, tmp_path)


def _task(name: str, script: str, more: str = "", image: str = IMAGE) -> str:
    return f"    - {{name: {name}, image: {image}, command: [sh, -c, {script!r}]{more}}}\n"


def _flow(name: str, *tasks: str) -> str:
    return f"workflow:\n  name: {name}\n  groups:\n  - name: g\n    tasks:\n{''.join(tasks)}{RESOURCES}"


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
    a = _task("a", "cat /data/greeting; echo; echo $COTERIE_RANK/$COTERIE_WORLD_SIZE on $COTERIE_NODE: $MINE", files)
    ident, shown = _ended(here, _flow("train", a.replace("name: a,", "name: a, lead: true,"), _task("b", "sleep 1")))
    assert shown["status"] == "COMPLETED"
    _nothing_left(real)
    node = shown["groups"][0]["tasks"][0]["node"]
    assert node in real.real_nodes
    lines = here.call("logs", f"{ident}/a").out.splitlines()
    assert lines[0].startswith("hello b.train-1-g-")
    assert lines[1] == f"0/2 on {node}: $(pwd)"
    assert here.call("logs", f"{ident}/a", "--tail", "1").out.splitlines() == lines[1:]
    assert here.call("logs", f"{ident}/a", "--since", "1h", "--follow").out.splitlines() == lines


def test_a_task_that_fails_says_its_last_words(real: Lab, here: ServiceFixture) -> None:
    _, shown = _ended(here, _flow("fails", _task("t", "echo begin; echo no such dataset; exit 7")))
    assert shown["status"] == "FAILED"
    (task,) = shown["groups"][0]["tasks"]
    assert (task["exit_code"], task["message"]) == (7, "exit code 7 (no such dataset)")
    _nothing_left(real)


def test_a_task_without_its_image_or_its_command_does_not_wait_for_ever(real: Lab, here: ServiceFixture) -> None:
    _, shown = _ended(here, _flow("pull", _task("t", "true", image="example.invalid/none:1")))
    assert shown["status"] == "FAILED_IMAGE_PULL"
    text = _flow("start", _task("t", "true").replace("[sh, ", "[not-there, "))
    _, shown = _ended(here, text)
    assert shown["status"] == "FAILED_START_ERROR"
    _nothing_left(real)


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
