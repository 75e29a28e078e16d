"""One request to one cluster: built and signed by lightkube, sent here, with failures raised as clear errors."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from types import SimpleNamespace, TracebackType
from typing import Any, Self

import httpx2
from lightkube.config.client_adapter import ConnectionParams
from lightkube.config.kubeconfig import SingleConfig
from lightkube.core.exceptions import ConfigError
from lightkube.core.generic_client import ALL_NS, BasicRequest, GenericSyncClient
from lightkube.core.resource import Resource

from coterie.errors import CoterieError, UsageError
from coterie.kube.errors import RequestDescription, error_of, is_transient
from coterie.kube.kinds import ObjectKind
from coterie.kube.kubeconfig import ServerEntry, choose
from coterie.kube.retry import RetryLimits, Transient, with_retries
from coterie.kube.transport import unanswered
from coterie.kube.wire import read_status

MANAGER = "coterie"
DISCOVER = "discover"
_NAME_HINT = "Names are lower case letters, digits, - and ., and begin and end with a letter or digit."
_WITHOUT_NAME = frozenset({"list", "watch", DISCOVER})
_APPLY, _JSON_PATCH = "application/apply-patch+yaml", "application/json-patch+json"
# lightkube reads the namespace of an object that it sends from here; Coterie passes it beside the object.
_UNNAMED = SimpleNamespace(metadata=SimpleNamespace(namespace=None))
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._:-]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The time limits of each part of a request, and of a whole answer."""

    connect_s: float = 5.0
    read_s: float = 30.0
    answer_s: float = 90.0


class _Client(GenericSyncClient):
    """lightkube's client under Coterie's user agent, with the certificates that kubectl accepts."""

    @staticmethod
    def AdapterClient(config: SingleConfig, params: ConnectionParams) -> httpx2.Client:  # noqa: N802 - lightkube's name
        made = params.httpx_params(config)
        # From Python 3.13 on the default refuses CAs without key identifiers, which clusters often have.
        made["verify"].verify_flags &= ~ssl.VERIFY_X509_STRICT
        agent = f"coterie/{version('coterie')}"
        return httpx2.Client(**made, headers={"User-Agent": agent, "Accept": "application/json"})


