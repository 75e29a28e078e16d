"""The conditions under which a machine can run real nodes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from lab.errors import LabError
from lab.realnodes.cgroups import hierarchies

PACKAGES = "scripts/lab-packages"
_PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr", "runc", "unshare", "nsenter", "busybox")
_PLUGINS = ("bridge", "host-local", "loopback")
_PLUGIN_FOLDERS = (Path("/usr/lib/cni"), Path("/usr/libexec/cni"), Path("/opt/cni/bin"))
_CONTROLLERS = frozenset({"cpu", "cpuset", "memory", "pids", "devices", "freezer"})
# Administrators' programs are not on everybody's PATH.
_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"])


class RealNodesError(LabError):
    """Raised when this machine cannot run real nodes; its text is the first thing that is missing."""


def require() -> None:
    """Return when this machine can run real nodes; raise `RealNodesError` otherwise."""
    if os.geteuid():
        raise RealNodesError(
            "real nodes run containers, which only root may", "Start the lab as root, or without them."
        )
    missing = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
    missing += [f"the network plugin {name}" for name in _PLUGINS if not (plugin_folder() / name).exists()]
    if missing:
        raise RealNodesError(f"real nodes need {', '.join(missing)}", f"Install Debian's packages with: {PACKAGES}")
    if b"ld-linux" in program("busybox").read_bytes()[:4096]:
        raise RealNodesError(
            "real nodes need a busybox that is linked statically", f"Install Debian's packages with: {PACKAGES}"
        )
    if absent := sorted(_CONTROLLERS - {path.name for path in hierarchies()}):
        raise RealNodesError(
            f"real nodes need cgroup version 1, and this machine does not have it for {', '.join(absent)}",
            "Boot with systemd.unified_cgroup_hierarchy=0, or use nodes that KWOK simulates.",
        )
    # S603: the program was found above.
    probe = subprocess.run(  # noqa: S603
        [program("unshare"), "--mount", "--pid", "--fork", "--mount-proc", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode:
        raise RealNodesError(
            f"real nodes need namespaces of their own, and cannot have them here: {probe.stderr.strip()}",
            "Give the container that this runs in more privileges (--privileged), or use nodes that KWOK simulates.",
        )


def program(name: str) -> Path:
    """Return the path of a program that real nodes need."""
    found = shutil.which(name, path=_PATH)
    if found is None:
        raise RealNodesError(f"real nodes need {name}", f"Install Debian's packages with: {PACKAGES}")
    return Path(found)


def plugin_folder() -> Path:
    """Return the folder of the network plugins; that of Debian where there is none."""
    found = [folder for folder in _PLUGIN_FOLDERS if (folder / _PLUGINS[0]).exists()]
    return found[0] if found else _PLUGIN_FOLDERS[0]
