"""The looks of the page: accessible by the rules of axe, in light and dark, on small screens; and its pictures."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.barriers import serious
from tests.web.conftest import Visit
from tests.web.page_service import CLUSTER, PageService, gang, with_history

Open = Callable[..., Visit]
PLACES = [
    "/map?pool=training",
    "/map?pool=training&workflow=train-1&group=gang",
    "/map?pool=training&view=table",
    "/workflows",
    "/workflows/train-1",
    "/workflows/train-1?tab=tasks",
    "/workflows/train-1?tab=timeline",
    "/workflows/late-1?tab=why",
    "/plan?pool=training",
    "/pools",
]


@pytest.fixture(scope="module")
def full(served: PageService) -> PageService:
    """Run gangs of several kinds, and let one wait."""
    served.run(gang("train", 4))
    served.run(gang("spread", 6, "[{key: rack, requirementType: preferred}]"))
    served.run(gang("eval", 2, gpu=2))
    served.run(gang("serve", 3, "[{key: clique}]"), pool="nvl72")
    for _ in range(2):
        served.run(gang("tune", 3))
    served.until(served.submit(gang("late", 4)), lambda found: bool(found["waiting"]))
    with_history(served, "training", gpus=92)
    return served


# The words that come last on each picture.
SAYS = {"map": "required rack: held", "why": "What would help", "pools": "Fragmentation"}


def settled(page: Page) -> None:
    expect(page.locator("main")).not_to_contain_text("Loading")
    page.wait_for_load_state("load")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("place", PLACES)
def test_no_page_has_serious_barriers(full: PageService, visit: Open, place: str, dark: bool) -> None:  # noqa: FBT001 - a parameter of the test
    page = visit(f"{full.url}{place}", dark=dark).page
    settled(page)
    assert serious(page) == []


@pytest.fixture
def edited(full: PageService) -> Iterator[PageService]:
    """Add a pool that can be edited."""
    document = full.ask("GET", "pools/training")["document"]
    full.ask("PUT", "pools/edited", json={**document, "description": "before"})
    yield full
    full.ask("DELETE", "pools/edited")


def edit(page: Page) -> None:
    page.get_by_role("button", name="Edit …").click()
    editor = page.get_by_label("Document of pool edited")
    expect(page.get_by_text("No changes.")).to_be_visible()
    editor.fill(editor.input_value().replace("before", "after"))
    expect(page.get_by_text("This would change")).to_be_visible()


def plan(page: Page, name: str = "preview") -> None:
    page.get_by_label("Workflow file").fill(gang(name, 2).source.decode())
    expect(page.get_by_text(f"{name}: ").first).to_be_visible()


def wrong_plan(page: Page) -> None:
    page.get_by_label("Workflow file").fill(gang("wrong", 2).source.decode().replace("gpu: 4", "gpu: four"))
    expect(page.get_by_role("button", name="line").first).to_be_visible()


def command(page: Page) -> None:
    page.keyboard.press(":")
    page.keyboard.type("train")
    expect(page.get_by_role("option", name="workflow train-1")).to_be_visible()


def as_yaml(page: Page) -> None:
    expect(page.get_by_label("Pool training")).to_be_visible()
    page.keyboard.press("y")
    expect(page.get_by_role("dialog")).to_be_visible()


def opened(page: Page) -> None:
    for each in ("As a table", "Who uses these levels"):
        page.get_by_text(each).first.click()
    expect(page.get_by_role("columnheader", name="group")).to_be_visible()


STATES = [
    ("/pools/edited", edit),
    ("/plan?pool=training", plan),
    ("/plan?pool=training", wrong_plan),
    ("/map?pool=training", command),
    ("/pools/training", as_yaml),
    ("/pools/training", opened),
]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("place", "act"), STATES, ids=lambda each: getattr(each, "__name__", ""))
def test_no_state_of_a_page_has_serious_barriers(
    edited: PageService,
    visit: Open,
    place: str,
    act: Callable[[Page], None],
    dark: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    for width in (1280, 390):
        page = visit(f"{edited.url}{place}", dark=dark, width=width).page
        settled(page)
        act(page)
        assert serious(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_snapshot_has_no_serious_barriers(tmp_path: Path, visit: Open, dark: bool) -> None:  # noqa: FBT001 - a parameter of the test
    cluster, file = tmp_path / "cluster.yaml", tmp_path / "map.html"
    # An overfull node among the others.
    cluster.write_text(f"{CLUSTER}pods:\n- {{owner: job, node: w1-n1, gpu: 6}}\n", encoding="utf-8")
    made = (sys.executable, "-m", "coterie", "map", str(cluster), "-o", "html")
    file.write_bytes(subprocess.run(made, capture_output=True, check=True, timeout=240).stdout)
    page = visit(file.as_uri(), dark=dark).page
    page.locator(".node").first.wait_for()
    assert serious(page) == []


@pytest.mark.parametrize("place", PLACES)
def test_small_screens_need_no_sideways_scrolling(full: PageService, visit: Open, place: str) -> None:
    page = visit(f"{full.url}{place}", width=390, height=844).page
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_pictures_of_the_documents(full: PageService, visit: Open, rewrite: bool, screenshots: Path) -> None:  # noqa: FBT001 - a fixture
    shown = {
        "map": "/map?pool=training&workflow=train-1&group=gang",
        "why": "/workflows/late-1?tab=why",
        "pools": "/pools/training",
    }
    for name, place in shown.items():
        file = screenshots / f"web-{name}.png"
        page = visit(f"{full.url}{place}", width=1360, height=820).page
        settled(page)
        expect(page.locator(".node, figure").first).to_be_visible()
        expect(page.locator("main")).to_contain_text(SAYS[name])
        if rewrite:
            file.parent.mkdir(exist_ok=True)
            page.screenshot(path=file)
        assert file.is_file()
