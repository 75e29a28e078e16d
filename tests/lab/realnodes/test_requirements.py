"""The error of a machine that cannot run real nodes is one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from lab.realnodes.requirements import RealNodesError, require

from lab import Lab
from lab.realnodes import requirements

pytestmark = pytest.mark.usefixtures("real_nodes_possible")


def test_only_root_may_run_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(RealNodesError, match="only root may"):
        require()


def test_programs_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(requirements, "_PATH", str(tmp_path))
    monkeypatch.setattr(requirements, "_PLUGIN_FOLDERS", (tmp_path,))
    with pytest.raises(RealNodesError) as raised:
        require()
    assert "containerd, containerd-shim-runc-v2, ctr, runc" in str(raised.value)
    assert "the network plugin bridge" in str(raised.value)
    assert raised.value.hint == "Install Debian's packages with: scripts/lab-packages"


def test_a_busybox_that_needs_libraries_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    dynamic = tmp_path / "busybox"
    dynamic.write_bytes(b"\x7fELF /lib64/ld-linux-x86-64.so.2")
    monkeypatch.setattr(requirements, "program", lambda _: dynamic)
    with pytest.raises(RealNodesError, match="linked statically"):
        require()


def test_a_machine_without_cgroup_version_1_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "hierarchies", list)
    with pytest.raises(RealNodesError, match="need cgroup version 1, and this machine does not have it for cpu, "):
        require()


def test_a_lab_without_real_nodes_is_not_affected(
    monkeypatch: pytest.MonkeyPatch, make_lab: Callable[..., Lab]
) -> None:
    monkeypatch.setattr(requirements, "hierarchies", list)
    lab = make_lab(schedulers=(), compute_domain=False)
    assert lab.objects("nodes") == []
