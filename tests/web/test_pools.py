"""The page of pools: their use over the last hours, drift of the topology behind their levels, and its users."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.web.conftest import Visit
from tests.web.page_service import PageService, gang, with_history

Open = Callable[..., Visit]
RACK, SPINE = "topology.kubernetes.io/rack", "example.com/spine"
CONFIG = """
backends:
  lab: {scheduler: local, cluster: cluster.yaml}
pools:
  gpus: {backend: lab, topology: hall}
"""


def cluster() -> str:
    """Return a cluster as kubectl lists it, in which KAI's topology lacks a level of the ClusterTopology."""
    nodes: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"r{rack}-n{n}", "labels": {SPINE: "s1", RACK: f"r{rack}"}},
            "status": {
                "allocatable": {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "4"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for rack in (1, 2)
        for n in (1, 2)
    ]
    levels = [{"domain": "spine", "key": SPINE}, {"domain": "rack", "key": RACK}]
    hall = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopology",
        "metadata": {"name": "hall"},
        "spec": {"levels": levels, "schedulerReferences": [{"schedulerName": "kai-scheduler", "reference": "own"}]},
    }
    own = {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "own"},
        "spec": {"levels": [{"nodeLabel": RACK}]},
    }
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, hall, own]})


@pytest.fixture(scope="module")
def hall(built_page: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageService]:
    """Run a service on a cluster with topologies, whose pool has a past."""
    del built_page
    with PageService(tmp_path_factory.mktemp("hall"), CONFIG, cluster()) as found:
        with_history(found, "gpus", gpus=16)
        yield found


def test_use_waits_and_fragmentation_are_plotted_and_said_in_words(hall: PageService, visit: Open) -> None:
    seen = visit(f"{hall.url}/pools/gpus")
    page = seen.page
    used = page.get_by_role("img", name="GPUs in use: now")
    expect(used).to_be_visible()
    expect(page.get_by_role("img", name="Longest wait: now")).to_be_visible()
    expect(page.get_by_role("img", name="Fragmentation")).to_be_visible()
    # A time without samples is a gap: there are two lines.
    assert str(used.locator("path.line").get_attribute("d")).count("M") == 2
    page.get_by_text("As a table").click()
    expect(page.get_by_role("columnheader", name="fragmentation")).to_be_visible()
    expect(page.get_by_role("cell", name="1 waiting, longest").first).to_be_visible()
    box = used.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 10)
    expect(used.locator("line.cursor")).to_have_count(1)
    page.get_by_role("button", name="24 h").click()
    page.wait_for_url("**/pools/gpus?hours=24")
    expect(page.get_by_role("heading", name="The last 24 hours")).to_be_visible()
    assert seen.errors == []


def test_a_plot_says_how_old_its_last_sample_is_where_nodes_are_not_known(hall: PageService, visit: Open) -> None:
    page = visit("about:blank").page

    def unknown(route: Route) -> None:
        found = route.fetch()
        route.fulfill(response=found, json={**found.json(), "now": None})

    page.route("**/history?*", unknown)
    # For a browser that is three hours ahead, no service has taken a sample for that long.
    page.clock.set_fixed_time(time.time() + 3 * 3600)
    page.goto(f"{hall.url}/pools/gpus")
    used = page.get_by_role("img", name="GPUs in use")
    expect(used).to_have_accessible_name(re.compile(r"^GPUs in use: [23]h\d\dm ago \d+ of 16"))
    expect(page.locator("figcaption", has_text="GPUs in use")).to_contain_text(re.compile(r"of 16 · [23]h\d\dm ago"))


def test_a_plot_says_the_use_of_now_and_not_the_mean_of_its_last_step(hall: PageService, visit: Open) -> None:
    ident = hall.run(gang("busy", 2), pool="gpus")
    page = visit(f"{hall.url}/pools/gpus").page
    # The past of this pool ends with another number.
    expect(page.locator("figcaption", has_text="GPUs in use")).to_have_text(re.compile(r"8 of 16$"))
    expect(page.get_by_role("img", name="GPUs in use: now 8 of 16; at most")).to_be_visible()
    hall.cancel(ident)
    page.reload()
    expect(page.get_by_role("img", name="GPUs in use: now 0 of 16; at most")).to_be_visible()


def test_a_pool_without_samples_says_so_and_shows_its_use_of_now(hall: PageService, visit: Open) -> None:
    page = visit("about:blank").page

    def fresh(route: Route) -> None:
        found = route.fetch()
        route.fulfill(response=found, json={**found.json(), "points": []})

    page.route("**/history?*", fresh)
    page.goto(f"{hall.url}/pools/gpus")
    expect(page.get_by_role("img", name="GPUs in use: now 0 of 16")).to_be_visible()
    expect(page.get_by_text("no samples in this time").first).to_be_visible()


def test_quotas_and_findings_about_labels_are_shown(hall: PageService, visit: Open) -> None:
    levels = [{"key": "block", "label": "example.com/block"}, {"key": "rack", "label": RACK}]
    quota = {"guarantee": 4, "limit": 8}
    hall.ask("PUT", "pools/team", json={"backend": "lab", "topology_keys": levels, "gpus": quota})
    findings = hall.ask("GET", "pools/team")["warnings"]
    assert {each["level"] for each in findings} >= {"block"}
    seen = visit(f"{hall.url}/pools/team")
    pool = seen.page.get_by_label("Pool team")
    expect(pool).to_contain_text("0 of 16 GPUs used by its workflows, 16 free; limit 8; guarantee 4")
    for each in findings:
        expect(pool.locator(".note").filter(has_text=each["message"])).to_contain_text(each["hint"])
    expect(pool.get_by_role("row").filter(has_text="example.com/block").get_by_role("cell").last).to_have_text("4")
    hall.ask("DELETE", "pools/team")
    assert seen.errors == []


def test_drift_of_a_cluster_topology_and_the_users_of_its_levels_are_shown(hall: PageService, visit: Open) -> None:
    ident = hall.run(gang("train", 2), pool="gpus")
    seen = visit(f"{hall.url}/pools/gpus")
    pool = seen.page.get_by_label("Pool gpus")
    expect(pool).to_contain_text("Levels of ClusterTopology hall")
    expect(pool.get_by_text("Drift:")).to_contain_text(f'KAI Topology "own" lacks {SPINE}')
    pool.get_by_text("Who uses these levels").click()
    expect(pool.get_by_role("row").filter(has_text=ident)).to_contain_text("rack")
    hall.cancel(ident)
    assert seen.errors == []
