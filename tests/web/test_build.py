"""The build of the page: from the files of a clean clone alone, and what is said where it cannot be built."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coterie.inspection.page_files import PageFiles
from tests.web.page_service import ROOT

PATIENCE_S = 120.0


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Give a folder with the files of the page and of its build that a clone has."""
    listed = subprocess.run(
        ["git", "ls-files", "web", "scripts/build-page"],  # noqa: S607 - wherever it is
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("this is not a clone")
    for name in listed.stdout.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def built(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "scripts" / "build-page")]
    settings = {**os.environ, "npm_config_prefer_offline": "true", **environment}
    return subprocess.run(command, env=settings, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


@pytest.mark.usefixtures("built_page")
def test_a_clean_clone_builds_the_same_page(clone: Path) -> None:
    done = built(clone)
    if "`npm ci" in done.stderr:
        pytest.skip(f"the packages cannot be downloaded: {done.stderr.strip()}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["page: installing packages …", "page: building …", "page: built"]
    assert PageFiles.read(clone / "src" / "coterie" / "web") == PageFiles.read()
    assert built(clone).stdout == "page: up to date\n"


def test_without_node_one_line_says_what_is_missing_and_an_older_page_is_removed(clone: Path) -> None:
    older = clone / "src" / "coterie" / "web" / "index.html"
    older.parent.mkdir(parents=True)
    older.write_text("older", encoding="utf-8")
    done = built(clone, PATH=str(clone))
    assert done.returncode == 1
    assert done.stderr == "page: not built: Node.js 20.19 or newer, with npm, is needed\n"
    assert not older.exists()
