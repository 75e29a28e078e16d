"""Odd inputs and faults: pools without nodes or labels, markup in names, and what goes away while open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.web.conftest import Visit
from tests.web.page_service import CLUSTER, CONFIG, PageService, gang

Open = Callable[..., Visit]
NASTY = "<img src=x onerror=alert(1)>"
POOLS = """
  empty:
    backend: lab
    node_selector: {kind: none}
    topology_keys: [{key: rack, label: topology.kubernetes.io/rack}]
  bare:
    backend: lab
    node_selector: {kind: racks}
    topology_keys: [{key: block, label: example.com/block}]
"""


@pytest.fixture(scope="module")
def odd(built_page: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageService]:
    """Run a service with a pool of no nodes, one whose nodes have no label, and a pod with markup in its name."""
    del built_page
    pods = f"pods:\n- {{owner: '{NASTY}', node: e1-n1, gpu: 4}}\n"
    with PageService(tmp_path_factory.mktemp("odd"), CONFIG + POOLS, CLUSTER + pods) as found:
        yield found


def test_a_pool_without_nodes_says_what_to_look_at(odd: PageService, visit: Open) -> None:
    seen = visit(f"{odd.url}/map?pool=empty")
    expect(seen.page.get_by_text("This pool has no nodes")).to_be_visible()
    expect(seen.page.get_by_text("coterie check")).to_be_visible()
    assert seen.errors == []


def test_nodes_without_any_label_are_shown_with_a_note_that_says_so(odd: PageService, visit: Open) -> None:
    page = visit(f"{odd.url}/map?pool=bare").page
    expect(page.locator(".node")).to_have_count(23)
    expect(page.get_by_text("No node is in a domain")).to_be_visible()
    page.get_by_role("link", name="the levels of bare").click()
    expect(page.get_by_role("cell", name="example.com/block")).to_be_visible()


@pytest.mark.parametrize("view", ["", "&view=table"])
def test_names_with_markup_are_text(odd: PageService, visit: Open, view: str) -> None:
    seen = visit(f"{odd.url}/map?pool=training&node=e1-n1{view}")
    expect(seen.page.get_by_label("Selection")).to_contain_text(NASTY)
    expect(seen.page.get_by_label("Holders")).to_contain_text(NASTY)
    assert seen.page.locator("main img").count() == 0
    assert seen.errors == []


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("/map?pool=none", "There is no pool none"),
        ("/pools/none", "There is no pool none"),
        ("/workflows/none-1", "none-1 is not there"),
        (f"/workflows/{quote(NASTY, safe='')}", f"{NASTY} is not there"),
    ],
)
def test_an_address_of_nothing_says_so(odd: PageService, visit: Open, place: str, words: str) -> None:
    page = visit(f"{odd.url}{place}").page
    expect(page.get_by_role("alert")).to_contain_text(words)
    expect(page.locator("main")).not_to_contain_text("Loading")
    expect(page.locator("main img")).to_have_count(0)


def test_a_workflow_that_is_deleted_while_it_is_open_says_so(odd: PageService, visit: Open) -> None:
    ident = odd.run(gang("gone", 1))
    pages = [visit(f"{odd.url}/workflows/{ident}?tab={tab}").page for tab in ("overview", "logs")]
    for page in pages:
        expect(page.get_by_role("heading", name=ident)).to_be_visible()
    odd.cancel(ident)
    odd.ask("DELETE", f"workflows/{ident}")
    for page in pages:
        expect(page.get_by_role("alert")).to_contain_text(f"{ident} is not there")


def test_pages_say_that_they_are_not_live_while_the_service_is_gone_and_go_on_after(
    odd: PageService, visit: Open
) -> None:
    ident = odd.run(gang("stays", 1))
    workflow = visit(f"{odd.url}/workflows/{ident}").page
    listed = visit(f"{odd.url}/workflows?name=stays").page
    expect(workflow.get_by_role("status").filter(has_text="● live")).to_be_visible()
    expect(listed.get_by_role("link", name=ident)).to_be_visible()
    odd.stop()
    expect(workflow.get_by_role("status").filter(has_text="not live")).to_be_visible()
    expect(listed.get_by_role("status").filter(has_text="not live")).to_be_visible()
    odd.start()
    expect(workflow.get_by_role("status").filter(has_text="● live")).to_be_visible()
    odd.cancel(ident)
    expect(workflow.get_by_text("failed canceled").first).to_be_visible()
    expect(listed.get_by_role("cell", name="failed canceled")).to_be_visible()
