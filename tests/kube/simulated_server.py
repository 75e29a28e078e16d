"""A minimal API server: lists in pages, watches with versions, compaction, and every kind of failure.

It has no clock. A script defines what happens; each request, and each read of an open watch, performs the next steps of
it. After the end of the script watches deliver everything that is left, and then `calm` is called.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

import httpx2

from tests.kube.faulty_transport import Json, Stream, answer, event, page, status, status_body


class Step(Enum):
    """The steps of a server other than changes of objects."""

    COMPACT = "forget old versions"
    BOOKMARK = "send a bookmark"
    END = "end the watch as if its time were up"
    CUT = "cut the connection"
    HALF = "cut the connection in the middle of a line"
    GARBAGE = "send a line that is not JSON"
    ERROR = "send an error event"
    BUSY = "answer 429"
    BROKEN = "answer 500"
    REFUSE = "refuse the connection"
    AGAIN = "tell the last event again"


@dataclass(frozen=True)
class Write:
    """An object is created, changed, or deleted; a deletion of what is not there does nothing."""

    name: str
    delete: bool = False


Happening = Step | Write


@dataclass
class Simulated:
    """A server with one kind of object."""

    script: list[Happening]
    chunk: int = 1000
    calm: Callable[[], None] = lambda: None
    version: int = 1
    compacted: int = 0
    objects: dict[str, Json] = field(default_factory=dict)
    log: list[tuple[int, bytes]] = field(default_factory=list)
    states: set[tuple[str, str, str]] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    _lists: dict[int, list[Json]] = field(default_factory=dict)

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        step = self._next()
        if step in {Step.REFUSE, Step.CUT, Step.HALF}:
            raise httpx2.ConnectError("refused", request=request)
        if step is Step.BUSY:
            return status(429, headers={"Retry-After": "0"})
        if step is Step.BROKEN:
            return status(500, message="etcd has no leader")
        if "watch" in request.url.params:
            return self._watch(int(request.url.params["resourceVersion"]), in_stream=step is Step.ERROR)
        return self._list(request)

    def _next(self) -> Step | None:
        """Take the steps up to the next one that is no change of an object."""
        while self.script:
            happening = self.script.pop(0)
            if isinstance(happening, Step):
                if happening is Step.COMPACT:
                    self.compacted = self.version
                return happening
            self._write(happening)
        return None

    def _write(self, write: Write) -> None:
        found = self.objects.get(write.name)
        if found is None and write.delete:
            return
        self.version += 1
        uid = found["metadata"]["uid"] if found else f"u{self.version}"
        fresh = {"metadata": {"name": write.name, "uid": uid, "resourceVersion": str(self.version)}}
        if write.delete:
            del self.objects[write.name]
            self.deleted.add(uid)
        else:
            self.objects[write.name] = fresh
            self.states.add((write.name, uid, str(self.version)))
        what = "DELETED" if write.delete else "MODIFIED" if found else "ADDED"
        self.log.append((self.version, event(what, fresh)))

    def _list(self, request: httpx2.Request) -> httpx2.Response:
        version, start = self.version, 0
        if token := request.url.params.get("continue"):
            version, start = map(int, token.split(":"))
            if version < self.compacted:
                return status(410, "Expired", "the continue parameter is too old")
        found = self._lists.setdefault(version, [self.objects[name] for name in sorted(self.objects)])
        end = start + int(request.url.params.get("limit", len(found) or 1))
        return page(found[start:end], version, f"{version}:{end}" if end < len(found) else "")

    def _watch(self, since: int, *, in_stream: bool) -> httpx2.Response:
        if since >= self.compacted:
            return httpx2.Response(200, stream=Stream(self._chunks(since)))
        gone = status_body(410, "Expired", "too old resource version")
        return answer(json.loads(event("ERROR", gone))) if in_stream else answer(gone, 410)

    def _chunks(self, since: int) -> Iterator[bytes]:
        for line in self._lines(since):
            for start in range(0, len(line), self.chunk):
                yield line[start : start + self.chunk]

    def _lines(self, since: int) -> Iterator[bytes]:
        while True:
            fresh = [(version, line) for version, line in self.log if version > since]
            step = self._next() if self.script else None
            if step is Step.HALF and fresh:
                yield fresh[0][1][: len(fresh[0][1]) // 2]
            if step in {Step.HALF, Step.CUT, Step.REFUSE}:
                raise httpx2.ReadError("connection reset")
            for since, line in fresh:  # noqa: B007, PLR1704 - how far the watch has come
                yield line
            if step is None and not self.script and self.version == since:
                self.calm()
                return
            match step:
                case Step.END | Step.BUSY | Step.BROKEN:
                    return
                case Step.GARBAGE:
                    yield b'{"type": "ADDED", "object": {\n'
                case Step.ERROR:
                    yield event("ERROR", status_body(500, "InternalError", "etcd has no leader"))
                case Step.BOOKMARK:
                    yield event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(since)}})
                case Step.AGAIN if self.log and since == self.log[-1][0]:
                    yield self.log[-1][1]
                case _:
                    pass
