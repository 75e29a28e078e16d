"""containerd, which runs the containers of one node."""

from __future__ import annotations

import json
from pathlib import Path

from lab.realnodes import network
from lab.realnodes.image import PAUSE_IMAGE
from lab.realnodes.requirements import plugin_folder

# Inside the namespaces of a node: every node has this path to itself.
SOCKET = "/run/containerd/containerd.sock"
# Kinds of storage that no node needs; containerd complains about each that it does not find.
_UNUSED = ("aufs", "btrfs", "devmapper", "zfs")


def write_configuration(folder: Path, identity: str, index: int) -> Path:
    """Write the configuration of a node's containerd, and return the file."""
    plugins = folder / "network"
    plugins.mkdir(parents=True, exist_ok=True)
    (plugins / "pods.conflist").write_text(network.configuration(identity, index, folder / "addresses"), "utf-8")
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    lines = [
        "version = 2",
        f"root = {_text(folder / 'containerd')}",
        'state = "/run/containerd/state"',
        f"disabled_plugins = {json.dumps([f'io.containerd.snapshotter.v1.{kind}' for kind in _UNUSED])}",
        "[grpc]",
        f"address = {_text(SOCKET)}",
        f"[{cri}]",
        f"sandbox_image = {_text(PAUSE_IMAGE)}",
        # Containers are not made less likely to be killed than this process is, which not every root may do.
        "restrict_oom_score_adj = true",
        # Where the network namespaces of pods are mounted, and go with the node.
        "netns_mounts_under_state_dir = true",
        'stream_server_address = "127.0.0.1"',
        f"[{cri}.cni]",
        f"bin_dir = {_text(plugin_folder())}",
        f"conf_dir = {_text(plugins)}",
    ]
    file = folder / "containerd.toml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def _text(value: object) -> str:
    return json.dumps(str(value))
