"""Fixtures of the service's tests."""

from __future__ import annotations

from tests.service.stopped_services import end_tasks
from tests.store.postgres_server import postgres, postgres_url

__all__ = ["end_tasks", "postgres", "postgres_url"]
