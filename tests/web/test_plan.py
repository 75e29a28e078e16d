"""The plan preview: faults at their lines, the placement on the map, and a submission that is held to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Route, expect

from tests.web.conftest import Visit
from tests.web.page_service import PageService, gang

Open = Callable[..., Visit]
SET = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: serving, namespace: default}
spec:
  replicas: 1
  template:
    cliques:
    - name: worker
      spec:
        roleName: worker
        replicas: 2
        minAvailable: 2
        podSpec:
          containers:
          - {name: main, image: example.com/worker, resources: {limits: {nvidia.com/gpu: 4}}}
"""
GRAPH = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: serving, namespace: default}
spec:
  services:
    Worker:
      componentType: worker
      replicas: 2
      resources: {limits: {gpu: "4"}}
      extraPodSpec: {mainContainer: {image: example.com/worker}}
"""


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


def test_a_file_is_dropped_and_each_of_its_tasks_is_drawn_with_its_own_gpus(served: PageService, visit: Open) -> None:
    resources = "  resources:\n    default: {gpu: 4, cpu: 1}\n    small: {gpu: 1, cpu: 1}\n"
    text = f"""\
version: 2
workflow:
  name: dropped
{resources}  groups:
  - name: mixed
    tasks:
    - {{name: trainer, image: any, lead: true, command: [sleep, "600"]}}
    - {{name: helper, image: any, resource: small, command: [sleep, "600"]}}
"""
    page = visit(f"{served.url}/plan?pool=training").page
    file = page.evaluate_handle(
        """text => {
          const data = new DataTransfer()
          data.items.add(new File([text], 'dropped.yaml', { type: 'application/yaml' }))
          return data
        }""",
        text,
    )
    editor = page.get_by_label("Workflow file")
    editor.dispatch_event("dragover", {"dataTransfer": file})
    editor.dispatch_event("drop", {"dataTransfer": file})
    expect(editor).to_have_value(text)
    expect(page.get_by_text("dropped: placed")).to_be_visible()
    expect(page.locator("rect.ghost")).to_have_count(5)
    assert [each for each in served.list_workflows() if each["name"] == "dropped"] == []


def test_a_plan_that_is_no_longer_true_is_not_submitted(served: PageService, visit: Open) -> None:
    page = visit(f"{served.url}/plan?pool=training").page
    page.get_by_label("Workflow file").fill(gang("stale", 4).source.decode())
    expect(page.get_by_text("stale: placed")).to_be_visible()
    other = served.run(gang("first", 4))
    with page.expect_response("**/api/v1/workflows?**") as answer:
        page.get_by_role("button", name="Submit this plan").click()
    assert answer.value.status == 409
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


@pytest.mark.parametrize("kind", [("PodCliqueSet", SET), ("DynamoGraphDeployment", GRAPH)], ids=["set", "graph"])
def test_other_kinds_are_planned_on_the_map_and_run_by_their_own_operators(
    served: PageService, visit: Open, kind: tuple[str, str]
) -> None:
    name, text = kind
    seen = visit(f"{served.url}/plan?pool=training")
    page = seen.page
    page.get_by_label("Workflow file").fill(text)
    expect(page.get_by_text(f"a {name}: planned here")).to_be_visible()
    expect(page.get_by_text("serving: placed")).to_be_visible()
    expect(page.locator("rect.ghost").first).to_be_visible()
    expect(page.get_by_role("button", name="Submit")).to_have_count(0)
    page.get_by_label("Workflow file").fill(text.replace("replicas: 2", "replicas: two"))
    expect(page.get_by_role("button", name="line").first).to_be_visible()
    assert [each for each in seen.errors if "422" not in each and "400" not in each] == []


def test_an_admin_sees_what_an_edit_of_a_pool_would_do_before_it_is_saved(served: PageService, visit: Open) -> None:
    document = served.ask("GET", "pools/training")["document"]
    served.ask("PUT", "pools/edited", json={**document, "description": "before"})
    ident = served.run(gang("lasting", 2), pool="edited")
    seen = visit(f"{served.url}/pools/edited")
    page = seen.page
    page.get_by_role("button", name="Edit …").click()
    editor = page.get_by_label("Document of pool edited")
    expect(page.get_by_text("No changes.")).to_be_visible()
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    written = editor.input_value()
    editor.fill(written.replace("key: rack", "ke: rack"))
    expect(page.get_by_role("button", name="line").first).to_be_visible()
    lost = written.replace("description: before", "description: after").replace(
        "  - key: rack\n    label: topology.kubernetes.io/rack\n", ""
    )
    assert lost != written
    editor.fill(lost)
    expect(page.get_by_role("row").filter(has_text="description").locator(".new")).to_have_text("after")
    expect(page.get_by_text("The pool loses level rack.")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text=f"{ident} / gang")).to_be_visible()
    assert served.ask("GET", "pools/edited")["description"] == "before"
    # Save is for the text whose effects are shown: while no answer arrives, there is nothing to save.
    held: list[Route] = []
    page.route("**/pools/edited?*", lambda route: held.append(route))  # noqa: PLW0108 - playwright takes no method of a list
    editor.fill(written.replace("description: before", "description: after"))
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    page.unroute("**/pools/edited?*")
    for route in held:
        route.continue_()
    expect(page.get_by_text("The pool loses level")).to_have_count(0)
    page.get_by_role("button", name="Save").click()
    expect(editor).to_have_count(0)
    expect(page.get_by_text("after · local")).to_be_visible()
    assert served.ask("GET", "pools/edited")["description"] == "after"
    served.cancel(ident)
    served.ask("DELETE", f"workflows/{ident}")
    served.ask("DELETE", "pools/edited")


def test_a_pool_of_the_configuration_is_not_edited_here(served: PageService, visit: Open) -> None:
    page = visit(f"{served.url}/pools/training").page
    expect(page.get_by_label("Pool training")).to_be_visible()
    expect(page.get_by_role("button", name="Edit …")).to_have_count(0)
