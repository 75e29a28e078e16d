"""Logs on standard error, one JSON object per line, for programs that run until they are stopped."""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
import time
from contextlib import suppress
from typing import TextIO, cast

import structlog
from stamina.instrumentation import set_on_retry_hooks

# How much of the log is buffered while the disk is full.
_MOST_WAITING = 1 << 16


class _LossyStream(io.TextIOBase):
    """Standard error that may be a file on a full disk: no request fails because it cannot be logged.

    Whole lines are written. The first ones that do not fit are buffered, those after them are dropped.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._lock = threading.Lock()
        self._waiting = b""

    def write(self, text: str) -> int:
        """Write lines, after the buffered ones."""
        try:
            handle = self._stream.fileno()
        except io.UnsupportedOperation:  # not a file at all, so no disk can be full
            return self._stream.write(text)
        with self._lock, suppress(OSError):
            if len(self._waiting) < _MOST_WAITING:
                self._waiting += text.encode("utf-8", "backslashreplace")
            while self._waiting:
                self._waiting = self._waiting[os.write(handle, self._waiting) :]
        return len(text)


class OncePerSecond(logging.Filter):
    """A filter of repeated log records: where no handle is left for a connection, asyncio logs that in a tight loop."""

    def __init__(self, start: str) -> None:
        super().__init__()
        self._start, self._last = start, float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Let a record pass, unless it repeats one within the same second."""
        if not record.getMessage().startswith(self._start):
            return True
        now = time.monotonic()
        if now - self._last < 1.0:
            return False
        self._last = now
        record.exc_info = record.exc_text = None
        return True


_crowded = OncePerSecond("socket.accept() out of system resource")


def log_as_json() -> None:
    """Log to standard error, one JSON object per line, without headers or bodies of requests."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    said = _LossyStream(sys.stderr)
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", said)),
    )
    # Log records of libraries: in the same format, and only warnings and errors.
    handler = logging.StreamHandler(said)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder(allow=("what", "reason", "after_s"))],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("coterie").setLevel(logging.INFO)
    logging.getLogger("asyncio").addFilter(_crowded)
    set_on_retry_hooks(())  # its own message about a retry would go to standard output
