"""Fixtures of the lab's own tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest


@pytest.fixture(autouse=True, scope="session")
def _built(lab_programs: Mapping[str, Path]) -> None:
    """Build before any test runs that would do it unseen."""
