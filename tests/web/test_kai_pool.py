"""The page beside a pool of a real KAI: its map with a running gang, and why another one waits, in KAI's words too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from lab import Lab
from tests.kai.driver.service_on_kai import CONFIG, add_nodes
from tests.web.conftest import Visit
from tests.web.page_service import PageService, gang

Open = Callable[..., Visit]
ANYWHERE = "[{key: zone}]"


@pytest.mark.usefixtures("built_page")
def test_the_map_and_the_reasons_of_a_pool_that_kai_places(
    lab: Lab, tmp_path: Path, visit: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_nodes(lab)
    monkeypatch.setenv("KUBECONFIG", str(lab.kubeconfig))
    with PageService(tmp_path, CONFIG.replace("NVLINK", "false"), cluster="") as served:
        first = served.run(gang("first", 3, ANYWHERE, gpu=8), pool="gb200")
        seen = visit(f"{served.url}/map?pool=gb200")
        page = seen.page
        expect(page.get_by_label("Map of pool gb200")).to_contain_text("4 nodes · 24/32 GPUs used · 8 free")
        page.locator(f'[data-task="{first}/w0"]').first.click()
        page.wait_for_url("**/map?**workflow=first-1**")
        expect(page.get_by_label("Selection")).to_contain_text("required zone: held")
        second = served.submit(gang("second", 2, gpu=8), pool="gb200")
        served.until(second, lambda found: str((found["waiting"] or {}).get("message", "")).startswith("KAI: "))
        page.goto(f"{served.url}/workflows/{second}?tab=why")
        why = page.get_by_label("Why gang waits")
        expect(why.get_by_text("KAI: ")).to_be_visible()
        expect(why.get_by_text("fits 1 of 2").first).to_be_visible()
        expect(why.get_by_role("link", name=first)).to_be_visible()
        why.get_by_role("button", name=f"fits when {first} ends").click()
        expect(page.get_by_text("Nothing has been changed")).to_be_visible()
        page.goto(f"{served.url}/pools/gb200")
        expect(page.get_by_label("Pool gb200")).to_contain_text("kai · 4 nodes")
        expect(page.get_by_role("link", name=second)).to_be_visible()
        assert seen.errors == []
