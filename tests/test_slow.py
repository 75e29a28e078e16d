"""Slow tests are left out, counted and named in the summary, unless somebody asks for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow("starts test runs of its own")

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest

@pytest.mark.slow({reason})
def test_slow(): pass

def test_quick(): pass
"""
LEFT_OUT = "*** 1 SLOW TESTS WERE LEFT OUT"


def _run(folder: Path, *arguments: str, reason: str = '"sleeps"') -> str:
    (folder / "test_one.py").write_text(TESTS.format(reason=reason), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow(reason): slow\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.slow", "-p", "no:cacheprovider"]
    command += ["-p", "no:schemathesis", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=250
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("arguments", [(".",), ("-n", "2")])
def test_slow_tests_are_left_out_with_a_word(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    said = _run(tmp_path, *arguments)

    assert "1 passed" in said
    assert LEFT_OUT in said


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        (("--all",), "2 passed"),
        (("test_one.py",), "2 passed"),
        (("test_one.py::test_slow",), "1 passed"),
        (("-m", "slow"), "1 passed"),
    ],
)
def test_slow_tests_run_for_those_who_ask(tmp_path: Path, arguments: tuple[str, ...], passed: str) -> None:
    said = _run(tmp_path, *arguments)

    assert passed in said
    assert "LEFT OUT" not in said


def test_a_slow_test_without_a_reason_is_refused(tmp_path: Path) -> None:
    assert "write why it is slow" in _run(tmp_path, reason="")
