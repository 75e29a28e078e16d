"""The build of the lab's programs, once per machine and version.

A component is built into a folder of the cache that is named after all that it depends on: its module folder, the
compiler, and how it is built. It appears there whole or not at all, and runs that need it at the same time build it
once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from coterie.topology.display_names import natural
from lab.errors import LabError
from lab.programs.components import ALL, Component, Files, Patch
from lab.programs.golang import environment, find_go, go_failed, go_version, module_folder, run_go
from lab.programs.progress import Progress

# Without symbols and debugging tables the programs have two thirds of the size.
_LINKING = "-s -w"
_FORGOTTEN = 30 * 24 * 3600


def cache_folder() -> Path:
    """Return the folder of built programs: $COTERIE_CACHE, or `coterie` in the user's cache folder."""
    own = os.environ.get("COTERIE_CACHE")
    shared = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (Path(own) if own else Path(shared) / "coterie") / "lab"


def built_folder(component: Component, cache: Path | None = None) -> Path:
    """Return the folder that a component is built into; it exists only when it is complete."""
    return (cache or cache_folder()) / f"{component.name}-{_fingerprint(component)}"


def build(
    components: Sequence[Component] = ALL, cache: Path | None = None, progress: Progress | None = None
) -> dict[str, Path]:
    """Build what is not built yet; return the folder of each component by name."""
    if sys.platform != "linux":
        raise LabError("the lab runs on Linux only", "Use a Linux machine, or a virtual one.")
    cache = cache or cache_folder()
    folders = {component.name: built_folder(component, cache) for component in components}
    missing = [component for component in components if not folders[component.name].is_dir()]
    if missing:
        progress = progress or Progress()
        progress.expect(sum(len(component.binaries) for component in missing))
        cache.mkdir(parents=True, exist_ok=True)
    for component in missing:
        assert progress is not None  # noqa: S101 - told to the type checker
        with _lock(cache / f"{component.name}.lock", component, progress):
            if folders[component.name].is_dir():
                progress.skip(len(component.binaries))
            else:
                _build(component, folders[component.name], progress)
    for folder in folders.values():
        # Its age tells when it was last of use.
        with suppress(PermissionError):
            os.utime(folder)
    return folders


def _fingerprint(component: Component) -> str:
    digest = hashlib.sha256()
    for part in (go_version(), _LINKING, component.binaries, component.variables, component.files, component.patch):
        digest.update(repr(part).encode() + b"\0")
    for path in _sources(component.source):
        digest.update(str(path.relative_to(component.source)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _sources(folder: Path) -> list[Path]:
    found = [path for path in folder.rglob("*") if path.suffix in {".go", ".mod", ".sum"}]
    return sorted(found, key=lambda path: natural(str(path)))


@contextmanager
def _lock(path: Path, component: Component, progress: Progress) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress.step(f"waiting for another run that builds {component.name}", counted=False):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(component: Component, target: Path, progress: Progress) -> None:
    # Under the lock nobody else builds here: what lies around was left by a run that was ended.
    for left in target.parent.glob(f".{component.name}-*"):
        shutil.rmtree(left, ignore_errors=True)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{component.name}-", dir=target.parent) as scratch:
            work = Path(scratch) / "module"
            shutil.copytree(component.source, work)
            made = Path(scratch) / "made"
            made.mkdir()
            for files in component.files:
                _collect(files, module_folder(files.module, work), made)
            if component.patch:
                _apply(component.patch, work)
            for name, package in component.binaries.items():
                with progress.step(f"building {name}"):
                    _compile(component, package, made / name, work)
            made.rename(target)
        _forget(component, target)
    except OSError as error:
        raise LabError(
            f"{component.name} cannot be built in {target.parent}: {error.strerror or error}",
            "Name another folder with $COTERIE_CACHE; the programs need about 1 GB.",
        ) from None


def _forget(component: Component, kept: Path) -> None:
    """Remove versions of a component that nobody has used for long."""
    for folder in kept.parent.glob(f"{component.name}-*"):
        # Another process may remove it at the same time.
        with suppress(FileNotFoundError):
            if folder != kept and time.time() - folder.stat().st_mtime > _FORGOTTEN:
                shutil.rmtree(folder, ignore_errors=True)


def _compile(component: Component, package: str, output: Path, folder: Path) -> None:
    variables = [f"-X {name}={value}" for name, value in component.variables.items()]
    linking = " ".join([_LINKING, *variables])
    command = ["build", "-trimpath", f"-ldflags={linking}", "-o", str(output), package]
    with tempfile.TemporaryFile("w+") as said:
        # S603: the arguments are the lab's own.
        process = subprocess.Popen(  # noqa: S603
            [find_go(), *command], cwd=folder, env=environment(), stdout=said, stderr=said
        )
        try:
            failed = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
        if failed:
            said.seek(0)
            raise go_failed(command, said.read())


def _collect(files: Files, module: Path, made: Path) -> None:
    """Keep files of a module beside the programs: the module cache may be cleaned at any time."""
    found = sorted((module / files.folder).glob(files.names))
    if not found:
        raise LabError(f"module {files.module} has no {files.names} in {files.folder}")
    (made / files.kept_as).mkdir(exist_ok=True)
    for path in found:
        shutil.copyfile(path, made / files.kept_as / path.name)


def _apply(patch: Patch, work: Path) -> None:
    """Replace a module by a changed copy of itself."""
    copy = work / "patched"
    shutil.copytree(module_folder(patch.module, work), copy, copy_function=shutil.copyfile)
    for folder in (copy, *(path for path in copy.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    for name in patch.files:
        path = copy / name
        text = path.read_text(encoding="utf-8")
        if patch.old not in text:
            raise LabError(
                f"{patch.old} is no longer in {name} of {patch.module}",
                "The module has changed: look how it finds its files now, and change lab/programs/components.py.",
            )
        path.write_text(text.replace(patch.old, patch.new), encoding="utf-8")
    run_go(["mod", "edit", f"-replace={patch.module}=./patched"], work)
