"""Sign-in by token, roles, and a service that goes away and comes back."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import httpx2
import pytest
from playwright.sync_api import expect

from tests.web.barriers import serious
from tests.web.conftest import PATIENCE_MS, Visit
from tests.web.page_service import PageService, gang

Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def guarded(built_page: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageService]:
    """Run a service that asks for tokens."""
    del built_page
    service = PageService(tmp_path_factory.mktemp("guarded"))
    service.token = create_token(service, "ann", "admin")
    with service:
        yield service


def create_token(service: PageService, name: str, role: str, *more: str) -> str:
    command = (sys.executable, "-m", "coterie", "token", "create", name, "--role", role, *more)
    done = subprocess.run(
        [*command, "--state", str(service.folder / "state")], capture_output=True, text=True, check=True
    )
    return next(word for word in done.stdout.split() if word.startswith("coterie_"))


def test_a_token_signs_in_and_no_script_can_read_it(guarded: PageService, visit: Open) -> None:
    seen = visit(f"{guarded.url}/map?pool=training")
    page = seen.page
    page.get_by_label("Token").fill("coterie_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("the token is not valid")
    assert serious(page) == []
    page.get_by_label("Token").fill(guarded.token)
    page.get_by_role("button", name="Sign in").click()
    page.locator(".node").first.wait_for()
    expect(page.get_by_text("ann · admin")).to_be_visible()
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert page.evaluate("document.cookie + JSON.stringify([localStorage, sessionStorage])") == "[{},{}]"
    page.reload()
    page.locator(".node").first.wait_for()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert page.context.cookies() == []


def test_a_deleted_token_ends_the_stream_and_asks_again(guarded: PageService, visit: Open) -> None:
    token = create_token(guarded, "bob", "viewer")
    page = visit(f"{guarded.url}/map?pool=training").page
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.locator(".node").first.wait_for()
    command = (sys.executable, "-m", "coterie", "token")
    state = ("--state", str(guarded.folder / "state"))
    subprocess.run([*command, "delete", "bob", *state], capture_output=True, text=True, check=True)
    guarded.run(gang("noise", 1))
    expect(page.get_by_label("Token")).to_be_visible()


def test_a_user_ends_a_workflow_of_his_own_alone_and_its_events_say_who_did_it(
    guarded: PageService, visit: Open
) -> None:
    other = guarded.run(gang("other", 1))
    token = create_token(guarded, "dora", "user")
    page = visit(f"{guarded.url}/workflows/{other}?tab=events").page
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("row").filter(has_text="Submitted")).to_contain_text("ann")
    expect(page.get_by_role("button", name="Cancel …")).to_have_count(0)
    page.goto(f"{guarded.url}/plan?pool=training")
    page.get_by_label("Workflow file").fill(gang("own", 2).source.decode())
    page.get_by_role("button", name="Submit this plan").click()
    page.wait_for_url("**/workflows/own-1")
    guarded.until("own-1", lambda found: found["status"] == "RUNNING")
    page.get_by_role("button", name="Cancel …").click()
    page.get_by_role("button", name="Cancel it").click()
    guarded.until("own-1", lambda found: bool(found["finished"]))
    page.get_by_role("link", name="events", exact=True).click()
    expect(page.get_by_role("row").filter(has_text="Submitted")).to_contain_text("dora")
    expect(page.get_by_role("row").filter(has_text="canceled by dora").first).to_be_visible()
    guarded.cancel(other)


def test_an_expired_token_ends_the_session_and_asks_again(guarded: PageService, visit: Open) -> None:
    token = create_token(guarded, "cleo", "viewer", "--expires", "1h")
    page = visit(f"{guarded.url}/workflows").page
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("cleo · viewer")).to_be_visible()
    with sqlite3.connect(guarded.folder / "state" / "coterie.db", timeout=PATIENCE_MS / 1000) as store:
        assert store.execute("UPDATE tokens SET expires_at = ? WHERE name = 'cleo'", (time.time(),)).rowcount == 1
    store.close()
    expect(page.get_by_label("Token")).to_be_visible()


def test_a_session_changes_nothing_for_requests_that_do_not_name_their_origin(guarded: PageService) -> None:
    cookies = {f"coterie_session_{guarded.port}": guarded.token}
    with httpx2.Client(base_url=guarded.url, cookies=cookies) as client:
        assert client.get("/api/v1/whoami").json()["name"] == "ann"
        refused = client.delete("/api/v1/pools/training")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "Forbidden")
        foreign = client.delete("/api/v1/pools/training", headers={"origin": "http://evil.example"})
        assert (foreign.status_code, foreign.json()["error"]["code"]) == (403, "WrongOrigin")
        own = client.delete("/api/v1/pools/none", headers={"origin": guarded.url})
        assert own.status_code == 404


def test_a_map_says_that_it_is_not_live_and_goes_on_when_the_service_is_back(served: PageService, visit: Open) -> None:
    page = visit(f"{served.url}/map?pool=training").page
    page.locator(".node").first.wait_for()
    served.stop()
    expect(page.get_by_role("status").filter(has_text="not live")).to_be_visible()
    served.start()
    expect(page.get_by_role("status").filter(has_text="● live")).to_be_visible()
    ident = served.run(gang("after", 1))
    expect(page.locator(f'[data-task="{ident}/w0"]')).to_be_visible()
