"""A small client of the lab's API server: any kind by its name, and many requests at a time."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import httpx2

from lab.errors import LabError

Object = dict[str, Any]
T = TypeVar("T")
R = TypeVar("R")

_WORKERS = 8
_BUSY = 30.0
# A request that is sent twice by chance does no harm, so one that broke off is sent again.
_REPEATABLE = frozenset({"GET", "PATCH", "DELETE"})
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class ApiError(LabError):
    """Raised when the API server refuses a request; carries its status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind that the API server knows: the path of its objects, and its verbs."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: frozenset[str]
    names: frozenset[str]

    def path(self, name: str = "", namespace: str = "") -> str:
        """Return the path of an object, or of all of them: in one namespace or, without one, everywhere."""
        base = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{namespace or 'default'}" if self.namespaced and (namespace or name) else ""
        return f"{base}{inside}/{self.plural}" + (f"/{name}" if name else "")


class Api:
    """The API server, as the user of a token sees it."""

    def __init__(self, url: str, token: str, authority: str) -> None:
        self._client = httpx2.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            verify=ssl.create_default_context(cadata=authority),
            timeout=30,
            trust_env=False,
            limits=httpx2.Limits(max_connections=_WORKERS, max_keepalive_connections=_WORKERS),
        )
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="lab-api")
        self._resources: dict[str, Resource] = {}

    def close(self) -> None:
        """Close connections and end threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._client.close()

    def request(
        self,
        method: str,
        path: str,
        body: Object | bytes | None = None,
        *,
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
        accept: str = "application/json",
    ) -> Any:  # noqa: ANN401 - JSON is of any shape
        """Return the JSON that the server answers, or raise `ApiError` with its message."""
        headers = {"Content-Type": content_type, "Accept": accept}
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        deadline = time.monotonic() + _BUSY
        while True:
            try:
                answer = self._client.request(method, path, content=content, headers=headers, params=params)
            except httpx2.TransportError as error:
                # A server to which there is no way is not there; whoever restarts it waits for it.
                broken = method in _REPEATABLE and not isinstance(error, httpx2.ConnectError)
                if not broken or time.monotonic() > deadline:
                    raise ApiError(0, f"the API server does not answer: {error or type(error).__name__}") from None
            else:
                # The server is busy for a moment, for example while it learns a new kind; nothing was done yet.
                if answer.status_code not in {429, 503} or time.monotonic() > deadline:
                    break
            time.sleep(0.1)
        if answer.status_code >= 400:
            raise ApiError(answer.status_code, _said(answer))
        return answer.json() if answer.headers.get("content-type", "").startswith("application/json") else answer.text

    def each(self, act: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Call a function for many values, several at a time; the first failure is raised when all are done."""
        futures = [self._pool.submit(act, item) for item in items]
        failures = [failure for future in futures if (failure := future.exception())]
        if failures:
            raise failures[0]
        return [future.result() for future in futures]

    def resources(self) -> list[Resource]:
        """Return every kind that the server knows now, in its preferred version."""
        found: dict[tuple[str, str], Resource] = {}
        for path in ("/api", "/apis"):
            answer = self.request("GET", path, accept=_DISCOVERY)
            for resource in _discovered(answer):
                found.setdefault((resource.group, resource.plural), resource)
        return list(found.values())

    def resource(self, kind: str) -> Resource:
        """Return a kind by its name, its plural, or a short name, with its group after a dot where that is needed."""
        wanted = kind.lower()
        deadline = time.monotonic() + _BUSY
        while wanted not in self._resources:
            for resource in self.resources():
                for name in resource.names:
                    self._resources.setdefault(name, resource)
                    self._resources.setdefault(f"{name}.{resource.group}", resource)
            # A kind that was defined just now is told of a moment later.
            if wanted not in self._resources:
                if time.monotonic() > deadline:
                    raise LabError(f'the lab\'s API server knows no kind "{kind}"', "See: kubectl api-resources.")
                time.sleep(0.1)
        return self._resources[wanted]

    def get(self, kind: str, name: str, namespace: str = "default") -> Object | None:
        """Return an object, or None when it is not there."""
        try:
            return dict(self.request("GET", self.resource(kind).path(name, namespace)))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def objects(self, kind: str, namespace: str = "", selector: str = "") -> list[Object]:
        """Return the objects of a kind: in one namespace or, without one, in all."""
        params = {"labelSelector": selector} if selector else None
        return list(self.request("GET", self.resource(kind).path("", namespace), params=params)["items"])

    def create(self, body: Object) -> Object:
        """Create an object from its manifest; its status is kept where the server keeps one at creation."""
        meta = body["metadata"]
        group = body["apiVersion"].rpartition("/")[0]
        resource = self.resource(f"{body['kind']}.{group}" if group else body["kind"])
        path = resource.path("", meta.get("namespace", "default") if resource.namespaced else "")
        return dict(self.request("POST", path, body))

    def apply(self, body: Object) -> Object:
        """Create an object from its manifest, or change it, as `kubectl apply --server-side` does, much faster."""
        meta = body["metadata"]
        group, _, version = body["apiVersion"].rpartition("/")
        resource = self.resource(f"{body['kind']}.{group}" if group else body["kind"])
        path = replace(resource, version=version).path(meta["name"], meta.get("namespace", ""))
        params = {"fieldManager": "kubectl", "force": "true"}
        return dict(self.request("PATCH", path, body, content_type="application/apply-patch+yaml", params=params))

    def delete(self, kind: str, name: str, namespace: str = "default", *, grace: int | None = None) -> None:
        """Delete an object; one that is not there is deleted already."""
        params = {} if grace is None else {"gracePeriodSeconds": str(grace)}
        try:
            self.request("DELETE", self.resource(kind).path(name, namespace), params=params)
        except ApiError as error:
            if error.status != 404:
                raise

    def patch(self, kind: str, name: str, body: Object, namespace: str = "default", *, status: bool = False) -> Object:
        """Change fields of an object, or of its status, by a JSON merge patch."""
        path = self.resource(kind).path(name, namespace) + ("/status" if status else "")
        return dict(self.request("PATCH", path, body, content_type="application/merge-patch+json"))


def _said(answer: httpx2.Response) -> str:
    try:
        said = answer.json()
    except ValueError:
        return f"the API server answered {answer.status_code}: {answer.text[:200]}"
    message = said.get("message") if isinstance(said, dict) else None
    return str(message or f"the API server answered {answer.status_code}")


def _discovered(answer: Object) -> Iterable[Resource]:
    for group in answer["items"]:
        name = group["metadata"].get("name", "")
        for version in group["versions"]:
            for each in version["resources"]:
                kind = each["responseKind"]["kind"]
                names = {each["resource"], kind.lower(), each.get("singularResource", ""), *each.get("shortNames", ())}
                yield Resource(
                    group=name,
                    version=version["version"],
                    plural=each["resource"],
                    kind=kind,
                    namespaced=each["scope"] == "Namespaced",
                    verbs=frozenset(each["verbs"]),
                    names=frozenset(names - {""}),
                )
