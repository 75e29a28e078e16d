"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.calling import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a folder of one's own."""
    return Desk(tmp_path)
