"""Real nodes leave nothing behind, however their lab ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab.folders import new_folder
from lab.process import started_at
from lab.state import find_record

from lab.realnodes import cgroups, leftovers, network
from tests.eventually import eventually
from tests.lab.lab_guard import ROOT, guarded

pytestmark = pytest.mark.usefixtures("real_nodes_possible")

CLUSTER = "nodes: [{name: n1}]\npods: [{name: p1, node: n1}]\n"
_LAB = f"""
import sys
from coterie.planning.inputs import read_snapshot
from lab import Lab, nodes

with Lab(real_nodes=1, schedulers=(), compute_domain=False) as lab:
    nodes.add(lab, read_snapshot({CLUSTER.encode()!r}, "cluster.yaml"))
    print(lab.folder, flush=True)
    sys.stdin.readline()
"""
_KINDS = ("pid", "mnt", "net")


@dataclass(frozen=True)
class Traces:
    """The processes and mounts of a lab with real nodes on its machine."""

    folder: Path
    # With the time at which each began: the kernel gives the numbers of processes and of namespaces away again.
    processes: frozenset[tuple[str, str]]

    @staticmethod
    def of(folder: Path) -> Traces:
        """Return the traces of a lab that runs: the processes are those in namespaces that were made for it."""
        elsewhere = {"", *(_link("self", kind) for kind in _KINDS)}
        pids = _pids()
        namespaces = {_link(pid, kind) for pid in pids if str(folder).encode() in _mounts(pid) for kind in _KINDS}
        inside = [pid for pid in pids if {_link(pid, kind) for kind in _KINDS} & (namespaces - elsewhere)]
        return Traces(folder, frozenset((pid, str(started_at(int(pid)))) for pid in inside))

    def left(self) -> dict[str, list[str]]:
        """Return what is still there, by its kind."""
        pids = _pids()
        found = {
            "processes": [pid for pid in pids if (pid, str(started_at(int(pid)))) in self.processes],
            "guards": [pid for pid in pids if _guards(pid, self.folder)],
            "groups": [str(group) for group in cgroups.groups(leftovers.cgroup_prefix(self.folder))],
            "devices": network.devices(leftovers.identity(self.folder)),
            "mounts": [pid for pid in pids if str(self.folder).encode() in _mounts(pid)],
            "files": [str(self.folder)] if self.folder.exists() else [],
        }
        return {kind: things for kind, things in found.items() if things}


def _pids() -> list[str]:
    """Return all processes but those that have ended, which whoever inherited them forgets at leisure."""
    names = os.listdir("/proc")  # noqa: PTH208 - names are all that is wanted
    return [name for name in names if name.isdigit() and started_at(int(name))]


def _link(pid: str, kind: str) -> str:
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/{kind}")  # noqa: PTH115 - it is no path
    return ""


def _mounts(pid: str) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/mountinfo").read_bytes()
    return b""


def _guards(pid: str, folder: Path) -> bool:
    with suppress(OSError):
        return f"lab.realnodes.leftovers\0{folder}\0".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _nothing_left(traces: Traces) -> None:
    eventually(lambda: not traces.left(), traces.left)


@contextmanager
def _running(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Traces]]:
    with subprocess.Popen(
        [sys.executable, "-c", _LAB],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        traces = Traces.of(Path(child.stdout.readline().strip()))
        seen = traces.left()
        assert seen.keys() == {"processes", "guards", "groups", "devices", "mounts", "files"}
        # The node's first process, containerd, kubelet, and for the pod a shim, the pause container and its own.
        assert len(seen["processes"]) >= 6
        assert len(seen["devices"]) == 2
        yield child, traces


def test_a_lab_that_stops_leaves_nothing(tmp_path: Path) -> None:
    with _running(tmp_path) as (child, traces):
        child.communicate("stop\n")
        assert child.returncode == 0
        assert traces.left() == {}


def test_a_run_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    with _running(tmp_path) as (child, traces):
        child.kill()
    _nothing_left(traces)


def test_what_nobody_could_remove_is_removed_by_the_next_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _running(tmp_path) as (child, traces):
        for pid in traces.left()["guards"]:
            os.kill(int(pid), signal.SIGKILL)
        child.kill()
    assert traces.left()["groups"]
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    new_folder()
    _nothing_left(traces)


@pytest.mark.parametrize("killed", [False, True])
def test_a_lab_of_a_command_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, killed: bool) -> None:
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    (tmp_path / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run
    command = [sys.executable, "-m", "lab"]
    with guarded(state):
        up = [*command, "up", "--real-nodes", "1", "--cluster", str(tmp_path / "cluster.yaml")]
        done = run(up, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        record = find_record("lab")
        assert record is not None
        traces = Traces.of(record.kubeconfig.parent)
        assert traces.left().keys() == {"processes", "groups", "devices", "mounts", "files"}
        if killed:
            for process in record.processes:
                os.kill(process.pid, signal.SIGKILL)
        done = run([*command, "down"], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        _nothing_left(traces)
