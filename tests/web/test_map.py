"""The map: nested domains, gangs that light up, and changes that arrive while it is looked at."""

from __future__ import annotations

from collections.abc import Callable

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Visit
from tests.web.page_service import PageService, gang

Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def busy(served: PageService) -> PageService:
    """Run a gang in a rack, one that misses its preference, and a small one."""
    served.run(gang("train", 4))
    served.run(gang("spread", 6, "[{key: rack, requirementType: preferred}]"))
    served.run(gang("small", 1, gpu=2))
    served.run(gang("serve", 3, "[{key: clique}]"), pool="nvl72")
    return served


def node(page: Page, name: str) -> str:
    """Return what a screen reader says about a node."""
    return page.locator(f'.node[aria-label^="node {name},"]').get_attribute("aria-label") or ""


def test_domains_are_nested_and_say_what_is_used_and_what_still_fits(busy: PageService, visit: Open) -> None:
    seen = visit(f"{busy.url}/map?pool=training")
    page = seen.page
    page.locator(".node").first.wait_for()
    names = page.locator(".domain .name").evaluate_all("all => all.map(one => one.firstChild.textContent)")
    assert names == ["zone east", "rack e1", "rack e2", "no rack", "zone west", "rack w1", "rack w2", "rack w3"]
    expect(page.locator(".numbers", has_text="16/16 used · 0 free · fits 0×4").first).to_be_visible()
    assert "cordoned" in node(page, "e2-off")
    assert "not ready" in node(page, "e2-down")
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    assert seen.errors == []


def test_a_click_on_a_task_lights_up_its_gang_and_outlines_its_domain(busy: PageService, visit: Open) -> None:
    page = visit(f"{busy.url}/map?pool=training").page
    page.locator('[data-task="train-1/w0"]').click()
    expect(page.locator(".task.lit")).to_have_count(4)
    expect(page.locator(".domain rect.outlined")).to_have_count(1)
    expect(page.get_by_label("Selection")).to_contain_text("required rack: held")
    expect(page.locator(".node.dim").nth(10)).to_be_attached()
    page.wait_for_url("**/map?**workflow=train-1**")
    assert "group=gang" in page.url
    page.keyboard.press("Escape")
    expect(page.locator(".task.lit")).to_have_count(0)


def test_a_link_shows_what_its_sender_saw(busy: PageService, visit: Open) -> None:
    page = visit(f"{busy.url}/map?pool=training&workflow=spread-1&group=gang").page
    expect(page.locator(".task.lit")).to_have_count(6)
    expect(page.get_by_label("Selection")).to_contain_text("preferred rack: missed")
    expect(page.locator(".domain rect.missed").nth(1)).to_be_attached()


def test_a_box_of_unlabelled_nodes_dims_with_its_own_nodes(busy: PageService, visit: Open) -> None:
    page = visit(f"{busy.url}/map?pool=training&filter=e2-off").page
    expect(page.locator(".domain.dim").filter(has_text="no rack")).to_have_count(1)
    expect(page.locator(".domain:not(.dim)").filter(has_text="zone east")).to_have_count(1)
    page.get_by_label("Filter").fill("spare-1")
    expect(page.locator(".domain:not(.dim)").filter(has_text="no rack")).to_have_count(1)


def test_the_panel_lists_the_tasks_of_a_gang_under_their_domains(busy: PageService, visit: Open) -> None:
    page = visit(f"{busy.url}/map?pool=training&workflow=train-1&group=gang").page
    listed = page.get_by_label("Selection").get_by_role("listitem")
    expect(listed).to_have_count(5)  # a rack and its four tasks
    expect(listed.first).to_contain_text(" / ")
    expect(listed.nth(1)).to_contain_text("w")


def test_the_keyboard_does_what_the_mouse_does_and_says_it(busy: PageService, visit: Open) -> None:
    page = visit(f"{busy.url}/map?pool=training").page
    area = page.get_by_role("application")
    page.locator(".node").first.wait_for()
    area.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[aria-live=polite]")).to_contain_text("GPUs used")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Selection")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Selection")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Selection")).to_have_count(0)
    page.keyboard.press("/")
    page.keyboard.type("cordoned")
    expect(page.locator(".node:not(.dim)")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()


def test_a_table_says_what_the_map_shows(busy: PageService, visit: Open) -> None:
    page = visit(f"{busy.url}/map?pool=training&view=table").page
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="rack w1", exact=True))
    expect(row).to_be_visible()
    page.get_by_role("button", name="train-1 / w0").click()
    expect(page.get_by_label("Selection")).to_contain_text("16 GPUs on 4 nodes")


def test_changes_arrive_while_the_map_is_open(busy: PageService, visit: Open) -> None:
    page = visit(f"{busy.url}/map?pool=training").page
    page.locator(".node").first.wait_for()
    ident = busy.run(gang("guest", 2))
    expect(page.locator(f'[data-task="{ident}/w0"]')).to_be_visible()
    busy.cancel(ident)
    expect(page.locator(f'[data-task="{ident}/w0"]')).to_have_count(0)


def test_names_of_nvlink_domains_are_short_and_distinct(busy: PageService, visit: Open) -> None:
    page = visit(f"{busy.url}/map?pool=nvl72&pool=training").page
    page.locator(".node").first.wait_for()
    sections = page.locator("section")
    expect(sections).to_have_count(2)
    first = page.locator("section", has=page.get_by_role("heading", name="nvl72"))
    # Each pool comes with an answer of its own.
    first.locator(".node").first.wait_for()
    texts = first.locator(".domain .name").evaluate_all("all => all.map(one => one.firstChild.textContent)")
    short = [text for text in texts if text.startswith("clique")]
    assert len(set(short)) == 2
    assert all(len(text) < 20 for text in short)


def test_pools_are_shown_side_by_side_and_each_is_chosen_and_filtered_alone(busy: PageService, visit: Open) -> None:
    page = visit(f"{busy.url}/map?pool=training").page
    page.get_by_label("nvl72", exact=True).check()
    page.wait_for_url("**/map?pool=training&pool=nvl72")
    left, right = (page.get_by_label(f"Map of pool {name}", exact=True) for name in ("training", "nvl72"))
    for each in (left, right):
        expect(each.locator(".node").first).to_be_visible()
        expect(each.get_by_role("status").filter(has_text="● live")).to_be_visible()
    boxes = [each.bounding_box() for each in (left, right)]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    assert abs(boxes[0]["y"] - boxes[1]["y"]) < 2
    right.locator('[data-task="serve-1/w0"]').click()
    expect(right.locator(".task.lit")).to_have_count(3)
    expect(left.locator(".task.lit")).to_have_count(0)
    page.get_by_label("training", exact=True).uncheck()
    expect(left).to_have_count(0)
    expect(right.locator(".task.lit")).to_have_count(3)


def test_nothing_leaves_the_origin_and_nothing_is_inline(busy: PageService, visit: Open) -> None:
    seen = visit(f"{busy.url}/")
    seen.page.locator(".node").first.wait_for()
    assert seen.requests
    assert [url for url in seen.requests if not url.startswith(busy.url)] == []
    answer = httpx2.get(f"{busy.url}/")
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "<style" not in answer.text
    assert "onclick" not in answer.text
    assert seen.errors == []
