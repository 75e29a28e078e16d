"""Fixtures of the API's tests: a running service and its client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from coterie.service.api.app import create_app
from coterie.service.service import Service
from tests.service.running_service import CONFIG, ServiceFolder


@pytest.fixture
def service(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Service]:
    """Run a service, with another configuration where a test gives one."""
    config = getattr(request, "param", CONFIG)
    with Service(ServiceFolder(tmp_path / "place", config=config).settings()) as found:
        yield found


@pytest.fixture
def client(service: Service) -> Iterator[TestClient]:
    app = create_app(service, open_to_all=True, hosts={"localhost"})
    with TestClient(app, base_url="http://localhost") as found:
        yield found
