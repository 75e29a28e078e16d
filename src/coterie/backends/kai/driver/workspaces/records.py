"""Records of the folders that workflows have on workspaces, kept on disk until these folders are removed.

A record has all that the removal needs, so that neither a crash nor another configuration of the pool loses a folder.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from coterie.backends.base.settings import DriverSettings
from coterie.backends.kai.driver.logs import namespace_of
from coterie.backends.shared.manifest_text import Manifest
from coterie.errors import Unavailable

_FOLDER = "workspaces"


@dataclass(frozen=True, slots=True)
class WorkspaceRecord:
    """One folder of a workflow: its pool, and the pod that removes it."""

    pool: str
    pod: Manifest

    @property
    def name(self) -> str:
        """The name of the pod, distinct for every folder."""
        return str(self.pod["metadata"]["name"])


class WorkspaceRecords:
    """The records of one backend and namespace, one file for each workflow."""

    def __init__(self, settings: DriverSettings) -> None:
        self._folder = settings.folder.with_name(_FOLDER) / settings.backend / namespace_of(settings)

    def add(self, workflow: str, record: WorkspaceRecord) -> None:
        """Keep a record before the folder is made; the first one of a folder stays."""
        found = self.of(workflow)
        if record.name not in {each.name for each in found}:
            path = self._path(workflow)
            draft = path.with_suffix(".draft")
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                draft.write_text(json.dumps([{"pool": each.pool, "pod": each.pod} for each in (*found, record)]))
                draft.replace(path)
            except OSError as error:
                hint = "The service keeps trying."
                raise Unavailable(
                    f"the folder of {workflow} on its workspace cannot be recorded: {error}", hint
                ) from error

    def of(self, workflow: str) -> list[WorkspaceRecord]:
        """Return the records of a workflow, none where they cannot be read."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            found = json.loads(self._path(workflow).read_text())
            return [WorkspaceRecord(each["pool"], each["pod"]) for each in found]
        return []

    def workflows(self) -> set[str]:
        """Return the workflows of which there are records."""
        with suppress(FileNotFoundError):
            return {each.stem for each in self._folder.iterdir() if each.suffix == ".json"}
        return set()

    def forget(self, workflow: str) -> None:
        """Remove the records of a workflow, whose folders are gone."""
        self._path(workflow).unlink(missing_ok=True)

    def _path(self, workflow: str) -> Path:
        return self._folder / f"{workflow}.json"
