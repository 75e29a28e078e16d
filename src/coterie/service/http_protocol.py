"""The HTTP protocol of the server, with a limit for the time that the head of a request may take."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# How long a connection may take until the head of its first request, or of its next one, is complete.
HEAD_S = 10.0


class TimedProtocol(H11Protocol):
    """HTTP/1.1 connections that are closed when the head of a request does not arrive in time."""

    _overdue: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a closed connection."""
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Start the time limit when a head is incomplete, unless it runs already; stop it when the head is there."""
        if self.conn.their_state is not h11.IDLE:
            self._forget()
        elif self._overdue is None:
            self._overdue = self.loop.call_later(HEAD_S, self._too_late)

    def _too_late(self) -> None:
        self._overdue = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            cast("Any", self.transport).abort()

    def _forget(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None
