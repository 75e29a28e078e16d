"""The image of the lab: a shell and the usual small tools, all of them one busybox, without any registry."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from lab.errors import LabError

IMAGE = "coterie.dev/lab:1"
PAUSE_IMAGE = "coterie.dev/lab-pause:1"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_PASSWD = "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"  # noqa: S105 - no password
# Scripts that are written for bash mostly need no more than a shell.
_BASH = '#!/bin/sh\nexec sh "$@"\n'


def write_images(busybox: Path, target: Path) -> None:
    """Write an archive with the lab's image and with the one that holds the namespaces of a pod."""
    layer = _layer(busybox)
    images = {
        IMAGE: _config(layer, ["sh"]),
        PAUSE_IMAGE: _config(layer, ["sleep", "2147483647"]),
    }
    manifest = [
        {"Config": _named(config), "RepoTags": [name], "Layers": ["layer.tar"]} for name, config in images.items()
    ]
    with tarfile.open(target, "w") as archive:
        _add(archive, "layer.tar", layer)
        for config in images.values():
            _add(archive, _named(config), config)
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def _layer(busybox: Path) -> bytes:
    # S603: the program that the image is made of.
    tools = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()  # noqa: S603
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as layer:
        for folder, mode in (("bin", 0o755), ("etc", 0o755), ("tmp", 0o1777)):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            layer.addfile(entry)
        _add(layer, "bin/busybox", busybox.read_bytes(), 0o755)
        for tool in tools:
            if tool not in {"busybox", "bash"}:
                link = tarfile.TarInfo(f"bin/{tool}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                layer.addfile(link)
        _add(layer, "bin/bash", _BASH.encode(), 0o755)
        _add(layer, "etc/passwd", _PASSWD.encode())
    return content.getvalue()


def _config(layer: bytes, command: list[str]) -> bytes:
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise LabError(f"the lab makes no images for {machine}", "Use a machine with x86_64 or aarch64.")
    document: dict[str, Any] = {
        "architecture": _ARCHITECTURES[machine],
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": command},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    return json.dumps(document).encode()


def _named(config: bytes) -> str:
    return f"{hashlib.sha256(config).hexdigest()}.json"


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))
