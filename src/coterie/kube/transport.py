"""The errors of requests without an answer: unreachable, untrusted, too slow, or without usable credentials."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import httpx2

from coterie.errors import CoterieError, Unavailable, UsageError
from coterie.kube.errors import RequestDescription


def unanswered(call: RequestDescription, error: Exception) -> CoterieError:
    """Return the error for a request without an answer."""
    for cause in _chain(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _untrusted(call, cause)
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            reason = (getattr(cause, "reason", None) or str(cause)).replace("_", " ").lower()
            hint = "Check that the address is the API's, and the client certificate in the kubeconfig."
            return UsageError(f"TLS with {call.server} fails: {reason}", hint)
        if isinstance(cause, socket.gaierror):
            host = httpx2.URL(call.server).host
            return Unavailable(f"the name {host} cannot be resolved", "Check the network or the VPN.")
    if isinstance(error, httpx2.InvalidURL | httpx2.UnsupportedProtocol | httpx2.LocalProtocolError):
        hint = "It should look like https://HOST:6443."
        return UsageError(
            f'the server "{call.server}" of context "{call.context}" is not a valid address: {error}', hint
        )
    if isinstance(error, httpx2.ConnectTimeout | httpx2.ConnectError | httpx2.ProxyError):
        return Unavailable(f"{call.server} cannot be reached: {_reason(error)}", _look(call))
    if isinstance(error, httpx2.TimeoutException):
        return Unavailable(f"{call.server} did not answer in time ({call.verb} {call.title()})", _look(call))
    return Unavailable(f"{call.server} closed the connection: {_reason(error)}", _look(call))


def _untrusted(call: RequestDescription, cause: ssl.SSLCertVerificationError) -> CoterieError:
    problem = cause.verify_message or "certificate verify failed"
    problem = problem[:1].lower() + problem[1:].removesuffix(".")
    if "mismatch" in problem or "doesn't match" in problem or "not valid for" in problem:
        hint = "Use a name that is in the certificate, or set tls-server-name in the kubeconfig."
    elif "expired" in problem:
        hint = "The server's certificate has to be renewed; check this machine's clock too."
    else:
        hint = "Put the cluster's CA into certificate-authority-data of the kubeconfig."
    return UsageError(f"the certificate of {call.server} is not trusted: {problem}", hint)


def _look(call: RequestDescription) -> str:
    check = f"kubectl --context {call.context} get --raw /readyz"
    return f"Check that the cluster, the network and the VPN are up. Compare: {check}"


def _reason(error: Exception) -> str:
    for cause in _chain(error):
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror[:1].lower() + cause.strerror[1:]
    if isinstance(error, httpx2.TimeoutException):
        return "it did not answer in time"
    text = " ".join(str(error).split())
    return text[:1].lower() + text[1:].removesuffix(".") if text else "no reason given"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the causes of an error, the innermost first, since the outer ones only repeat it."""
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in found:
        found.append(current)
        current = current.__cause__ or current.__context__
    yield from reversed(found)
