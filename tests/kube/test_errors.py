"""Every answer of a server, and every missing one, is one line with a hint, as an error of the right kind."""

from __future__ import annotations

import itertools
import socket
import ssl

import httpx2
import pytest

from coterie.errors import CoterieError, NotFound, Unavailable, UsageError
from coterie.kube.api import Timeouts
from coterie.kube.errors import ApiForbidden, ApiUnauthorized, Expired, MissingKind
from coterie.kube.kinds import COMPUTE_DOMAIN, NODE, POD, POD_GROUP, TOPOLOGY, ObjectKind
from coterie.kube.reads import ObjectQuery, get, list_all
from coterie.kube.wire import Identified
from tests.kube.faulty_transport import SERVER, Script, Stream, answer, api, status

FORBIDDEN = 'nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" at the cluster scope'


def caused(inner: BaseException, outer: Exception) -> Exception:
    outer.__cause__ = inner
    return outer


def untrusted(message: str, code: int = 20) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, message)
    error.verify_message, error.verify_code = message, code
    return error


def failing(made: httpx2.Response | Exception, kind: ObjectKind = NODE, name: str = "") -> CoterieError:
    lab = api(Script([made]))
    namespace = "team" if kind.namespaced else None
    with pytest.raises(CoterieError) as caught:
        _ = get(lab, kind, name, Identified, namespace) if name else list_all(lab, ObjectQuery(kind), Identified)
    assert "\n" not in str(caught.value)
    assert "\n" not in caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("made", "kind", "said", "hint"),
    [
        (status(401, "Unauthorized", "Unauthorized"), ApiUnauthorized, 'credentials of context "lab"', "log in again"),
        (
            status(403, "Forbidden", FORBIDDEN),
            ApiForbidden,
            'user "bob" may not list nodes in the whole cluster',
            "rule",
        ),
        (status(403, "Forbidden", "quota is used up"), ApiForbidden, "quota is used up", ""),
        (status(410, "Expired", "too old"), Expired, "no longer available", "list"),
        (status(429, "TooManyRequests", "slow down"), Unavailable, "busy (429): slow down", "Try again"),
        (status(500, "InternalError", "etcd is gone"), Unavailable, "etcd is gone", "Try again"),
        (status(503, "ServiceUnavailable", "starting"), Unavailable, "starting", "Try again"),
        (httpx2.Response(502, text="<html>Bad Gateway</html>"), Unavailable, "(502)", "Try again"),
        (httpx2.Response(404, text="<html>nginx</html>"), UsageError, "does not answer like a Kubernetes API", "proxy"),
        (httpx2.Response(302, headers={"location": "/login"}), UsageError, "HTTP 302", "login page"),
        (httpx2.Response(200, text="<html>login</html>"), UsageError, "does not answer like", "login page"),
        (answer({"kind": "NodeList"}), UsageError, 'required field "items" is missing', "address"),
        (answer({"items": [{"metadata": {}}], "metadata": {}}), UsageError, "name", "address"),
        (httpx2.Response(200, content=b'{"items": ["\xff"]}'), UsageError, "does not answer like", "address"),
        (status(405, "MethodNotAllowed", "not allowed"), CoterieError, "not allowed (405)", ""),
        (httpx2.ConnectError("refused"), Unavailable, "cannot be reached: refused", "VPN"),
        (httpx2.ConnectTimeout("slow"), Unavailable, "cannot be reached", "VPN"),
        (httpx2.ReadTimeout("slow"), Unavailable, "did not answer in time (list nodes)", "--context lab"),
        (httpx2.ReadError("reset"), Unavailable, "closed the connection: reset", "VPN"),
        (httpx2.RemoteProtocolError("half a header"), Unavailable, "half a header", "VPN"),
        (httpx2.ProxyError("407"), Unavailable, "cannot be reached: 407", "VPN"),
        (httpx2.UnsupportedProtocol("no http"), UsageError, "is not a valid address", "https://HOST:6443"),
        (
            caused(socket.gaierror(-2, "Name or service not known"), httpx2.ConnectError("x")),
            Unavailable,
            "the name cluster.test cannot be resolved",
            "VPN",
        ),
        (
            caused(ConnectionRefusedError(111, "Connection refused"), httpx2.ConnectError("x")),
            Unavailable,
            "connection refused",
            "VPN",
        ),
        (
            caused(untrusted("unable to get local issuer certificate"), httpx2.ConnectError("x")),
            UsageError,
            "is not trusted: unable to get local issuer",
            "certificate-authority-data",
        ),
        (
            caused(untrusted("Hostname mismatch, certificate is not valid for 'x'.", 62), httpx2.ConnectError("x")),
            UsageError,
            "hostname mismatch",
            "tls-server-name",
        ),
        (
            caused(untrusted("certificate has expired", 10), httpx2.ConnectError("x")),
            UsageError,
            "certificate has expired",
            "renewed",
        ),
        (
            caused(ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong"), httpx2.ConnectError("x")),
            UsageError,
            "TLS with https://cluster.test:6443 fails",
            "address",
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else getattr(value, "__name__", ""),
)
def test_a_failure_is_one_error_with_a_line_and_a_hint(
    made: httpx2.Response | Exception, kind: type[CoterieError], said: str, hint: str
) -> None:
    error = failing(made)

    assert type(error) is kind
    assert said in str(error)
    assert hint in error.hint


def test_a_forbidden_verb_names_the_rule_that_is_missing() -> None:
    message = 'pods "p" is forbidden: User "system:serviceaccount:a:b" cannot get resource "pods" in API group ""'
    error = failing(status(403, "Forbidden", message), POD, "p")

    assert str(error) == 'user "system:serviceaccount:a:b" may not get pods in namespace "team"'
    assert error.hint == (
        'Add this rule to a Role that is bound to the user: {apiGroups: [""], resources: ["pods"], verbs: ["get"]}'
    )
    assert isinstance(error, ApiForbidden)
    assert (error.user, error.call.verb, error.call.namespace) == ("system:serviceaccount:a:b", "get", "team")


@pytest.mark.parametrize(
    ("kind", "says", "install"),
    [
        (TOPOLOGY, "no kind Topology (kai.scheduler/v1alpha1)", "KAI Scheduler"),
        (POD_GROUP, "no kind PodGroup (scheduling.run.ai/v2alpha2)", "podgroups.scheduling.run.ai"),
        (COMPUTE_DOMAIN, "no kind ComputeDomain (resource.nvidia.com/v1beta1)", "DRA driver"),
    ],
    ids=lambda value: value.name if isinstance(value, ObjectKind) else "",
)
@pytest.mark.parametrize(
    "made",
    [
        httpx2.Response(404, text="404 page not found\n"),
        status(404, "NotFound", "the server could not find the requested resource", details={}),
    ],
    ids=["plain", "status"],
)
@pytest.mark.parametrize("name", ["", "x"])
def test_a_kind_that_a_cluster_lacks_is_told_apart_from_an_absent_object(
    made: httpx2.Response, kind: ObjectKind, says: str, install: str, name: str
) -> None:
    error = failing(made, kind, name)

    assert isinstance(error, MissingKind)
    assert error.kind == kind
    assert says in str(error)
    assert install in error.hint


def test_an_absent_object_is_not_found() -> None:
    error = failing(status(404, "NotFound", "", details={"name": "p", "kind": "pods"}), POD, "p")

    assert type(error) is NotFound
    assert str(error) == 'there is no Pod "team/p" in the cluster'


def test_an_absent_namespace_is_told_with_how_to_make_it() -> None:
    error = failing(status(404, "NotFound", "", details={"name": "team", "kind": "namespaces"}), POD, "p")

    assert type(error) is NotFound
    assert "kubectl create namespace team" in error.hint


def test_an_answer_that_never_ends_is_given_up() -> None:
    def endless(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, stream=Stream(b" " for _ in itertools.count()))

    connection = api(endless, timeouts=Timeouts(answer_s=0.01))

    with pytest.raises(Unavailable, match="did not answer in time"):
        list_all(connection, ObjectQuery(NODE), Identified)


@pytest.mark.parametrize("name", ["../secrets", "a/b", "a?b", "", "ä", "a b", "."])
def test_a_name_that_is_none_never_gets_into_a_path(name: str) -> None:
    script = Script([answer({})])
    with pytest.raises(UsageError):
        get(api(script), POD, name, Identified, "team")
    with pytest.raises(UsageError):
        get(api(script), POD, "p", Identified, name or "..")
    assert script.asked == []


def test_every_request_says_who_it_is_from() -> None:
    script = Script([answer({"items": [], "metadata": {}})])

    list_all(api(script), ObjectQuery(NODE), Identified)

    assert script.asked[0].headers["user-agent"].startswith("coterie/")
    assert script.asked[0].headers["authorization"] == "Bearer t"
    assert str(script.asked[0].url).startswith(f"{SERVER}/api/v1/nodes?")
