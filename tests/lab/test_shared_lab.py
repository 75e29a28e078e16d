"""The lab that tests of a run share: it stops as soon as no other test needs it, and starts again for one that does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.lab_guard import ROOT

pytestmark = pytest.mark.slow("starts a test run of its own, with a lab")

# The smallest lab there is: what is tested is when it ends.
SMALL = """
from pathlib import Path

from lab import Lab, pytest_plugin

class SmallLab(Lab):
    def __init__(self):
        super().__init__(schedulers=(), compute_domain=False)

pytest_plugin.Lab = SmallLab
pids = []

def running():
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]
"""
SAMPLE = """
from small import pids, running

def test_before():
    assert not pids

def test_first(shared_lab):
    pids.extend(program.pid for program in shared_lab.programs.values())
    assert len(running()) == 4

def test_between():
    assert len(running()) == 4

def test_last(lab):
    assert lab.objects("nodes") == []

def test_rest():
    assert not running()

def test_end():
    pass
"""
# Workers begin with the file of most tests, so that the last lab is needed after tests that need none.
FIRST = """
from small import pids

def test_first(shared_lab):
    pids.extend(program.pid for program in shared_lab.programs.values())

def test_second():
    pass

def test_third():
    pass
"""
BETWEEN = """
from small import pids, running

def test_between():
    assert pids and not running()

def test_end():
    pass
"""
LAST = """
def test_last(lab):
    assert lab.objects("nodes") == []
"""


def test_it_stops_before_the_first_test_after_which_none_needs_it(tmp_path: Path) -> None:
    _run(tmp_path, {"sample": SAMPLE})


def test_it_starts_again_for_a_test_that_runs_later_than_it_was_collected(tmp_path: Path) -> None:
    _run(tmp_path, {"first": FIRST, "last": LAST, "without_lab": BETWEEN}, "--dist", "loadfile")


def _run(folder: Path, files: dict[str, str], *options: str) -> None:
    """Run six tests in one worker."""
    (folder / "small.py").write_text(SMALL, encoding="utf-8")
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text, encoding="utf-8")
    plugins = ("-p", "tests.conftest", "-p", "no:cacheprovider", "-p", "no:schemathesis")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", *plugins),
            *("-v", "-n", "1", *options, f"--rootdir={folder}", "-c", os.devnull, str(folder)),
        ],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "6 passed" in done.stdout, done.stdout + done.stderr
