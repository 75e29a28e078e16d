"""docs/lab.md shows the lab's real output."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from lab.programs.build import build, cache_folder
from lab.programs.components import KUBERNETES

from coterie.planning.inputs import read_snapshot
from lab import EXIT_CODE, RUNS_FOR, Lab, nodes
from tests.lab.lab_guard import ROOT, guarded

DOCUMENT = ROOT / "docs" / "lab.md"
_CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Give a function that runs a line of the document at the root of the repository, and returns what it prints."""
    kubectl = build([KUBERNETES])["kubernetes"]
    home = {str(tmp_path): "~", str(cache_folder().parent.parent): "~/.cache", kubectl.name: "kubernetes-…"}
    state = tmp_path / ".local" / "state"
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), str(kubectl), os.environ["PATH"]]),
        "XDG_STATE_HOME": str(state),
        "KUBECONFIG": str(state / "coterie" / "lab" / "lab" / "run" / "kubeconfig"),
        "KUBECACHEDIR": str(tmp_path / "kubectl-cache"),
        "PYTHONUTF8": "1",
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }

    def run(line: str) -> str:
        command = ["bash", "-c", line]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        said = done.stdout
        for real, shown in home.items():
            said = said.replace(real, shown)
        return said

    with guarded(state):
        yield run


def _check(shell: Callable[[str], str], number: int, *, rewrite: bool) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    block = _CONSOLE.findall(text)[number]
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", block, re.MULTILINE)
    real = "".join(f"$ {command}\n{shell(command)}" for command in commands)
    if rewrite:
        DOCUMENT.write_text(text.replace(block, real), encoding="utf-8")
    else:
        assert block == real, "\n".join(unified_diff(block.splitlines(), real.splitlines(), lineterm="", n=1))


def test_the_commands_print_what_the_page_shows(shell: Callable[[str], str], *, rewrite: bool) -> None:
    _check(shell, 0, rewrite=rewrite)


@pytest.mark.usefixtures("real_nodes_possible")
def test_a_gang_really_runs_as_the_page_shows(shell: Callable[[str], str], *, rewrite: bool) -> None:
    _check(shell, 1, rewrite=rewrite)


def worker(gang: str, *, runs_for: str, exit_code: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "worker",
            "labels": {"kai.scheduler/queue": "default"},
            "annotations": {"pod-group-name": gang, RUNS_FOR: runs_for, EXIT_CODE: exit_code},
        },
        "spec": {
            "schedulerName": "kai-scheduler",
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "work"}],
        },
    }


def ended(lab: Lab, name: str) -> dict[str, Any]:
    pod = lab.get("pod", name) or {}
    return pod if pod["status"]["phase"] in {"Succeeded", "Failed"} else {}


def test_a_pod_that_fails_is_seen(lab: Lab) -> None:
    nodes.add(lab, read_snapshot(b"nodes: [{name: n1, gpu: 8}]", "cluster.yaml"))
    lab.queue("default")
    group = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": "job"}}
    lab.apply([{**group, "spec": {"queue": "default", "minMember": 1}}, worker("job", runs_for="1s", exit_code="3")])
    pod = lab.wait(lambda: ended(lab, "worker"), timeout=20, what="the worker ends")
    assert pod["spec"]["nodeName"] == "n1"
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


def test_the_test_on_the_page_is_one_that_runs() -> None:
    assert f"```python\n{inspect.getsource(test_a_pod_that_fails_is_seen)}```" in DOCUMENT.read_text(encoding="utf-8")
