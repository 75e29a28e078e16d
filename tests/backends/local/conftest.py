"""Fixtures of the local backend's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from coterie.backends.local.supervisor import Supervisor
from tests.backends.local.builders import supervising


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    with supervising(tmp_path / "root") as found:
        yield found
