"""`python -m lab` as its users call it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lab.process import started_at

from tests.lab.lab_guard import ROOT, guarded

CLUSTER = """
nodes:
- {name: n1, gpu: 8}
- {name: n2, gpu: 8}
pods: [{name: p1, node: n1, gpu: 4}]
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "TMPDIR": str(tmp_path)}

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "lab", *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    with guarded(tmp_path / "state"):
        yield call


def _record(tmp_path: Path, name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((tmp_path / "state/coterie/lab" / name / "lab.json").read_text("utf-8"))
    return found


def test_a_lab_outlives_its_command_until_it_is_ended(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(CLUSTER, encoding="utf-8")
    up = run("up", "--cluster", str(cluster), "--name", "mine")
    assert up.returncode == 0, up.stderr
    kubeconfig = tmp_path / "state/coterie/lab/mine/run/kubeconfig"
    assert up.stdout.splitlines()[:2] == [
        'lab "mine" is running: 2 nodes, 1 pod',
        f"  export KUBECONFIG={kubeconfig}",
    ]
    kubectl = up.stdout.splitlines()[2].removeprefix("  kubectl: ")
    listed = subprocess.run(
        [kubectl, "get", "nodes", "-o", "name", f"--kubeconfig={kubeconfig}", f"--cache-dir={tmp_path}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout.split() == ["node/n1", "node/n2"]
    assert run("status").stdout == up.stdout

    again = run("up", "--name", "mine")
    assert again.returncode == 1
    assert again.stderr.startswith('error: there is a lab "mine" already, and it is running\nhint: ')

    processes = _record(tmp_path, "mine")["processes"]
    assert isinstance(processes, list)
    kwok = next(process for process in processes if process["name"] == "kwok")
    os.kill(kwok["pid"], signal.SIGKILL)
    broken = run("status", "--name", "mine")
    assert broken.returncode == 1
    assert broken.stdout.startswith('lab "mine" is broken\n  gone: kwok\n')

    down = run("down", "--name", "mine")
    assert down.stdout == f'lab "mine" is gone: {len(processes) - 1} programs ended\n'
    assert not kubeconfig.exists()
    assert all(started_at(process["pid"]) != process["mark"] for process in processes)
    assert run("status").stdout.startswith("no lab is running")


def test_a_lab_that_cannot_start_leaves_its_logs_only(run: Run, tmp_path: Path) -> None:
    up = run("up", "--kai-actions", "no-such-action")
    assert up.returncode == 1
    assert up.stderr.startswith("error: kai-scheduler ended")
    assert "hint: The logs are in " in up.stderr
    assert not list((tmp_path / "state/coterie/lab").iterdir())


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("down", "--name", "other"), 4, 'error: there is no lab "other"\nhint: None was started.\n'),
        (("status", "--name", "../.."), 4, 'error: there is no lab "../.."'),
        (("up", "--name", "Not Good"), 1, 'error: "Not Good" cannot be the name of a lab\nhint: '),
        (("up", "--schedulers", "kai,volcano"), 1, 'error: the lab has no scheduler "volcano"\nhint: It has kai and '),
        (("up", "--cluster", "no-such-file.yaml"), 4, "error: there is no file no-such-file.yaml\nhint: "),
    ],
)
def test_wrong_calls_are_told_in_a_line_with_a_hint(run: Run, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = run(*arguments)
    assert done.returncode == code
    assert done.stderr.startswith(said)
    assert "Traceback" not in done.stderr


def test_a_file_that_no_api_server_takes_is_an_error(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("nodes: [{name: Upper}]", encoding="utf-8")
    up = run("up", "--cluster", str(cluster))
    assert up.returncode == 1
    assert "error: the API server refuses the cluster: " in up.stderr
    assert "lower case" in up.stderr
    assert not list((tmp_path / "state/coterie/lab").iterdir())
