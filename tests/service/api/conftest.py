from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from coterie.service.api.app import create_app
from coterie.service.service import Service
from tests.service.serving import Place


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with Service(Place(tmp_path / "place").settings()) as found:
        yield found


@pytest.fixture
def client(service: Service) -> Iterator[TestClient]:
    app = create_app(service, open_to_all=True, hosts={"localhost"})
    with TestClient(app, base_url="http://localhost") as found:
        yield found
