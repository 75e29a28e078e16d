"""The looks of the page: accessible by the rules of axe, in light and dark, on small screens; and its pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Visit
from tests.web.page_service import ROOT, PageService, gang

Open = Callable[..., Visit]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
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
    return served


def settled(page: Page) -> None:
    expect(page.locator("main")).not_to_contain_text("Loading")
    page.wait_for_load_state("load")


def serious(page: Page) -> list[tuple[str, str]]:
    """Return the rules of accessibility that a page breaks, with an element of each."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        (each["id"], each["nodes"][0]["html"][:200])
        for each in found["violations"]
        if each["impact"] in {"serious", "critical"}
    ]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("place", PLACES)
def test_no_page_has_serious_barriers(full: PageService, visit: Open, place: str, dark: bool) -> None:  # noqa: FBT001 - a parameter of the test
    page = visit(f"{full.url}{place}", dark=dark).page
    settled(page)
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
    }
    for name, place in shown.items():
        file = screenshots / f"web-{name}.png"
        page = visit(f"{full.url}{place}", width=1360, height=820).page
        settled(page)
        page.locator(".node").first.wait_for()
        if rewrite:
            file.parent.mkdir(exist_ok=True)
            page.screenshot(path=file)
        assert file.is_file()
