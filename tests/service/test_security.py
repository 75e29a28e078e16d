"""Tokens and roles: identification, expiry, permissions and secrecy."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path

import pytest
import structlog
from starlette.testclient import TestClient

from coterie.errors import Conflict, Forbidden, Unauthorized, UsageError
from coterie.json_log import log_as_json
from coterie.service.addresses import check_address, is_loopback
from coterie.service.api.app import create_app
from coterie.service.security import LOCAL, Caller, Role, caller_of, digest, new_token
from coterie.service.server import served_names
from coterie.service.service import Service
from coterie.store import Store, Token
from tests.service.running_service import ServiceFolder, single

NOW = 1000.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "store.db")) as found:
        yield found


def test_a_token_says_who_sends_it(store: Store) -> None:
    text = new_token(store, "ann-laptop", "user", now=NOW, owner="ann")
    assert caller_of(store, f"Bearer {text}", open_to_all=False, now=NOW) == Caller("ann", Role.USER)
    assert caller_of(store, f"bearer  {text} ", open_to_all=False, now=NOW).name == "ann"


def test_the_store_keeps_no_text_of_a_token(store: Store, tmp_path: Path) -> None:
    text = new_token(store, "ann", "user", now=NOW)
    assert len(text) > 40
    (kept,) = store.tokens()
    assert kept.hash == digest(text)
    assert all(text.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic YTpi", "Bearer coterie_wrong", "\xff", "a b"])
def test_anything_else_is_not_known(store: Store, header: str | None) -> None:
    new_token(store, "ann", "user", now=NOW)
    for open_to_all in (True, False):
        with pytest.raises(Unauthorized) as caught:
            caller_of(store, header, open_to_all=open_to_all, now=NOW)
        assert caught.value.hint


def test_a_token_ends_when_it_expires_or_is_deleted(store: Store) -> None:
    text = new_token(store, "ann", "user", now=NOW, expires=NOW + 10)
    header = f"Bearer {text}"
    assert caller_of(store, header, open_to_all=False, now=NOW + 9).name == "ann"
    with pytest.raises(Unauthorized, match="expired"):
        caller_of(store, header, open_to_all=False, now=NOW + 10)
    store.delete_token(store.tokens()[0].id)
    with pytest.raises(Unauthorized, match="not valid"):
        caller_of(store, header, open_to_all=False, now=NOW)


def test_a_role_of_a_later_version_opens_nothing(store: Store) -> None:
    store.add_token(Token("i", "n", digest("x"), "owner", "n", NOW))
    with pytest.raises(Unauthorized):
        caller_of(store, "Bearer x", open_to_all=False, now=NOW)


def test_the_first_token_closes_the_door(store: Store) -> None:
    assert caller_of(store, None, open_to_all=True, now=NOW) == LOCAL
    new_token(store, "ann", "admin", now=NOW)
    with pytest.raises(Unauthorized):
        caller_of(store, None, open_to_all=True, now=NOW)


@pytest.mark.parametrize(
    ("name", "role", "expires", "words"),
    [
        ("ann", "root", None, "there is no role"),
        ("ann", "uesr", None, "there is no role"),
        ("", "user", None, "cannot be the name"),
        ("a\nb", "user", None, "cannot be the name"),
        ("a" * 64, "user", None, "cannot be the name"),
        ("ann", "user", NOW, "expired already"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(
    store: Store, name: str, role: str, expires: float | None, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        new_token(store, name, role, now=NOW, expires=expires)
    assert store.tokens() == ()


def test_two_tokens_have_two_names(store: Store) -> None:
    new_token(store, "ann", "user", now=NOW)
    with pytest.raises(Conflict):
        new_token(store, "ann", "user", now=NOW)


def test_roles_cover_those_below_them() -> None:
    for role in Role:
        for needed in Role:
            caller = Caller("ann", role)
            if list(Role).index(role) >= list(Role).index(needed):
                caller.need(needed)
            else:
                with pytest.raises(Forbidden):
                    caller.need(needed)
    Caller("ann", Role.USER).need_own("ann")
    Caller("eve", Role.ADMIN).need_own("ann")
    for stranger in (Caller("eve", Role.USER), Caller("ann", Role.VIEWER)):
        with pytest.raises(Forbidden):
            stranger.need_own("ann")


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),  # noqa: S104 - judged, not bound
        ("::", False),
        ("", False),
        ("10.0.0.1", False),
        ("example.com", False),
        ("localhost.example.com", False),
    ],
)
def test_only_loopback_is_served_without_tokens(host: str, near: bool) -> None:  # noqa: FBT001 - a column of the table
    assert is_loopback(host) is near
    check_address(host, tokens=True)
    if near:
        check_address(host, tokens=False)
    else:
        with pytest.raises(UsageError) as caught:
            check_address(host, tokens=False)
        assert "token" in caught.value.hint


def test_names_that_are_served() -> None:
    assert served_names("127.0.0.1", ()) == frozenset({"127.0.0.1", "localhost", "::1"})
    assert served_names("10.0.0.1", ("coterie.example",)) == frozenset({"10.0.0.1", "coterie.example"})
    assert served_names("::", ()) is None
    assert "coterie.example" in (served_names("::", ("coterie.example",)) or ())


READS = (
    "/api/v1/workflows",
    "/api/v1/workflows/anns-1",
    "/api/v1/workflows/anns-1/why",
    "/api/v1/workflows/anns-1/placement",
    "/api/v1/workflows/anns-1/spec",
    "/api/v1/workflows/anns-1/logs?task=t",
    "/api/v1/workflows/anns-1/events",
    "/api/v1/events",
    "/api/v1/pools",
    "/api/v1/pools/main",
    "/api/v1/pools/main/map",
    "/api/v1/topologies",
    "/api/v1/topologies/main",
    "/api/v1/whoami",
    "/api/v1/health",
    "/metrics",
    "/api/workflow",
    "/api/workflow/anns-1",
    "/api/workflow/anns-1/logs",
    "/api/workflow/anns-1/spec",
    "/api/workflow/anns-1/error_logs",
    "/api/workflow/anns-1/events",
    "/api/pool",
    "/api/pool_quota",
    "/api/task",
    "/api/resources",
    "/api/resources/r1-n1",
)
OPEN = {"/healthz", "/readyz", "/health", "/api/version"}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[TestClient, dict[str, dict[str, str]]]]:
    """Yield an application with tokens: ann and bob are users, vic a viewer, root an admin; ann has a workflow."""
    service = Service(ServiceFolder(tmp_path / "place").settings())
    roles = {"ann": "user", "bob": "user", "vic": "viewer", "root": "admin"}
    headers = {
        name: {"authorization": f"Bearer {new_token(service.store, name, role, now=time.time())}"}
        for name, role in roles.items()
    }
    try:
        client = TestClient(create_app(service, open_to_all=True))
        source = single("anns", "true").source.decode()
        assert client.post("/api/v1/workflows", json={"source": source}, headers=headers["ann"]).status_code == 201
        yield client, {**headers, "nobody": {}, "liar": {"authorization": "Bearer coterie_x"}}
    finally:
        service.stop()


def test_every_path_but_the_probes_asks_who_it_is(served: tuple[TestClient, dict[str, dict[str, str]]]) -> None:
    client, headers = served
    schema = client.get("/api/v1/openapi.json").json()
    for path, methods in schema["paths"].items():
        for method in methods:
            # Whoever signs out loses a cookie of their own, and nothing else.
            if path in OPEN or (method, path) == ("delete", "/api/v1/session"):
                continue
            at = (
                path.replace("{workflow}", "anns-1")
                .replace("{name}", "anns-1")
                .replace("{pool}", "main")
                .replace("{node}", "r1-n1")
            )
            for caller in ("nobody", "liar"):
                answer = client.request(method.upper(), at, headers=headers[caller])
                assert answer.status_code == 401, (method, path, answer.text)
                assert answer.headers["www-authenticate"] == "Bearer"


def test_all_roles_may_look_at_everything(served: tuple[TestClient, dict[str, dict[str, str]]]) -> None:
    client, headers = served
    for path in READS:
        for caller in ("ann", "bob", "vic", "root"):
            assert client.get(path, headers=headers[caller]).status_code == 200, (caller, path)


SOURCE = single("more", "true").source.decode()
POOL = {"backend": "lab"}


@pytest.mark.parametrize(
    ("method", "path", "body", "allowed"),
    [
        ("POST", "/api/v1/workflows", {"source": SOURCE}, {"ann", "bob", "root"}),
        ("POST", "/api/pool/main/workflow", {"file": SOURCE}, {"ann", "bob", "root"}),
        ("POST", "/api/v1/workflows?dry_run=true", {"source": SOURCE}, {"ann", "bob", "root", "vic"}),
        ("POST", "/api/v1/plan", {"source": SOURCE}, {"ann", "bob", "root", "vic"}),
        ("POST", "/api/v1/workflows/anns-1/cancel", {}, {"ann", "root"}),
        ("POST", "/api/workflow/anns-1/cancel", None, {"ann", "root"}),
        ("POST", "/api/v1/workflows/anns-1/retry", {}, {"ann", "root"}),
        ("POST", "/api/pool/main/workflow/anns-1/restart", None, {"ann", "root"}),
        ("POST", "/api/pool/main/workflow?workflow_id=anns-1", None, {"ann", "bob", "root"}),
        ("DELETE", "/api/v1/workflows/anns-1", None, {"ann", "root"}),
        ("PUT", "/api/v1/pools/new", POOL, {"root"}),
        ("PUT", "/api/v1/pools/new?dry_run=true", POOL, {"root"}),
        ("DELETE", "/api/v1/pools/new", None, {"root"}),
    ],
)
def test_changes_need_a_role(
    served: tuple[TestClient, dict[str, dict[str, str]]], method: str, path: str, body: object, allowed: set[str]
) -> None:
    client, headers = served
    for caller in ("vic", "bob", "ann", "root"):
        answer = client.request(method, path, json=body, headers=headers[caller])
        assert (answer.status_code != 403) is (caller in allowed), (caller, answer.text)


# Calls that change nothing, whatever their method.
HARMLESS = {("post", "/api/v1/plan"), ("post", "/api/v1/session"), ("delete", "/api/v1/session")}


def test_every_call_that_changes_something_is_refused_to_a_viewer_and_one_on_pools_to_users(
    served: tuple[TestClient, dict[str, dict[str, str]]],
) -> None:
    client, headers = served
    bodies: tuple[object, ...] = (None, {}, {"source": SOURCE}, {"file": SOURCE}, POOL)
    changes = [
        (method, path)
        for path, methods in client.get("/api/v1/openapi.json").json()["paths"].items()
        for method in methods
        if method != "get" and (method, path) not in HARMLESS
    ]
    assert len(changes) > 8
    for method, path in changes:
        at = path.replace("{workflow}", "anns-1").replace("{pool}", "main").replace("{name}", "anns-1")
        # Bob may submit, and nothing else of these: the workflow is Ann's, and the pool is that of admins.
        submits = (method, path) in {("post", "/api/v1/workflows"), ("post", "/api/pool/{pool}/workflow")}
        for caller in ("vic",) if submits else ("vic", "bob"):
            answers = [client.request(method.upper(), at, json=body, headers=headers[caller]) for body in bodies]
            found = {answer.status_code for answer in answers}
            # A body of the wrong shape is refused as such at most.
            assert 403 in found, (caller, method, path, found)
            assert found <= {400, 403, 415, 422}, (caller, method, path, found)


def test_a_workflow_belongs_to_the_owner_of_the_token(served: tuple[TestClient, dict[str, dict[str, str]]]) -> None:
    client, headers = served
    assert client.get("/api/v1/workflows/anns-1", headers=headers["vic"]).json()["owner"] == "ann"
    assert client.get("/api/v1/whoami", headers=headers["vic"]).json() == {"name": "vic", "role": "viewer"}


def test_the_log_holds_no_secret(served: tuple[TestClient, dict[str, dict[str, str]]]) -> None:
    client, headers = served
    said = io.StringIO()
    with redirect_stderr(said):
        log_as_json()
        try:
            token = headers["ann"]["authorization"].removeprefix("Bearer ")
            source = SOURCE.replace("more", "hush").replace("'true'", "'echo hunter2'")
            client.post(f"/api/v1/workflows?dry_run={token}", json={"source": source}, headers=headers["ann"])
            client.post("/api/v1/workflows", json={"source": source}, headers=headers["ann"])
        finally:
            structlog.reset_defaults()
    lines = [json.loads(line) for line in said.getvalue().splitlines()]
    assert [(line["path"], line["status"], line["caller"]) for line in lines] == [
        ("/api/v1/workflows", 422, "ann"),
        ("/api/v1/workflows", 201, "ann"),
    ]
    assert token not in said.getvalue()
    assert "hunter2" not in said.getvalue()
