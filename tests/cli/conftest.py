"""Fixtures of the command line's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import SampleFolder
from tests.cli.service_fixtures import hall

__all__ = ["desk", "hall", "no_kubeconfig"]


@pytest.fixture
def desk(tmp_path: Path) -> SampleFolder:
    """Return a folder of one's own."""
    return SampleFolder(tmp_path)


@pytest.fixture(autouse=True)
def no_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the clusters of whoever runs the tests out of them."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "no-kubeconfig"))
