"""The rules of accessibility that a page breaks, as axe finds them."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

from tests.web.page_service import ROOT

AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"


def serious(page: Page) -> list[tuple[str, str]]:
    """Return the rules of accessibility that a page breaks, with an element of each."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        (each["id"], each["nodes"][0]["html"][:200])
        for each in found["violations"]
        if each["impact"] in {"serious", "critical"}
    ]
