"""The progress of a long build: one line that changes on a terminal, now and then a new line elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_ON_TERMINAL = 1.0
_ELSEWHERE = 30.0


class Progress:
    """Steps of a build, written to standard error by default."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._total = 0
        self._done = 0

    def expect(self, steps: int) -> None:
        """Say how many counted steps there will be."""
        self._total += steps

    def skip(self, steps: int) -> None:
        """Count steps that somebody else has done."""
        self._done += steps

    @contextmanager
    def step(self, what: str, *, counted: bool = True) -> Iterator[None]:
        """Show a step while it lasts, and how long it took."""
        if counted:
            self._done += 1
        number = f" ({self._done} of {self._total})" if counted else ""
        over = threading.Event()
        began = time.monotonic()
        teller = threading.Thread(target=self._tell, args=(f"{what}{number}", over, began), daemon=True)
        teller.start()
        try:
            yield
        finally:
            over.set()
            teller.join()
            self._write(f"{what}{number}, {_age(time.monotonic() - began)}", last=True)

    def _tell(self, what: str, over: threading.Event, began: float) -> None:
        waits = _ON_TERMINAL if self._out.isatty() else _ELSEWHERE
        while True:
            self._write(f"{what}, {_age(time.monotonic() - began)} …", last=False)
            if over.wait(waits):
                return

    def _write(self, text: str, *, last: bool) -> None:
        if self._out.isatty():
            self._out.write(f"\r\x1b[2K{text}" + ("\n" if last else ""))
        else:
            self._out.write(f"{text}\n")
        self._out.flush()


def _age(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
