"""The pages of workflows: groups, constraints, logs, events, changes with confirmation, and why one waits."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.service.running_service import task, workflow
from tests.web.conftest import Visit
from tests.web.page_service import FOREVER, PageService, gang

Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def train(served: PageService) -> str:
    """Run a gang in one rack."""
    return served.run(gang("train", 4))


def test_the_list_is_filtered_by_its_address_and_stays_current(served: PageService, train: str, visit: Open) -> None:
    page = visit(f"{served.url}/workflows?status=RUNNING&name=tr").page
    expect(page.get_by_role("link", name=train)).to_be_visible()
    ident = served.run(gang("trial", 1))
    expect(page.get_by_role("link", name=ident)).to_be_visible()
    served.cancel(ident)
    expect(page.get_by_role("link", name=ident)).to_have_count(0)
    assert "status=RUNNING" in page.url


def test_a_workflow_shows_its_groups_and_the_outcome_of_its_constraints(
    served: PageService, train: str, visit: Open
) -> None:
    seen = visit(f"{served.url}/workflows/{train}")
    page = seen.page
    expect(page.get_by_role("img", name="gang is running")).to_be_visible()
    expect(page.get_by_text("✓ held")).to_be_visible()
    page.get_by_role("link", name="tasks", exact=True).click()
    expect(page.get_by_role("row")).to_have_count(5)
    page.get_by_role("link", name="events", exact=True).click()
    expect(page.get_by_role("cell", name="Submitted", exact=True)).to_be_visible()
    page.get_by_role("link", name="spec", exact=True).click()
    expect(page.get_by_text("name: train")).to_be_visible()
    assert seen.errors == []


def test_the_timeline_shows_when_each_task_waited_and_ran(served: PageService, visit: Open) -> None:
    steps = {
        "first": [task("load", "exit 0")],
        "second": [task("fit", FOREVER, "inputs: [{task: load}]")],
    }
    ident = served.submit(workflow("steps", steps, gpu=1))
    served.until(ident, lambda found: found["groups"][1]["status"] == "RUNNING")
    page = visit(f"{served.url}/workflows/{ident}").page
    expect(page.get_by_role("img", name="first is completed")).to_be_visible()
    expect(page.get_by_role("img", name="second is running")).to_be_visible()
    page.get_by_role("link", name="timeline", exact=True).click()
    line = page.get_by_role("img", name="Timeline: load ran ")
    expect(line).to_have_accessible_name(re.compile(r"load ran \S+; fit ran \d+"))
    ended, runs = (float(line.locator(f"rect.{kind}").get_attribute("x") or 0) for kind in ("COMPLETED", "RUNNING"))
    assert ended < runs
    served.cancel(ident)


def test_a_log_of_a_hundred_thousand_lines_is_followed_and_searched_and_never_interpreted(
    served: PageService, visit: Open
) -> None:
    script = 'seq -f "line %.0f <b>bold</b>" 100000; sleep 600'
    ident = served.run(gang("loud", 1, script=script))
    page = visit(f"{served.url}/workflows/{ident}?tab=logs").page
    log = page.get_by_role("log")
    expect(log).to_contain_text("line 100000 <b>bold</b>")
    assert log.locator("b").count() == 0
    # Only what is in sight is on the page.
    assert len(log.inner_text()) < 20_000
    page.get_by_label("Find").fill("line 12345 ")
    expect(page.get_by_role("status").filter(has_text="1 lines of 100,000")).to_be_visible()
    expect(log).to_contain_text("line 12345 <b>")
    served.cancel(ident)


def test_cancel_and_delete_ask_first(served: PageService, visit: Open) -> None:
    ident = served.run(gang("brief", 1))
    page = visit(f"{served.url}/workflows/{ident}").page
    page.get_by_role("button", name="Cancel …").click()
    page.get_by_role("button", name="No, keep it").click()
    assert served.ask("GET", f"workflows/{ident}")["status"] == "RUNNING"
    page.get_by_role("button", name="Cancel …").click()
    page.get_by_role("button", name="Cancel it").click()
    page.get_by_role("button", name="Delete …").click()
    page.get_by_role("button", name="Delete it").click()
    page.wait_for_url("**/workflows")
    page.goto(f"{served.url}/workflows/{ident}")
    expect(page.get_by_role("alert")).to_contain_text(f"{ident} is not there")


def test_a_waiting_gang_says_why_and_shows_a_way_out_on_the_map(served: PageService, train: str, visit: Open) -> None:
    del train
    # One node is free in each of two racks, and one is in no rack.
    taken = [served.run(gang("fill", size)) for size in (4, 4, 3, 3)]
    ident = served.submit(gang("late", 3))
    served.until(ident, lambda found: bool(found["waiting"]))
    page = visit(f"{served.url}/workflows/{ident}?tab=why").page
    panel = page.get_by_label("Why gang waits")
    expect(panel).to_contain_text("of 3")
    expect(panel.get_by_role("progressbar").first).to_be_visible()
    expect(page.locator(".domain rect.outlined").first).to_be_visible()
    panel.locator(".way button").first.click()
    expect(panel.get_by_role("status")).to_contain_text("Nothing has been changed")
    expect(page.locator("rect.ghost").nth(3)).to_be_attached()
    assert served.ask("GET", f"workflows/{ident}")["status"] == "PENDING"
    for each in (ident, *taken):
        served.cancel(each)


def test_a_workflow_that_fails_can_be_run_again(served: PageService, visit: Open) -> None:
    ident = served.submit(workflow("fails", {"g": [task("t", "exit 3")]}, gpu=1))
    listed = visit(f"{served.url}/workflows?name=fails").page
    expect(listed.get_by_role("row").filter(has_text=ident)).to_contain_text("exit code 3")
    served.until(ident, lambda found: bool(found["finished"]))
    page = visit(f"{served.url}/workflows/{ident}?tab=tasks").page
    page.get_by_role("button", name="Retry …").click()
    page.get_by_role("button", name="Retry it").click()
    served.until(ident, lambda found: bool(found["finished"]) and found["groups"][0]["tasks"][0]["attempt"] == 2)
    expect(page.get_by_role("cell", name="2", exact=True)).to_be_visible()


def test_a_template_is_shown_as_it_was_written_and_as_it_was_rendered(served: PageService, visit: Open) -> None:
    source = gang("shaped", 1).source.decode().replace("sleep 600", "sleep {{ seconds }}")
    source += "default-values: {seconds: 601}\n"
    ident = str(served.ask("POST", "workflows", json={"source": source, "pool": "training"})["id"])
    page = visit(f"{served.url}/workflows/{ident}?tab=spec").page
    expect(page.locator("pre")).to_contain_text("sleep {{ seconds }}")
    page.get_by_label("rendered").check()
    expect(page.locator("pre")).to_contain_text("sleep 601")
    expect(visit(page.url).page.locator("pre")).to_contain_text("sleep 601")
    served.cancel(ident)


RACKS = """
topology_keys:
- {{key: zone, label: topology.kubernetes.io/zone}}
- {{key: rack, label: topology.kubernetes.io/rack}}
nodes:
- {{name: n1, domains: {{zone: west, rack: r1}}, labels: {{kind: racks}}, gpu: 4, cpu: 32}}
- {{name: n2, domains: {{zone: west, rack: {second}}}, labels: {{kind: racks}}, gpu: 4, cpu: 32}}
"""


@pytest.mark.usefixtures("built_page")
def test_a_constraint_that_a_relabelled_node_violates_is_marked_with_the_domains_of_its_tasks(
    tmp_path: Path, visit: Open
) -> None:
    with PageService(tmp_path, cluster=RACKS.format(second="r1")) as served:
        ident = served.run(gang("pair", 2))
        page = visit(f"{served.url}/workflows/{ident}").page
        expect(page.get_by_text("✓ held")).to_be_visible()
        served.replace("cluster.yaml", RACKS.format(second="r9"))
        broken = page.get_by_role("listitem").filter(has_text="✗ violated").last
        expect(broken).to_contain_text("required rack")
        expect(broken).to_contain_text("r1")
        expect(broken).to_contain_text("r9")
        page.goto(f"{served.url}/map?pool=training&workflow={ident}&group=gang")
        expect(page.get_by_label("Selection").get_by_text("required rack: violated")).to_have_count(1)
        expect(page.locator(".domain rect.violated")).to_have_count(2)
