"""The folders of tasks on the workspace of a pool: one for each attempt, which later tasks read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.backends.shared.manifest_text import Manifest
from coterie.errors import Fault
from coterie.frontends.workflow.rules import WorkflowTask
from coterie.frontends.workflow.tokens import INPUT, OUTPUT

VOLUME = "workspace"


class AttemptFolders:
    """The folders of a workflow's attempts; `groups` has the group of each task, `attempts` those that are read."""

    def __init__(
        self, scene: ManifestContext, groups: Mapping[str, str], attempts: Mapping[str, int], attempt: int
    ) -> None:
        self._scene, self._groups, self._attempts, self._attempt = scene, groups, attempts, attempt

    def volumes(self, member: WorkflowTask) -> tuple[list[Manifest], list[Manifest]]:
        """Return the volume and the mounts of a task: its output, and what the tasks before it have written."""
        workspace = self._scene.pool.workspace
        if workspace is None:
            return [], []
        volume = {"name": VOLUME, "persistentVolumeClaim": {"claimName": workspace.claim}}
        return [volume], list(self._mounts(workspace.folder, member))

    def _mounts(self, root: str, member: WorkflowTask) -> Iterator[Manifest]:
        yield {"name": VOLUME, "mountPath": OUTPUT, "subPath": self._path(root, member.name, self._attempt)}
        for number, entry in enumerate(member.spec.inputs):
            if entry.task is not None and entry.task in self._groups:
                path = self._path(root, entry.task, self._attempts.get(entry.task, self._attempt))
                yield {"name": VOLUME, "mountPath": f"{INPUT}/{number}", "subPath": path, "readOnly": True}

    def _path(self, root: str, task: str, attempt: int) -> str:
        parts = (service_folder(self._scene, root), self._scene.workflow_id, self._groups[task], task, str(attempt))
        return "/".join(parts)


def service_folder(scene: ManifestContext, root: str) -> str:
    """Return the folder of a volume that has one folder for each workflow of a service."""
    return f"{root}/{scene.store or scene.namespace}"


def missing_workspace_faults(folders: Sequence[tuple[WorkflowTask, str]], pool: str) -> Iterator[Fault]:
    """Yield the folders of tasks that would be lost with their pods, or arrive empty, in a pool without a workspace."""
    for member, folder in folders:
        token = "{{output}}" if folder == OUTPUT else f"{{{{input:{folder.rpartition('/')[2]}}}}}"
        yield Fault(
            f'task "{member.name}" uses {token}, but pool "{pool}" has no workspace that its pods could share',
            path=(*member.path, "name"),
            hint="Choose a pool with a workspace, or write to a volume that all nodes have "
            "(volumeMounts: [/data:/data]).",
        )
