"""The files of a task: texts in a ConfigMap, everything else in a Secret, each mounted at its own path.

Tasks of a group that have the same files share the objects, which are named after their content.
"""

from __future__ import annotations

import base64
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.backends.shared.manifest_text import Manifest
from coterie.errors import Fault
from coterie.frontends.workflow.tokens import TokenReplacement

# The size limit of one ConfigMap or Secret.
MOST_BYTES = 1 << 20
_MODE = 0o755
_KEY = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(slots=True)
class FileObjects:
    """The ConfigMaps and Secrets of one group, by name."""

    scene: ManifestContext
    group: str
    manifests: dict[str, Manifest] = field(default_factory=dict)

    def put(
        self, files: Sequence[tuple[str, str | bytes]], filling: TokenReplacement
    ) -> tuple[list[Manifest], list[Manifest]]:
        """Add the files of a task, by path; return the volumes and the mounts that its pod needs.

        Files that are too large for the objects are reported as faults in `filling`.
        """
        self._weigh(sum(_size(content) for _, content in files), filling)
        volumes: list[Manifest] = []
        mounts: list[Manifest] = []
        for kind, wanted in (("ConfigMap", str), ("Secret", bytes)):
            chosen = [(path, content) for path, content in files if isinstance(content, wanted)]
            if chosen:
                keys = {
                    path: f"{index}-{_KEY.sub('-', posixpath.basename(path))[-200:]}"
                    for index, (path, _) in enumerate(chosen)
                }
                name = self._object(kind, {keys[path]: content for path, content in chosen})
                volume = "files" if kind == "ConfigMap" else "binary-files"
                source = {"configMap": {"name": name, "defaultMode": _MODE}}
                if kind == "Secret":
                    source = {"secret": {"secretName": name, "defaultMode": _MODE}}
                volumes.append({"name": volume, **source})
                mounts += [{"name": volume, "mountPath": path, "subPath": keys[path]} for path, _ in chosen]
        return volumes, mounts

    def _weigh(self, size: int, filling: TokenReplacement) -> None:
        if size > MOST_BYTES:
            member = filling.member
            message = f'the files of task "{member.name}" have {size:,} bytes, and Kubernetes takes {MOST_BYTES:,}'
            hint = "Put large files into the image, or onto a volume of the nodes (volumeMounts)."
            filling.faults.append(Fault(message, path=(*member.path, "files"), hint=hint))

    def _object(self, kind: str, contents: Mapping[str, str | bytes]) -> str:
        data = {
            key: content if isinstance(content, str) else base64.b64encode(content).decode()
            for key, content in contents.items()
        }
        held = [text for item in data.items() for text in item]
        name = self.scene.files(self.group, kind, held)
        self.manifests[name] = {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": self.scene.metadata(name, self.group),
            "data": data,
        }
        return name


def _size(content: str | bytes) -> int:
    return len(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
