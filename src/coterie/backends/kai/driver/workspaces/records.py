"""Records of the folders that workflows have on workspaces, kept on disk until these folders are removed.

A record has all that the removal needs, so that neither a crash nor another configuration of the pool loses a folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from coterie.backends.base.settings import DriverSettings
from coterie.backends.kai.driver.logs import namespace_of
from coterie.backends.kai.manifests.folder_removal import platform_of, removal_pod
from coterie.backends.kai.manifests.metadata import ManifestContext
from coterie.backends.shared.manifest_text import Manifest
from coterie.backends.shared.names import label_value
from coterie.errors import Unavailable
from coterie.kube.kinds import POD

_FOLDER = "workspaces"
_REPEATED = "The service keeps trying."


@dataclass(frozen=True, slots=True)
class WorkspaceRecord:
    """One folder of a workflow: its pool, the pod that removes it, and the platform of that pod, if any.

    `bound` is whether a pod of the workflow may have had a node: without one, nobody has made the folder.
    """

    pool: str
    pod: Manifest
    platform: str
    bound: bool = True

    @property
    def name(self) -> str:
        """The name of the pod, distinct for every folder."""
        return str(self.pod["metadata"]["name"])


class WorkspaceRecords:
    """The records of one backend and namespace, one file for each workflow."""

    def __init__(self, settings: DriverSettings) -> None:
        self._folder = settings.folder.with_name(_FOLDER) / settings.backend / namespace_of(settings)
        # Labels of workflows of which a pod had a node, and whether their records say so.
        self._bound: dict[str, bool] = {}

    def note(self, scene: ManifestContext, manifests: Iterable[Manifest]) -> None:
        """Keep the folder that the pods among these objects make on the workspace of their pool, before they do."""
        pod = next((each for each in manifests if each["kind"] == POD.name), None)
        if scene.pool.workspace is not None and pod is not None:
            removal = removal_pod(scene, scene.pool.workspace, pod)
            platform = platform_of(pod, scene.pool)
            self.add(scene.workflow, WorkspaceRecord(scene.pool.name, removal, platform, bound=False))

    def add(self, workflow: str, record: WorkspaceRecord) -> None:
        """Keep a record before the folder is made; the first one of a folder stays."""
        found = self.of(workflow)
        if record.name not in {each.name for each in found}:
            self._write(workflow, [*found, record])
            if not record.bound:
                self._bound.pop(label_value(workflow), None)

    def note_bound(self, label: str) -> None:
        """Keep that a pod of a workflow, which is given by its label, had a node.

        What cannot be written is known to this process, and written when the next pod of the workflow is seen.
        """
        if self._bound.get(label):
            return
        self._bound[label] = False
        try:
            workflow = next((each for each in self.workflows() if label_value(each) == label), None)
            if workflow is not None:
                self._write(workflow, self.of(workflow))
        except Unavailable:
            return
        self._bound[label] = True

    def archive(self, workflow: str) -> None:
        """Take note that a workflow has ended, so that no pod of it is seen any more."""
        label = label_value(workflow)
        if self._bound.get(label):
            del self._bound[label]

    def _write(self, workflow: str, records: Iterable[WorkspaceRecord]) -> None:
        path = self._path(workflow)
        draft = path.with_suffix(".draft")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with draft.open("w", encoding="utf-8") as file:
                json.dump([asdict(each) for each in records], file)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except OSError as error:
            said = f"the folder of {workflow} on its workspace cannot be recorded: {error}"
            raise Unavailable(said, _REPEATED) from error

    def of(self, workflow: str) -> list[WorkspaceRecord]:
        """Return the records of a workflow, or raise `Unavailable` where they cannot be read."""
        path, said = self._path(workflow), f"the record of the folder of {workflow} on its workspace cannot be read"
        try:
            found = [WorkspaceRecord(**each) for each in json.loads(path.read_text(encoding="utf-8"))]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Unavailable(f"{said}: {error}", _REPEATED) from error
        except (ValueError, TypeError) as error:
            told = f"{said}: {path} is damaged ({error}); remove that file, and then the folder by hand"
            raise Unavailable(told, _REPEATED) from error
        known = label_value(workflow) in self._bound
        return [replace(each, bound=each.bound or known) for each in found]

    def workflows(self) -> set[str]:
        """Return the workflows of which there are records, or raise `Unavailable` where they cannot be listed."""
        try:
            return {each.stem for each in self._folder.iterdir() if each.suffix == ".json"}
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise Unavailable(f"the records of folders on workspaces cannot be listed: {error}", _REPEATED) from error

    def forget(self, workflow: str) -> None:
        """Remove the records of a workflow, whose folders are gone, or raise `Unavailable`."""
        try:
            self._path(workflow).unlink(missing_ok=True)
            self._bound.pop(label_value(workflow), None)
        except OSError as error:
            said = f"the record of the folder of {workflow}, which is gone, cannot be removed: {error}"
            raise Unavailable(said, _REPEATED) from error

    def _path(self, workflow: str) -> Path:
        return self._folder / f"{workflow}.json"
