"""Fixtures of the store's tests, which run on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from coterie.store import Store
from tests.eventually import PATIENCE_S
from tests.store.postgres_server import postgres, postgres_url

__all__ = ["postgres", "postgres_url"]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of a new database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def open_store(url: str) -> Iterator[Callable[[], Store]]:
    """Give a function that opens the database once more, as another replica would."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Store.open(url, PATIENCE_S))


@pytest.fixture
def store(open_store: Callable[[], Store]) -> Store:
    """Give a store with nothing in it."""
    return open_store()
