"""Fixtures of the service's tests."""

from __future__ import annotations

from tests.store.postgres_server import postgres, postgres_url

__all__ = ["postgres", "postgres_url"]
