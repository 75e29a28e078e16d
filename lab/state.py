"""Records of labs that outlive the command which started them, with their programs."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from coterie.errors import NotFound, did_you_mean
from lab.errors import LabError, start_failure
from lab.process import Program, end_group, started_at
from lab.realnodes import leftovers

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_FILE = "lab.json"


@dataclass(slots=True)
class Process:
    """A program that was started: its id, and the mark that tells it from a later process with the same id."""

    name: str
    pid: int
    mark: str

    @property
    def running(self) -> bool:
        """Whether it is still that process."""
        return started_at(self.pid) == self.mark


@dataclass(slots=True)
class Record:
    """The stored facts about a lab; `complete` once everything was started."""

    name: str
    folder: str
    cluster: str = ""
    kubectl: str = ""
    complete: bool = False
    processes: list[Process] = field(default_factory=list)

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the user who may do anything."""
        return Path(self.folder) / "run" / "kubeconfig"

    @property
    def missing(self) -> list[str]:
        """Programs that were started and are not there any more."""
        return [process.name for process in self.processes if not process.running]

    @property
    def condition(self) -> str:
        """`running`; `starting` while it is not complete; `broken` when a part is gone; `dead` when all are."""
        missing = self.missing
        if len(missing) == len(self.processes):
            return "dead"
        if missing:
            return "broken"
        return "running" if self.complete else "starting"

    def add(self, program: Program) -> None:
        """Remember a program that was just started."""
        self.processes.append(Process(program.name, program.pid, started_at(program.pid) or ""))
        self.write()

    def write(self) -> None:
        """Keep the record, whole or not at all."""
        target = Path(self.folder) / _FILE
        scratch = target.with_suffix(".new")
        scratch.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        scratch.replace(target)

    def end_programs(self, names: Collection[str]) -> bool:
        """End some programs, and forget them; return whether any of them ran."""
        chosen = [process for process in self.processes if process.name in names]
        ended = [end_group(process.pid, process.mark) for process in reversed(chosen)]
        self.processes = [process for process in self.processes if process.name not in names]
        self.write()
        return any(ended)

    def end(self) -> list[str]:
        """End exactly the programs that are remembered, forget the lab, and return the names of those that ran."""
        ended = [process.name for process in reversed(self.processes) if end_group(process.pid, process.mark)]
        leftovers.remove(self.kubeconfig.parent)
        _remove(Path(self.folder))
        return ended


def _remove(folder: Path) -> None:
    """Remove a folder that another command may be removing as well."""
    while folder.exists():
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)


def state_folder() -> Path:
    """Return the folder of all records: `coterie/lab` in the user's state folder."""
    shared = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(shared) / "coterie" / "lab"


def new_record(name: str) -> Record:
    """Return the record of a lab that is about to be started; raise `LabError` when there is one of that name."""
    if not _NAME.fullmatch(name):
        raise LabError(
            f'"{name}" cannot be the name of a lab', "Use 1 to 32 lower case letters, digits and dashes, as in lab-2."
        )
    folder = state_folder() / name
    try:
        folder.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        found = find_record(name)
        state = found.condition if found else "half made"
        raise LabError(
            f'there is a lab "{name}" already, and it is {state}',
            f"End it first (scripts/lab down --name {name}), or choose another with --name.",
        ) from None
    except OSError as error:
        raise start_failure(folder, error) from None
    record = Record(name, str(folder))
    try:
        record.write()
    except OSError as error:
        _remove(folder)
        raise start_failure(folder, error) from None
    return record


def find_record(name: str) -> Record | None:
    """Return the record of a lab, or None when there is none; a record that cannot be read remembers nothing."""
    folder = state_folder() / name
    if not folder.is_dir() or not _NAME.fullmatch(name):
        return None
    try:
        data = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        processes = [Process(**process) for process in data.pop("processes")]
        return Record(**data | {"folder": str(folder)}, processes=processes)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return Record(name, str(folder))


def known_record(name: str) -> Record:
    """Return the record of a lab; raise `NotFound` when there is none."""
    record = find_record(name)
    if record is None:
        known = [each.name for each in all_records()]
        hint = did_you_mean(name, known) or (f"Labs are: {', '.join(known)}." if known else "None was started.")
        raise NotFound(f'there is no lab "{name}"', hint)
    return record


def all_records() -> list[Record]:
    """Return the records of all labs, by name."""
    folder = state_folder()
    names = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [record for name in names if (record := find_record(name))]