class Api:
    """A connection to one cluster as one user; safe to use from several threads."""

    def __init__(
        self,
        config: SingleConfig,
        *,
        transport: httpx2.BaseTransport | None = None,
        timeouts: Timeouts | None = None,
        patience: RetryLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_answer: Callable[[RequestDescription, int], None] = lambda _call, _code: None,
    ) -> None:
        self.context = config.context_name
        self.server = config.cluster.server
        self.namespace = config.namespace
        self.timeouts = timeouts or Timeouts()
        self.patience = patience or RetryLimits()
        self._clock = clock
        self._on_answer = on_answer
        self._plugin = config.user.exec if config.user else None
        self._extensions: dict[str, Any] = {}
        cluster = config.cluster
        proxy = None
        if isinstance(cluster, ServerEntry):
            proxy = cluster.proxy_url
            if cluster.tls_server_name:
                self._extensions["sni_hostname"] = cluster.tls_server_name
        limits = httpx2.Timeout(self.timeouts.read_s, connect=self.timeouts.connect_s)
        try:
            self._client = _Client(
                ConnectionParams(timeout=limits, transport=transport, proxy=proxy), config, field_manager=MANAGER
            )
        except (ConfigError, OSError, ValueError, TypeError, httpx2.InvalidURL) as error:
            # ssl.SSLError is an OSError, binascii.Error a ValueError; a key without certificate is a TypeError.
            raise UsageError(
                f'the credentials of context "{self.context}" cannot be used: {_brief(error)}',
                f"Compare: kubectl --context {self.context} cluster-info",
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._client.close()  # type: ignore[no-untyped-call]

    def call_of(
        self, verb: str, kind: ObjectKind, name: str = "", namespace: str | None = None, subresource: str = ""
    ) -> RequestDescription:
        """Return the description of a call; without a namespace, lists cover all and other verbs use the context's."""
        if (name or verb not in _WITHOUT_NAME) and not _NAME.fullmatch(name):
            raise UsageError(f'"{name}" cannot be the name of a {kind.name}', _NAME_HINT)
        if namespace and not _NAME.fullmatch(namespace):
            raise UsageError(f'"{namespace}" cannot be the name of a namespace', _NAME_HINT)
        anywhere = not kind.namespaced or (namespace is None and verb in {"list", "watch"})
        inside = "" if anywhere else namespace or self.namespace
        return RequestDescription(verb, kind, name, inside, self.context, self.server, subresource)

    def send(
        self, call: RequestDescription, params: Mapping[str, str | None] | None = None, body: object = None
    ) -> ApiResponse:
        """Return the answer to a call, with retries while they may help."""
        return with_retries(self.patience, lambda: self.attempt(call, params, body), self._clock)

    def attempt(
        self,
        call: RequestDescription,
        params: Mapping[str, str | None] | None = None,
        body: object = None,
        *,
        limit_s: float | None = None,
    ) -> ApiResponse:
        """Return the answer to a call tried once; raise Transient for a temporary failure, else its error.

        With `limit_s`, this is the time limit of each part of the request, and of the whole answer.
        """
        request = self._request(call, params, body)
        if limit_s is not None:
            request.extensions["timeout"] = dict.fromkeys(request.extensions["timeout"], limit_s)
        end = self._clock() + (self.timeouts.answer_s if limit_s is None else limit_s)
        with self._answering(call, request) as response:
            chunks = []
            for chunk in response.iter_bytes():
                chunks.append(chunk)
                if self._clock() > end:
                    raise httpx2.ReadTimeout("the response does not end", request=request)
        return ApiResponse(response.status_code, b"".join(chunks))

    @contextmanager
    def stream(
        self, call: RequestDescription, params: Mapping[str, str | None], quiet_s: float
    ) -> Iterator[httpx2.Response]:
        """Yield the answer to a watch as it arrives; it may be silent for `quiet_s`. Raises as `attempt` does."""
        request = self._request(call, params, None)
        request.extensions["timeout"] = {**request.extensions["timeout"], "read": quiet_s}
        with self._answering(call, request) as response:
            yield response

    @contextmanager
    def _answering(self, call: RequestDescription, request: httpx2.Request) -> Iterator[httpx2.Response]:
        """Yield a successful answer; every failure, also while it is read, becomes one of this package's errors."""
        response: httpx2.Response | None = None
        try:
            response = self._start(call, request)
            self._on_answer(call, response.status_code)
            if not response.is_success:
                raise failure_of(call, response.status_code, response.headers, response.read())
            yield response
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            told = unanswered(call, error)
            raise told if isinstance(told, UsageError) else Transient(told) from error
        finally:
            if response is not None:
                response.close()

    def _start(self, call: RequestDescription, request: httpx2.Request) -> httpx2.Response:
        try:
            response: httpx2.Response = self._client.send(request, stream=True)
        except ConfigError as error:
            raise self._no_credentials(error) from None
        except (OSError, ValueError, LookupError, TypeError) as error:
            if self._plugin is None:
                raise Transient(unanswered(call, error)) if isinstance(error, OSError) else error from None
            raise self._no_credentials(error) from None
        return response

    def _no_credentials(self, error: Exception) -> CoterieError:
        plugin = self._plugin
        if plugin is None:
            message = f'context "{self.context}" has no usable credentials: {_brief(error)}'
            return UsageError(message, "Log in again, or choose another context: kubectl config get-contexts")
        if isinstance(error, FileNotFoundError):
            hint = plugin.installHint or f"Install {plugin.command}, or put it on the PATH."
            return UsageError(f"the credential plugin {plugin.command} is not installed", " ".join(hint.split()))
        problem = _brief(error) if isinstance(error, ConfigError | OSError) else "it printed no token"
        return UsageError(f"the credential plugin {plugin.command} fails: {problem}", "Log in again, then try again.")

    def _request(
        self, call: RequestDescription, params: Mapping[str, str | None] | None, body: object
    ) -> httpx2.Request:
        if call.verb == DISCOVER:
            basic = BasicRequest("GET", f"apis/{call.kind.api_version}")
        else:
            basic = self._prepared(call, params, body)
        request = self._client.build_adapter_request(basic)
        request.extensions.update(self._extensions)
        return request

    def _prepared(
        self, call: RequestDescription, params: Mapping[str, str | None] | None, body: object
    ) -> BasicRequest:
        resource: type[Resource] = call.kind.resource
        if call.subresource:
            resource = getattr(resource, call.subresource.capitalize())
        everywhere = call.kind.namespaced and not call.namespace
        patch = {"Content-Type": _JSON_PATCH if isinstance(body, list) else _APPLY} if call.verb == "patch" else None
        basic = self._client.prepare_request(
            "list" if call.verb == "watch" else call.verb,
            res=resource,
            obj=_UNNAMED if call.verb in {"patch", "post", "put"} else None,
            name=call.name or None,
            namespace=ALL_NS if everywhere else call.namespace or None,
            watch=call.verb == "watch",
            params=dict(params or {}),
            headers=patch,
        )
        basic.data = body
        return basic


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A successful answer."""

    code: int
    body: bytes


def connect(
    context: str = "",
    *,
    patience: RetryLimits | None = None,
    timeouts: Timeouts | None = None,
    on_answer: Callable[[RequestDescription, int], None] = lambda _call, _code: None,
) -> Api:
    """Return a connection to the cluster of a kubeconfig context, by default the current one.

    `on_answer` gets each request with the status code of its answer.
    """
    return Api(choose(context), patience=patience, timeouts=timeouts, on_answer=on_answer)


def failure_of(
    call: RequestDescription, code: int, headers: Mapping[str, str], body: bytes
) -> CoterieError | Transient:
    """Return the exception for an unsuccessful answer."""
    error = error_of(call, code, body)
    return Transient(error, _asked_wait(headers, body)) if is_transient(code) else error


def _asked_wait(headers: Mapping[str, str], body: bytes) -> float | None:
    """Return the delay that the server requests, if any; a date is ignored, since clocks differ."""
    written = headers.get("retry-after", "").strip()
    if written.isascii() and written.isdigit():
        return float(written)
    status = read_status(body)
    return float(status.about.retry_after_seconds) or None if status else None


def _brief(error: Exception) -> str:
    text = error.strerror or str(error) if isinstance(error, OSError) else str(error)
    text = " ".join(text.split())
    if isinstance(error, OSError) and error.filename:
        text = f"{error.filename}: {text}"
    return text[:200] or type(error).__name__
