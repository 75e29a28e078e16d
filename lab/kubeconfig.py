"""Kubeconfig files, one user each."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml


def write_kubeconfig(path: Path, url: str, token: str, authority: Path, *, namespace: str = "default") -> None:
    """Write a kubeconfig whose only context, `coterie-lab`, is the server as the user of a token."""
    certificate = base64.b64encode(authority.read_bytes()).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "coterie-lab",
        "clusters": [
            {"name": "coterie-lab", "cluster": {"server": url, "certificate-authority-data": certificate}},
        ],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [
            {"name": "coterie-lab", "context": {"cluster": "coterie-lab", "user": "user", "namespace": namespace}}
        ],
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def read_kubeconfig(path: Path) -> tuple[str, str, str]:
    """Return address, token and certificate of a kubeconfig that `write_kubeconfig` wrote."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    certificate = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return cluster["server"], user["token"], certificate
