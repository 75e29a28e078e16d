"""Fixtures of the Kubernetes client's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stamina.instrumentation import set_on_retry_hooks


@pytest.fixture(autouse=True)
def _quiet_retries() -> Iterator[None]:
    """Keep retries from being logged and counted: that is for programs to switch on."""
    set_on_retry_hooks(())
    yield
    set_on_retry_hooks(None)
