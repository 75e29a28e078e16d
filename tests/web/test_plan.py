"""The plan preview: faults at their lines, the placement on the map, and a submission that is held to it."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.web.conftest import Visit
from tests.web.page_service import PageService, gang

Open = Callable[..., Visit]


def test_faults_stand_at_their_lines_and_nothing_is_stored(served: PageService, visit: Open) -> None:
    page = visit(f"{served.url}/plan?pool=training").page
    text = gang("typo", 2).source.decode().replace("image: any", "imag: any", 1)
    page.get_by_label("Workflow file").fill(text)
    line = next(at for at, each in enumerate(text.splitlines(), 1) if "imag:" in each)
    expect(page.get_by_role("button", name=f"line {line}").first).to_be_visible()
    expect(page.locator(".gutter .bad").first).to_contain_text(str(line))
    assert [each for each in served.list_workflows() if each["name"] == "typo"] == []


def test_a_plan_is_drawn_before_anything_changes_and_submitted_as_it_is(served: PageService, visit: Open) -> None:
    seen = visit(f"{served.url}/plan?pool=training")
    page = seen.page
    page.get_by_label("Workflow file").fill(gang("previewed", 3).source.decode())
    expect(page.get_by_text("previewed: placed")).to_be_visible()
    expect(page.locator("rect.ghost")).to_have_count(12)
    expect(page.get_by_text("✓ held: required")).to_be_visible()
    assert [each for each in served.list_workflows() if each["name"] == "previewed"] == []
    page.get_by_role("button", name="Submit this plan").click()
    page.wait_for_url("**/workflows/previewed-1")
    served.until("previewed-1", lambda found: found["status"] == "RUNNING")
    assert seen.errors == []
    served.cancel("previewed-1")


def test_a_plan_that_is_no_longer_true_is_not_submitted(served: PageService, visit: Open) -> None:
    page = visit(f"{served.url}/plan?pool=training").page
    page.get_by_label("Workflow file").fill(gang("stale", 4).source.decode())
    expect(page.get_by_text("stale: placed")).to_be_visible()
    other = served.run(gang("first", 4))
    page.get_by_role("button", name="Submit this plan").click()
    expect(page.get_by_text("stale: placed")).to_be_visible()
    assert [each for each in served.list_workflows() if each["name"] == "stale"] == []
    served.cancel(other)


def test_pools_show_their_levels_and_their_queue(served: PageService, visit: Open) -> None:
    taken = [served.run(gang("block", 4)) for _ in range(5)]
    ident = served.submit(gang("queued", 2))
    served.until(ident, lambda found: bool(found["waiting"]))
    page = visit(f"{served.url}/pools").page
    pool = page.get_by_label("Pool training")
    expect(pool.get_by_role("cell", name="topology.kubernetes.io/rack")).to_be_visible()
    expect(pool.get_by_role("link", name=ident)).to_be_visible()
    expect(pool).to_contain_text("position 1")
    for each in (ident, *taken):
        served.cancel(each)
