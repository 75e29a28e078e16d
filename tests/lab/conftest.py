"""The lab's fixtures, for the tests of the lab itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from lab.pytest_plugin import (
    lab,
    lab_programs,
    make_lab,
    pytest_collection_modifyitems,
    pytest_runtest_makereport,
    shared_lab,
)

__all__ = [
    "lab",
    "lab_programs",
    "make_lab",
    "pytest_collection_modifyitems",
    "pytest_runtest_makereport",
    "shared_lab",
]


@pytest.fixture(autouse=True, scope="session")
def _built(lab_programs: Mapping[str, Path]) -> None:
    """Build before any test runs that would do it unseen."""
