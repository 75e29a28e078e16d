"""Services that a test has stopped: their tasks go on by design, and must not outlive the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from coterie.backends.local import temporary_tasks


@pytest.fixture(autouse=True)
def end_tasks(tmp_path: Path) -> Iterator[None]:
    """End the tasks of all services of a test after they were stopped."""
    yield
    for tasks in tmp_path.glob("*/state/tasks"):
        temporary_tasks.end_all(tasks)
