"""The lab that tests of a run share: it stops as soon as no other test needs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.lab_guard import ROOT

pytestmark = pytest.mark.slow("starts a test run of its own, with a lab")

# The smallest lab there is: what is tested is when it ends.
SAMPLE = """
from functools import partial
from pathlib import Path

import pytest

from lab import Lab, pytest_plugin

pytest_plugin.Lab = partial(Lab, schedulers=(), compute_domain=False)
pids = []

def running():
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]

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


def test_it_stops_before_the_first_test_after_which_none_needs_it(tmp_path: Path) -> None:
    file = tmp_path / "test_sample.py"
    file.write_text(SAMPLE, encoding="utf-8")
    done = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pytest",
                "-p",
                "tests.conftest",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:schemathesis",
            ),
            *("-v", "-n", "1", f"--rootdir={tmp_path}", "-c", os.devnull, str(file)),
        ],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "6 passed" in done.stdout, done.stdout + done.stderr
