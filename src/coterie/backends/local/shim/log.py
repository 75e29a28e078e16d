"""The output of a command, kept within a limit."""

from __future__ import annotations

import os
import struct
import time

from .ownership import CHUNK

# A record of the file `log.times`: the time of a write, and the length of the log before it.
TIMES = ".times"
MARK = struct.Struct("<dQ")
# All output within this time of a record is attributed to it.
PACE_S = 1.0


class Log:
    """A log file with a size limit: its beginning, a note where it was cut, and its end.

    A file of times beside it tells readers when each part was written.

    Output that a full disk does not take must not stop the command. A little of it is kept until there is space again;
    a note states how much of the rest is missing. After `close`, `incomplete` states that the file is incomplete.
    """

    def __init__(self, path: str, limit: int, *, stamps: bool) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._times = os.open(path + TIMES, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._marked = 0.0
        self._limit = limit
        self._tail_bytes = min(CHUNK, limit // 4)
        self._room = limit - self._tail_bytes - 512
        self._tail = b""
        self._left_out = 0
        self._stamps, self._fresh = stamps, True
        self._late, self._missing, self._why = b"", 0, ""
        self.incomplete = ""

    def write(self, data: bytes) -> None:
        """Add output of the command."""
        begun, self._fresh = self._fresh, data.endswith(b"\n")
        data = self._stamped(data, begun=begun) if self._stamps else data
        now, later = data[: self._room], data[self._room :]
        self._room -= len(now)
        self._put(now)
        if later and not self._left_out:
            self._put(f"\n[coterie: the limit of {self._limit:,} bytes is reached; only the end is kept]\n".encode())
        self._left_out += len(later)
        self._tail = (self._tail + later)[-self._tail_bytes :]

    def say(self, text: str) -> None:
        """Add a line of Coterie's own."""
        self.write(f"{'' if self._fresh else chr(10)}[coterie: {text}]\n".encode())

    def close(self) -> None:
        """Write the end of a log that was cut, with the number of bytes that are missing before it."""
        if self._left_out:
            missing = self._left_out - len(self._tail)
            self._put(f"[coterie: {missing:,} bytes omitted here]\n".encode() + self._tail)
        self._put(b"")
        if self._why and (self._late or self._missing):
            self.incomplete = f"the log is incomplete: {self._why}"
        os.close(self._handle)
        os.close(self._times)

    def _put(self, data: bytes) -> None:
        self._late = self._left_of(self._late)
        if self._missing and not self._late:
            note = f"\n[coterie: {self._missing:,} bytes are missing here: {self._why}]\n".encode()
            self._late, self._missing = self._left_of(note), 0
        if self._missing:
            self._missing += len(data)
            return
        self._late = self._late + data if self._late else self._left_of(data)
        self._missing = max(0, len(self._late) - CHUNK)
        self._late = self._late[:CHUNK]

    def _left_of(self, data: bytes) -> bytes:
        """Write as much as the disk takes; return the rest."""
        try:
            if data:
                self._mark()
            while data:
                data = data[os.write(self._handle, data) :]
        except OSError as error:
            self._why = error.strerror or str(error)
        return data

    def _mark(self) -> None:
        now = time.time()
        if not 0 <= now - self._marked < PACE_S:
            os.write(self._times, MARK.pack(now, os.fstat(self._handle).st_size))
            self._marked = now

    def _stamped(self, data: bytes, *, begun: bool) -> bytes:
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)).encode() + b".%03dZ " % (now % 1 * 1000)
        body = data[:-1] if self._fresh else data
        return (stamp if begun else b"") + body.replace(b"\n", b"\n" + stamp) + (b"\n" if self._fresh else b"")
