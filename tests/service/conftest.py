"""Fixtures of the service's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from coterie.service.service import Service
from tests.service.running_service import ServiceFolder
from tests.service.stopped_services import end_tasks
from tests.store.postgres_server import postgres, postgres_url

__all__ = ["end_tasks", "postgres", "postgres_url"]


@pytest.fixture
def place(tmp_path: Path) -> ServiceFolder:
    """Give a folder for a service."""
    return ServiceFolder(tmp_path / "place")


@pytest.fixture
def service(place: ServiceFolder) -> Iterator[Service]:
    """Run a service."""
    with Service(place.settings()) as found:
        yield found
