"""A test run uses a new seed, prints it, and can be repeated with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import core

from tests.seed import SEED

ROOT = Path(__file__).parents[2]


def _said(*command: str, seed: str = "") -> str:
    given = {name: value for name, value in os.environ.items() if name != "COTERIE_SEED"}
    if seed:
        given["COTERIE_SEED"] = seed
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=given, check=True, capture_output=True, text=True, timeout=250
    )
    return done.stdout


def test_every_run_has_a_seed_of_its_own() -> None:
    show = ("-c", "from tests.seed import SEED; print(SEED)")

    assert _said(*show) != _said(*show)
    assert _said(*show, seed="12") == "12\n"


@pytest.mark.slow("starts a run of the tests")
def test_the_head_of_a_run_says_how_to_repeat_it() -> None:
    said = _said("-m", "pytest", "--collect-only", "-p", "no:cacheprovider", str(Path(__file__)), seed="12")

    assert "COTERIE_SEED=12" in said


def test_hypothesis_draws_from_the_seed_of_the_run() -> None:
    assert core.global_force_seed == SEED
