"""Keys of the page, and addresses that show what their sender saw."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.web.conftest import Visit
from tests.web.page_service import PageService, gang

Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def train(served: PageService) -> str:
    """Run a gang in one rack."""
    return served.run(gang("train", 4))


def test_a_command_goes_to_a_workflow_a_pool_or_a_page(served: PageService, train: str, visit: Open) -> None:
    seen = visit(f"{served.url}/map")
    page = seen.page
    page.locator(".node").first.wait_for()
    page.keyboard.press(":")
    page.get_by_role("combobox", name="Command").fill(f"logs {train}")
    expect(page.get_by_role("option", name=f"logs {train}")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/workflows/{train}?tab=logs")
    page.keyboard.press(":")
    page.get_by_role("combobox", name="Command").fill("pool")
    expect(page.get_by_role("option", name="pool nvl72")).to_be_visible()
    page.get_by_role("option", name="pool training").click()
    page.wait_for_url("**/pools/training")
    expect(page.get_by_label("Pool training")).to_be_visible()
    expect(page.get_by_label("Pool nvl72")).to_have_count(0)
    page.keyboard.press("y")
    expect(page.get_by_role("dialog")).to_contain_text("label: topology.kubernetes.io/rack")
    page.keyboard.press("Escape")
    page.keyboard.press(":")
    page.keyboard.type("no such thing")
    expect(page.get_by_text("Nothing has that name.")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    assert seen.errors == []


def test_a_selection_is_described_and_shown_as_yaml(served: PageService, train: str, visit: Open) -> None:
    page = visit(f"{served.url}/map?pool=training&node=w1-n1").page
    expect(page.get_by_label("Selection")).to_be_visible()
    page.keyboard.press("d")
    expect(page.get_by_label("Selection")).to_be_focused()
    page.keyboard.press("y")
    expect(page.get_by_role("dialog", name="node w1-n1")).to_contain_text("gpus: 4")
    page.keyboard.press("Escape")
    page.locator(f'[data-task="{train}/w0"]').click()
    page.keyboard.press("y")
    page.wait_for_url(f"**/workflows/{train}?tab=spec")
    page.keyboard.press("d")
    page.wait_for_url(f"**/workflows/{train}")
    page.goto(f"{served.url}/workflows")
    page.get_by_role("link", name=train).focus()
    page.keyboard.press("y")
    page.wait_for_url(f"**/workflows/{train}?tab=spec")


def test_a_link_shows_the_way_out_that_its_sender_looked_at(served: PageService, train: str, visit: Open) -> None:
    del train
    taken = [served.run(gang("fill", size)) for size in (4, 4, 3, 3)]
    ident = served.submit(gang("late", 3))
    served.until(ident, lambda found: bool(found["waiting"]))
    page = visit(f"{served.url}/workflows/{ident}?tab=why").page
    page.locator(".way button").first.click()
    expect(page.get_by_text("Nothing has been changed")).to_be_visible()
    other = visit(page.url).page
    expect(other.locator(".way button").first).to_have_attribute("aria-pressed", "true")
    expect(other.get_by_text("Nothing has been changed")).to_be_visible()
    for each in (ident, *taken):
        served.cancel(each)


def test_submit_prints_the_address_of_the_workflow(served: PageService, tmp_path: Path, visit: Open) -> None:
    file = tmp_path / "w.yaml"
    file.write_bytes(gang("told", 1).source)
    command = (sys.executable, "-m", "coterie", "submit", str(file), "--pool", "training", "--server", served.url)
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    (url,) = [line.removeprefix("web page: ") for line in done.stderr.splitlines() if line.startswith("web page: ")]
    assert url == f"{served.url}/workflows/told-1"
    expect(visit(url).page.get_by_role("heading", name="told-1")).to_be_visible()
    served.cancel("told-1")


def test_no_key_is_lost_while_a_dialog_closes(served: PageService, visit: Open) -> None:
    seen = visit(f"{served.url}/map?pool=training")
    page = seen.page
    page.locator(".node").first.wait_for()
    keys, command = page.get_by_role("dialog", name="Keys"), page.get_by_role("combobox", name="Command")
    for _ in range(10):
        page.keyboard.press(":")
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        expect(keys).to_be_visible()
        page.keyboard.press("Escape")
        page.keyboard.press(":")
        expect(command).to_be_focused()
        page.keyboard.press("Escape")
        page.keyboard.press(":")
        expect(command).to_be_focused()
        page.keyboard.press("Escape")
        expect(command).to_have_count(0)
    assert seen.errors == []
