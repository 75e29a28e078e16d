"""The client of the API: methods that return JSON, and raise the service's errors as exceptions."""

from __future__ import annotations

import base64
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx2
import typer

from coterie.cli.client.errors import raise_for
from coterie.cli.inputs.service_location import address_source, known_url
from coterie.cli.output.formats import safe
from coterie.document.page import Page
from coterie.errors import Unauthorized, Unavailable, UsageError
from coterie.service.addresses import is_loopback
from coterie.service.settings import Submission
from coterie.topology.levels import Topology

Json = dict[str, Any]
Params = Mapping[str, Any]
T = TypeVar("T")

_TIMEOUT = httpx2.Timeout(60.0, connect=5.0)
# A stream that is silent for longer than the service's keep-alive interval has lost its service.
_STREAM_TIMEOUT = httpx2.Timeout(45.0, connect=5.0)
# How long a follower waits for a service that went away, and its polling interval.
_PATIENCE_S = 60.0
_NO_SERVICE = "Start one with `coterie serve`, or name another with --server or $COTERIE_SERVER."
_PAUSE_S = 1.0


class Client:
    """The client of one service; every method may raise the service's `CoterieError`s, or that it does not answer."""

    def __init__(self, server: str | None = None, token: str | None = None, *, transport: Any = None) -> None:  # noqa: ANN401 - httpx2 has several
        named = server or os.environ.get("COTERIE_SERVER")
        self._told_by = "" if named else f", {address_source()}"
        self.url = (named or known_url()).rstrip("/")
        try:
            url = httpx2.URL(self.url)
        except httpx2.InvalidURL as error:
            raise UsageError(f'"{self.url}" is not a URL: {error}', "Write it as http://127.0.0.1:8720.") from None
        if url.scheme not in {"http", "https"} or not url.host:
            raise UsageError(f'"{self.url}" is not the URL of a service', "Write it as http://127.0.0.1:8720.")
        headers = {"Authorization": f"Bearer {_plain(token)}"} if token else {}
        self._http = httpx2.Client(
            base_url=f"{self.url}/api/v1",
            headers=headers,
            timeout=_TIMEOUT,
            transport=transport,
            # A proxy of the environment is only for external addresses.
            trust_env=not is_loopback(url.host),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def submit(self, submission: Submission, page: Page | None = None, options: Params | None = None) -> Json:
        """Submit a workflow, whose text is `page`, with the parameters of the call's options.

        The key makes it safe to repeat the request where the answer was lost.
        """
        headers = {"Idempotency-Key": submission.client_key or str(uuid.uuid4())}
        body, params = _body(submission), options
        try:
            return self._json("POST", "/workflows", params=params, body=body, headers=headers, page=page)
        except Unavailable:
            time.sleep(_PAUSE_S)
            return self._json("POST", "/workflows", params=params, body=body, headers=headers, page=page)

    def plan(self, submission: Submission, page: Page | None = None, what_if: Params | None = None) -> Json:
        """Return the placement that a workflow, whose text is `page`, would get now; refused like a submission."""
        params = {"dry_run": True, **(what_if or {})}
        return self._json("POST", "/workflows", params=params, body=_body(submission), page=page)

    def workflows(self, params: Params) -> Json:
        """Return a page of workflows."""
        return self._json("GET", "/workflows", params=params)

    def workflow(self, ident: str) -> Json:
        """Return a workflow."""
        return self._json("GET", _path("workflows", ident))

    def view(self, ident: str) -> Json:
        """Return a workflow, waiting for a service that restarts."""
        return self.with_retries(lambda: self.workflow(ident))

    def with_retries(self, ask: Callable[[], T]) -> T:
        """Return an answer, waiting for a service that has gone away, with a message on standard error."""
        until: float | None = None
        while True:
            try:
                found = ask()
            except Unavailable as error:
                if until is None:
                    until = time.monotonic() + _PATIENCE_S
                    typer.echo(safe(f"{error}; waiting for it to return"), err=True)
                elif time.monotonic() > until:
                    raise
                time.sleep(_PAUSE_S)
            else:
                if until is not None:
                    typer.echo(safe(f"the service at {self.url} is back"), err=True)
                return found

    def why(self, ident: str, group: str | None, question: Params | None = None) -> Json:
        """Return why groups wait; `question` requests more evidence, or hypothetical changes."""
        return self._json("GET", _path("workflows", ident, "why"), params={"group": group, **(question or {})})

    def placement(self, ident: str) -> Json:
        """Return the nodes of running tasks compared with their constraints."""
        return self._json("GET", _path("workflows", ident, "placement"))

    def cancel(self, ident: str, message: str, *, force: bool) -> Json:
        """Request the end of a workflow."""
        return self._json("POST", _path("workflows", ident, "cancel"), body={"message": message, "force": force})

    def retry(self, ident: str, task: str | None) -> Json:
        """Request the retry of a failed workflow."""
        return self._json("POST", _path("workflows", ident, "retry"), body={"task": task})

    def delete(self, ident: str, *, force: bool = False) -> bool:
        """Delete a workflow; return whether it is gone, and not only canceled yet."""
        return not self._json("DELETE", _path("workflows", ident), params={"force": force or None})

    def log_start(self, ident: str, task: str, attempt: int | None, tail: int | None, since: float | None) -> int:
        """Return the offset of the last lines of a log, and of those that were written since a time."""
        if tail is None and since is None:
            return 0
        params = {"task": task, "attempt": attempt, "tail": tail, "since": since, "limit": 1}
        with self._stream(_path("workflows", ident, "logs"), params, _TIMEOUT) as answer:
            return int(answer.headers["X-Offset"])

    def log_piece(self, ident: str, task: str, attempt: int, offset: int) -> bytes:
        """Return the log of a task from a byte on, as far as one answer reaches."""
        return b"".join(self._log(ident, task, attempt, offset, follow=False))

    def log(self, ident: str, task: str, attempt: int | None, offset: int = 0) -> Iterator[bytes]:
        """Yield the log of a task, from a byte on."""
        while True:
            before = offset
            for piece in self._log(ident, task, attempt, offset, follow=False):
                offset += len(piece)
                yield piece
            if offset == before:
                return

    def follow_log(self, ident: str, task: str, attempt: int | None, offset: int = 0) -> Iterator[bytes]:
        """Yield the log of a task, including what it still writes, until it ends.

        A service that restarts is awaited, and the log continues where it was. A stream also ends when its service
        does, so that the end of the log is accepted only when a second stream, from there on, is empty.
        """
        attempt = attempt or _task(self.workflow(ident), task).get("attempt") or None
        over = False
        while True:
            before, broken = offset, False
            try:
                for piece in self._log(ident, task, attempt, offset, follow=True):
                    offset += len(piece)
                    yield piece
            except Unavailable:  # or the task was silent for long, which the next check shows
                broken = True
            if attempt is None and offset:
                attempt = 1  # it had not begun, and nothing is known of later ones
            now = _task(self.view(ident), task)
            ended = now.get("ended") is not None or now.get("attempt") != (attempt or now.get("attempt"))
            if over and ended and offset == before and not broken:
                return
            over = ended and not broken
            if not over:
                time.sleep(_PAUSE_S)

    def events(self, after: int, ident: str | None) -> list[Json]:
        """Return the events after a number."""
        found: list[Json] = []
        while page := self._json("GET", _events(ident), params={"after": after, "limit": 1000})["items"]:
            found += page
            after = page[-1]["seq"]
            if len(page) < 1000:
                break
        return found

    def stream(self, after: int, ident: str | None) -> Iterator[Json]:
        """Yield events as they happen; for one workflow, until it is finished. A service that restarts is awaited."""
        while True:
            with suppress(Unavailable):
                for name, data in self._sent(after, ident):
                    if name == "end" and data.get("reason") == "unauthorized":
                        raise Unauthorized("the token is no longer valid", "Ask an admin for a new one.")
                    if name == "end":
                        return
                    after = data["seq"]
                    yield data
            time.sleep(_PAUSE_S)
            for data in self._missed(after, ident):
                after = data["seq"]
                yield data

    def _missed(self, after: int, ident: str | None) -> list[Json]:
        return self.with_retries(lambda: self.events(after, ident))

    def last_event(self) -> int:
        """Return the number of the newest event."""
        return int(self._json("GET", _events(None), params={"limit": 1})["last"])

    def news(self, ident: str) -> Iterator[list[Json]]:
        """Yield the events of a workflow one by one, from the first on."""
        seen = self.events(0, ident)
        yield seen
        for one in self.stream(seen[-1]["seq"] if seen else 0, ident):
            yield [one]

    def pools(self) -> list[Json]:
        """Return all pools."""
        found: list[Json] = self._json("GET", "/pools")["items"]
        return found

    def pool(self, name: str) -> Json:
        """Return a pool."""
        return self._json("GET", _path("pools", name))

    def apply_pool(self, name: str, page: Page, *, dry_run: bool) -> Json:
        """Create or change a pool from a text, whose lines are shown with its faults."""
        params = {"dry_run": dry_run, "file": page.file}
        return self._json("PUT", _path("pools", name), text="\n".join(page.lines), params=params, page=page)

    def map(self, pool: str) -> Json:
        """Return the nodes of a pool in their domains, with their holders."""
        return self._json("GET", _path("pools", pool, "map"))

    def nodes(self, pool: str) -> Json:
        """Return the nodes of a pool with their tasks, as a list."""
        return self._json("GET", _path("pools", pool, "nodes"))

    def delete_pool(self, name: str) -> None:
        """Delete a pool."""
        self._json("DELETE", _path("pools", name))

    def topologies(self) -> list[Json]:
        """Return the levels of all pools."""
        found: list[Json] = self._json("GET", "/topologies")["items"]
        return found

    def topology(self, pool: str) -> Json:
        """Return the levels of a pool."""
        return self._json("GET", _path("topologies", pool))

    def topology_users(self, pool: str, after: Topology | None) -> Json:
        """Return the users of a pool's levels, and the effects of other levels where some are given."""
        params = None if after is None else {"levels": [f"{level.name}={level.label}" for level in after.levels]}
        return self._json("GET", _path("topologies", pool, "users"), params=params)

    def _sent(self, after: int, ident: str | None) -> Iterator[tuple[str, Json]]:
        headers = {"Accept": "text/event-stream"}
        with self._stream(_events(ident), {"after": after}, _STREAM_TIMEOUT, headers) as answer:
            name, data = "", ""
            for line in answer.iter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    data = value
                elif not line and data:
                    found = json.loads(data)
                    if name == "error":
                        raise Unavailable(str(found.get("message")), "Try again later.")
                    yield name, found
                    name, data = "", ""

    def _log(self, ident: str, task: str, attempt: int | None, offset: int, *, follow: bool) -> Iterator[bytes]:
        params = {"task": task, "attempt": attempt, "offset": offset, "follow": follow}
        with self._stream(_path("workflows", ident, "logs"), params, _STREAM_TIMEOUT) as answer:
            yield from answer.iter_bytes()

    def _json(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Json | None = None,
        text: str | None = None,
        headers: Mapping[str, str] | None = None,
        page: Page | None = None,
    ) -> Json:
        sent = {**(headers or {}), **({} if text is None else {"Content-Type": "application/yaml"})}
        content = None if text is None else text.encode()
        with self._reaching():
            answer = self._http.request(method, path, params=_given(params), json=body, content=content, headers=sent)
        raise_for(answer, self.url, page)
        if not answer.content:
            return {}
        found: Json = answer.json()
        return found

    @contextmanager
    def _stream(
        self, path: str, params: Params, timeout: httpx2.Timeout, headers: Mapping[str, str] | None = None
    ) -> Iterator[httpx2.Response]:
        with (
            self._reaching(),
            self._http.stream("GET", path, params=_given(params), headers=headers, timeout=timeout) as answer,
        ):
            if answer.status_code >= 400:
                answer.read()
                raise_for(answer, self.url)
            yield answer

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except httpx2.ConnectError:
            raise Unavailable(f"no service answers at {self.url}{self._told_by}", _NO_SERVICE) from None
        except httpx2.TimeoutException:
            raise Unavailable(f"the service at {self.url} does not answer in time", "Try again later.") from None
        except httpx2.TransportError as error:
            raise Unavailable(f"the connection to {self.url} broke: {error}", "Try again.") from None


def _path(*parts: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _events(ident: str | None) -> str:
    return "/events" if ident is None else _path("workflows", ident, "events")


def _task(view: Json, name: str) -> Json:
    """Return a task of a workflow; None for an unknown one, which the service reports best."""
    return next((task for group in view["groups"] for task in group["tasks"] if task["name"] == name), {})


def _given(params: Params | None) -> dict[str, Any]:
    return {key: value for key, value in (params or {}).items() if value is not None}


def _plain(token: str) -> str:
    if not token.isascii() or not token.isprintable():
        raise UsageError(
            "the token contains characters that are not allowed", "Copy it again; it is one line of plain text."
        )
    return token


def _body(submission: Submission) -> Json:
    try:
        source = submission.source.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{submission.file} is not UTF-8 text", "Save the file as UTF-8.") from None
    return {
        "source": source,
        "file": submission.file,
        "pool": submission.pool,
        "set": list(submission.sets),
        "set_string": list(submission.set_strings),
        "priority": submission.priority,
        "labels": dict(submission.labels),
        "files": {path: base64.b64encode(data).decode() for path, data in submission.local_files.items()},
    }
