"""Odd inputs and faults: pools without nodes, labels or a cluster, markup in names, and what goes away while open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from lab.ports import Ports
from playwright.sync_api import Route, expect

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
  unseen:
    backend: filed
    topology_keys: [{key: rack, label: topology.kubernetes.io/rack}]
"""
DEAD = """
backends:
  far: {scheduler: kai, context: far, namespace: default}
pools:
  far: {backend: far, topology_keys: [{key: rack, label: topology.kubernetes.io/rack}]}
"""


@pytest.fixture(scope="module")
def odd(built_page: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageService]:
    """Run a service with pools of no nodes, nodes without labels and unknown nodes, and markup in a pod's name."""
    del built_page
    config = CONFIG.replace("pools:", "  filed: {scheduler: kai, cluster: cluster.yaml}\npools:") + POOLS
    pods = f"pods:\n- {{owner: '{NASTY}', node: e1-n1, gpu: 4}}\n"
    with PageService(tmp_path_factory.mktemp("odd"), config, CLUSTER + pods) as found:
        yield found


def test_a_pool_without_nodes_says_what_to_look_at(odd: PageService, visit: Open) -> None:
    seen = visit(f"{odd.url}/map?pool=empty")
    expect(seen.page.get_by_text("This pool has no nodes")).to_be_visible()
    expect(seen.page.get_by_text("coterie check")).to_be_visible()
    assert seen.errors == []


def test_a_pool_whose_nodes_are_not_known_to_the_service_says_why_and_is_live_once_they_are(
    odd: PageService, visit: Open
) -> None:
    seen = visit(f"{odd.url}/map?pool=unseen")
    expect(seen.page.get_by_role("alert")).to_contain_text('backend "filed" has a cluster file and no context')
    expect(seen.page.get_by_role("status").filter(has_text="■ not live: the nodes are not known")).to_be_visible()
    config = (odd.folder / "coterie.yaml").read_text(encoding="utf-8")
    odd.replace("coterie.yaml", config.replace("backend: filed", "backend: lab"))
    expect(seen.page.get_by_role("status").filter(has_text="● live")).to_be_visible()
    expect(seen.page.get_by_role("alert")).to_have_count(0)
    expect(seen.page.locator(".node").first).to_be_visible()
    expect(seen.page.locator("main")).not_to_contain_text("Loading")
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


@pytest.mark.usefixtures("built_page")
def test_a_pool_whose_cluster_cannot_be_reached_says_so_instead_of_being_live(
    tmp_path: Path, visit: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = Ports()
    # Nobody answers there, since the port is kept.
    server = f"https://127.0.0.1:{ports.take()}"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "far", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
        "contexts": [{"name": "far", "context": {"cluster": "far", "user": "me"}}],
    }
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config), encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with PageService(tmp_path, DEAD, cluster="") as served:
        page = visit(f"{served.url}/map?pool=far").page
        state = page.get_by_role("status").filter(has_text="▲ out of date: the cluster cannot be reached")
        expect(state).to_be_visible()
        expect(page.get_by_text("Its cluster cannot be reached: https")).to_be_visible()
        expect(page.locator("main")).not_to_contain_text("● live")
        expect(page.locator("main")).not_to_contain_text("Loading")
        page.goto(f"{served.url}/pools")
        note = page.get_by_label("Pool far").get_by_text("Its cluster cannot be reached: https")
        expect(note).to_contain_text("what is shown may be out of date")
    ports.release()


def test_the_page_of_pools_says_that_the_service_connects_until_the_first_try_has_ended(
    odd: PageService, visit: Open
) -> None:
    page = visit("about:blank").page

    def connecting(route: Route) -> None:
        found = route.fetch()
        pools = [{**each, "unreachable": "connecting"} for each in found.json()["items"]]
        route.fulfill(response=found, json={"items": pools})

    page.route("**/api/v1/pools", connecting)
    page.goto(f"{odd.url}/pools")
    pool = page.get_by_label("Pool training")
    expect(pool.get_by_text("The service is connecting to its cluster.")).to_be_visible()
    expect(pool).not_to_contain_text("cannot be reached")


# The page's own handlers of events that the stream brings.
HANDLERS = """
window.handlers = {}
const listen = EventSource.prototype.addEventListener
EventSource.prototype.addEventListener = function (kind, act, ...rest) {
  window.handlers[kind] = act
  listen.call(this, kind, act, ...rest)
}
"""
REACHED = "(problem) => handlers.cluster({ data: JSON.stringify({ unreachable: problem }), lastEventId: '' })"


def test_a_map_turns_grey_while_the_cluster_cannot_be_reached_and_is_live_again_after(
    odd: PageService, visit: Open
) -> None:
    page = visit("about:blank").page
    page.add_init_script(HANDLERS)
    page.goto(f"{odd.url}/map?pool=training")
    live = page.get_by_role("status").filter(has_text="● live")
    expect(live).to_be_visible()
    # The cluster of this service is a file, which is never out of reach.
    page.evaluate(REACHED, "connection refused")
    expect(page.get_by_role("status").filter(has_text="▲ out of date")).to_be_visible()
    expect(page.get_by_text("Its cluster cannot be reached: connection refused; what is shown")).to_be_visible()
    expect(page.locator(".area.stale .node").first).to_be_visible()
    page.evaluate(REACHED, "connecting")
    expect(page.get_by_role("status").filter(has_text="… the service is connecting to the cluster")).to_be_visible()
    expect(page.get_by_text("The service is connecting to its cluster.")).to_be_visible()
    expect(page.locator("main")).not_to_contain_text("cannot be reached")
    page.evaluate(REACHED, None)
    expect(live).to_be_visible()
    expect(page.locator(".area.stale")).to_have_count(0)


def test_an_address_without_a_page_says_so_on_a_page(odd: PageService, visit: Open) -> None:
    for path in ("/none", "/pools/training/more", "/workflows/a/b/c"):
        page = visit(f"{odd.url}{path}").page
        expect(page.get_by_role("alert")).to_contain_text("There is no such page")
        expect(page.get_by_role("alert")).to_contain_text(path)
        page.get_by_role("link", name="To the map").click()
        page.wait_for_url("**/map")


# The last of all: the service that a test has started again is ended with that test.
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
