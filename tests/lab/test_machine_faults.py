"""Machines on which something is missing or in the way: reported in one line, or worked around."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from lab.ports import Ports

from lab import Lab, LabError
from tests.lab.lab_guard import ROOT
from tests.service.faults import small_disk


def _packages(tmp_path: Path, *present: str) -> subprocess.CompletedProcess[str]:
    """Run the script that installs packages where only some programs are there, and nobody is root."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "env"):
        (tools / name).symlink_to(str(shutil.which(name)))
    for name in present:
        (tools / name).write_text("#!/bin/sh\necho 1000\n", encoding="utf-8")
        (tools / name).chmod(0o755)
    return subprocess.run(
        ["bash", ROOT / "scripts" / "lab-packages"],  # noqa: S607 - the one of the tools
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_packages_cannot_be_installed_without_apt(tmp_path: Path) -> None:
    done = _packages(tmp_path, "id")
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is no apt-get to install containerd runc ")
    assert "\nhint: " in done.stderr


def test_packages_cannot_be_installed_without_root(tmp_path: Path) -> None:
    done = _packages(tmp_path, "id", "apt-get", "dpkg-query")
    assert done.returncode == 1
    assert done.stderr == (
        "error: only root can install containerd runc containernetworking-plugins busybox-static\n"
        "hint: sudo scripts/lab-packages\n"
    )


def test_ports_that_others_have_are_not_taken() -> None:
    with socket.socket() as taken, socket.socket() as other:
        taken.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        free = other.getsockname()[1]
        other.close()
        ports = Ports([taken.getsockname()[1], free])
        assert ports.take() == free
        with pytest.raises(LabError, match=r"every port .* is taken"):
            ports.take()
        ports.release()


def test_two_labs_do_not_take_the_same_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not one that the kernel gives to anybody who asks for any.
    found = Ports()
    port = found.take()
    found.release()
    first = Ports([port])
    # Nor do those of other users, who have folders of their own.
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path))
    second, third = Ports([port]), Ports([port])
    assert first.take() == port
    with pytest.raises(LabError):
        second.take()
    first.release()
    assert third.take() == port
    third.release()


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        lab = Lab(schedulers=(), compute_domain=False, folder=disk.folder / "lab")
        disk.fill()
        with pytest.raises(LabError, match="No space left on device"):
            lab.start()
        assert not any(program.running for program in lab.programs.values())


@pytest.mark.parametrize("filled", [True, False], ids=["full", "small"])
def test_a_command_tells_of_a_full_disk_in_a_line_and_leaves_nothing(tmp_path: Path, *, filled: bool) -> None:
    with small_disk(tmp_path / "disk") as disk:
        if filled:
            disk.fill(leaving=1)
        done = subprocess.run(
            [sys.executable, "-m", "lab", "up"],
            cwd=ROOT,
            env={**os.environ, "XDG_STATE_HOME": str(disk.folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        error, hint = done.stderr.splitlines()
        assert error.startswith(f"error: the lab cannot be started in {disk.folder}/")
        assert error.endswith(": No space left on device")
        assert "room for about 200 MB" in hint
        assert not list((disk.folder / "coterie" / "lab").glob("*"))


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    lab = Lab(schedulers=(), compute_domain=False, folder=tmp_path / "file" / "lab")
    with pytest.raises(LabError, match=r"the lab cannot be started in .*: Not a directory"):
        lab.start()
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208 - names are all that is wanted
