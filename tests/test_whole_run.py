"""`scripts/test`: what needs no cluster is tested while the programs of the lab are built.

The script runs on its own, with stand-ins for the programs that it calls: each notes its call, and the build ends only
after the first tests have begun.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.eventually import eventually

SCRIPT = Path(__file__).parents[1] / "scripts" / "test"
STAND_INS = {
    ".venv-tools/bin/uv": "",
    "scripts/lab-packages": "",
    "scripts/build-page": "",
    "scripts/page-packages": "",
    ".venv/bin/ruff": "",
    ".venv/bin/mypy": "",
    ".venv/bin/lint-imports": "",
    ".venv/bin/go": "echo go1.26.3",
    ".venv/bin/python": """
        [ "$*" = "-m lab build" ] || exit "$NOT_BUILT"
        echo "build begins, nice $(nice)" >> calls
        echo "building etcd (1 of 9)" >&2
        until grep --quiet "$BUILD_UNTIL" calls; do sleep 0.02; done
        echo "build ends" >> calls""",
    ".venv/bin/pytest": """
        echo "pytest $*" >> calls
        case "$*" in *"-m not lab"*) exit "$QUICK_CODE" ;; *) exit "$LAB_CODE" ;; esac""",
}
USUAL = {"NOT_BUILT": "1", "BUILD_UNTIL": "pytest", "QUICK_CODE": "0", "LAB_CODE": "0"}
PYTEST = "pytest --all -n 2 --dist loadfile --no-loadscope-reorder"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Give a folder with the script, and a stand-in for each program that it calls."""
    for name, text in STAND_INS.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/usr/bin/env bash\n{text}\n", encoding="utf-8")
        file.chmod(0o755)
    shutil.copy(SCRIPT, tmp_path / "scripts")
    (tmp_path / "calls").touch()
    return tmp_path


def started(checkout: Path, **settings: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["bash", checkout / "scripts" / "test", "tests/one"],  # noqa: S607 - wherever it is
        env={**os.environ, **USUAL, **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def calls(checkout: Path) -> list[str]:
    return (checkout / "calls").read_text(encoding="utf-8").splitlines()


def test_the_programs_are_built_with_low_priority_beside_the_tests_that_need_none(checkout: Path) -> None:
    with started(checkout) as run:
        _, said = run.communicate(timeout=200)
    assert run.returncode == 0
    made = calls(checkout)
    assert sorted(made[:2]) == [f"build begins, nice {min(19, os.nice(0) + 10)}", f"{PYTEST} -m not lab tests/one"]
    assert made[2:] == ["build ends", f"{PYTEST} -m lab tests/one"]
    assert "building etcd (1 of 9)" in said, "the progress of the build is shown"


def test_with_everything_built_all_tests_are_one_run(checkout: Path) -> None:
    with started(checkout, NOT_BUILT="0", LAB_CODE="3") as run:
        run.communicate(timeout=200)
    assert run.returncode == 3
    assert calls(checkout) == [f"{PYTEST} tests/one"]


@pytest.mark.parametrize(
    ("quick", "lab", "code"),
    # pytest says 5 where a choice leaves no test.
    [("1", "0", 1), ("0", "1", 1), ("5", "0", 0), ("0", "5", 0), ("5", "5", 5), ("2", "1", 2)],
)
def test_a_failure_of_either_part_is_that_of_the_whole(checkout: Path, quick: str, lab: str, code: int) -> None:
    with started(checkout, QUICK_CODE=quick, LAB_CODE=lab) as run:
        run.communicate(timeout=200)
    assert run.returncode == code
    assert [bool(re.search("-m (not )?lab", each)) for each in calls(checkout)].count(True) == 2


def test_whoever_ends_the_run_ends_the_build(checkout: Path) -> None:
    with started(checkout, BUILD_UNTIL="never") as run:
        eventually(lambda: len(calls(checkout)) == 2, lambda: calls(checkout))
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=200)
    # A process that were left would fail this test.
    assert run.returncode == 143
    assert "build ends" not in calls(checkout)
