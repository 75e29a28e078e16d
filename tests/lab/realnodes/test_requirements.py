"""The error of a machine that cannot run real nodes is one line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from lab.realnodes.requirements import RealNodesError, require

from lab import Lab
from lab.realnodes import requirements
from tests.cgroup_2 import on_cgroup_2
from tests.lab.lab_guard import ROOT

needs_real_nodes = pytest.mark.usefixtures("real_nodes_possible")


def test_only_root_may_run_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(RealNodesError, match="only root may"):
        require()


@needs_real_nodes
def test_programs_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(requirements, "_PATH", str(tmp_path))
    monkeypatch.setattr(requirements, "_PLUGIN_FOLDERS", (tmp_path,))
    with pytest.raises(RealNodesError) as raised:
        require()
    assert "containerd, containerd-shim-runc-v2, ctr, runc" in str(raised.value)
    assert "the network plugin bridge" in str(raised.value)
    assert raised.value.hint == "Install Debian's packages with: scripts/lab-packages"


@needs_real_nodes
def test_a_busybox_that_needs_libraries_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    dynamic = tmp_path / "busybox"
    dynamic.write_bytes(b"\x7fELF /lib64/ld-linux-x86-64.so.2")
    monkeypatch.setattr(requirements, "program", lambda _: dynamic)
    with pytest.raises(RealNodesError, match="linked statically"):
        require()


@needs_real_nodes
def test_a_kernel_with_cgroup_2_is_told_in_a_line(tmp_path: Path) -> None:
    done = subprocess.run(
        on_cgroup_2(sys.executable, "-m", "lab", "up", "--real-nodes", "1"),
        cwd=ROOT,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "error: real nodes need cgroup version 1, "
        "and this machine does not have it for cpu, cpuset, devices, freezer, memory, pids\n"
        "hint: Boot with systemd.unified_cgroup_hierarchy=0, or use nodes that KWOK simulates.\n"
    )
    assert not list(tmp_path.iterdir())


def test_a_lab_without_real_nodes_is_not_affected(
    monkeypatch: pytest.MonkeyPatch, make_lab: Callable[..., Lab]
) -> None:
    monkeypatch.setattr(requirements, "hierarchies", list)
    lab = make_lab(schedulers=(), compute_domain=False)
    assert lab.objects("nodes") == []
