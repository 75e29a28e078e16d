"""A simulated cluster with hand-written answers, behind the client's transport."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.config.models import Cluster, User

from coterie.kube.api import Api, Timeouts
from coterie.kube.retry import RetryLimits

SERVER = "https://cluster.test:6443"
HASTE = RetryLimits(attempts=4, total_s=60.0, first_wait_s=0.001, longest_wait_s=0.002)

Json = dict[str, Any]
Handler = Callable[[httpx2.Request], httpx2.Response]


def config() -> SingleConfig:
    """Return a configuration that needs no file."""
    cluster = Cluster(server=SERVER, insecure=True)  # reading the system's certificates takes time, and none is shown
    found = KubeConfig.from_one(cluster=cluster, user=User(token="t"), context_name="lab").get()  # noqa: S106 - opens nothing
    assert found is not None
    return found


def api(handler: Handler, patience: RetryLimits = HASTE, timeouts: Timeouts | None = None) -> Api:
    """Return a connection whose server is a function."""
    return Api(config(), transport=httpx2.MockTransport(handler), patience=patience, timeouts=timeouts)


@dataclass
class Script:
    """Answers in their order, the last one for ever; remembers what was asked. Exceptions are raised."""

    answers: list[httpx2.Response | Exception]
    asked: list[httpx2.Request] = field(default_factory=list)

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append(request)
        if isinstance(answer, Exception):
            raise answer
        # A response is read once; one that is given again has to be made again.
        return httpx2.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def params(self) -> list[dict[str, str]]:
        """The parameters of each request."""
        return [dict(request.url.params) for request in self.asked]


def answer(body: object, code: int = 200, headers: Mapping[str, str] | None = None) -> httpx2.Response:
    """Return an answer with JSON in it."""
    return httpx2.Response(code, json=body, headers=dict(headers or {}))


def status(
    code: int,
    reason: str = "",
    message: str = "",
    *,
    details: Json | None = None,
    headers: Mapping[str, str] | None = None,
) -> httpx2.Response:
    """Return a failure as the API tells it."""
    return answer(status_body(code, reason, message, details), code, headers)


def status_body(code: int, reason: str = "", message: str = "", details: Json | None = None) -> Json:
    """Return the body of a failure."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return {**body, "reason": reason, "message": message, **({"details": details} if details else {})}


def thing(name: str, version: int | str = 1, *, uid: str = "", namespace: str = "", **more: object) -> Json:
    """Return an object with nothing but an identity."""
    meta = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": {**meta, **({"namespace": namespace} if namespace else {})}, **more}


def page(items: Iterable[Json] | None, version: int | str = 1, token: str = "") -> httpx2.Response:
    """Return one page of a list."""
    meta = {"resourceVersion": str(version), **({"continue": token} if token else {})}
    return answer({"kind": "PodList", "items": None if items is None else list(items), "metadata": meta})


def event(kind: str, found: Json) -> bytes:
    """Return one line of a watch."""
    return json.dumps({"type": kind, "object": found}).encode() + b"\n"


class Stream(httpx2.SyncByteStream):
    """The body of a watch: chunks, and in the end perhaps a broken connection."""

    def __init__(self, chunks: Iterable[bytes], end: Exception | None = None) -> None:
        self._chunks = chunks
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks
        if self._end is not None:
            raise self._end


def stream(*chunks: bytes, end: Exception | None = None) -> httpx2.Response:
    """Return the answer to a watch."""
    return httpx2.Response(200, stream=Stream(chunks, end))
