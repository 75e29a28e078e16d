"""Every example of the repository, rendered and applied, is placed by the real KAI as it was planned, and audited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coterie.cli.handlers.inspection.audit import COMMAND
from coterie.inspection.audit import AuditOutcome, GangProgress, audit
from coterie.planning.plan import Plan
from lab import Lab
from tests.cli.command import ROOT, call
from tests.examples.test_examples import EXAMPLES, Example
from tests.kai.live_workloads import WorkloadLab, live_snapshot, seen
from tests.lab import gangs

# Each step takes all nodes of a zone, so one cannot run beside the other.
TWO_STEPS = """\
workflow:
  name: two-steps
  groups:
  - name: prepare
    tasks:
{%- for task in range(8) %}
    - {name: p{{ task }}, lead: {{ task == 0 }}, image: example.com/work, command: [run]}
{%- endfor %}
  - name: train
    tasks:
{%- for task in range(8) %}
    - name: t{{ task }}
      lead: {{ task == 0 }}
      image: example.com/work
      command: [run]
      inputs: [{task: p{{ task }}}]
{%- endfor %}
  resources:
    default:
      gpu: 4
      topology: [{key: zone}]
"""


def is_kept(lab: Lab, gang: dict[str, Any]) -> bool:
    """Tell whether nothing required is broken, and every outcome is reported as KAI made it."""
    outcomes = {json.dumps(one["path"]): one for one in gang["constraints"]}
    for path, domains in seen(lab, gang):
        one = outcomes[json.dumps(path)]
        together = "held" if len(domains) == 1 else "missed"
        assert one["outcome"] == (together if one["type"] == "preferred" else "held"), (gang["name"], one)
        # Over its own pods alone: a group that is shared with another gang may have more.
        assert domains <= {tuple(domain) for domain in one["domains"]}
    return True


def names(plans: list[Plan], *, found: bool) -> set[str]:
    return {
        f"{plan.workload.name}/{one.gang.name}"
        for plan in plans
        for one in plan.gangs
        if bool(one.decision.found) is found
    }


@pytest.mark.parametrize("example", [one for one in EXAMPLES if one.verdict], ids=str)
def test_kai_places_an_example_as_it_was_planned(lab: Lab, example: Example) -> None:
    stage = WorkloadLab.of(lab, example)
    plans = stage.plans()
    doubted = any(notice.code == "KaiWouldWait" for plan in plans for notice in plan.notices)

    stage.submit()

    found = stage.audit()
    assert found
    for name, gang in found.items():
        if gang["state"] == "running":
            assert is_kept(lab, gang)
        else:
            # All or nothing, and KAI has said that it waits.
            assert (gang["state"], {task["node"] for task in gang["tasks"]}) == ("waiting", {None}), name
            lab.wait(lambda gang=gang: stage.reported(gang), 20, f"KAI says that it cannot place {name}")  # type: ignore[misc]
    running = {name for name, gang in found.items() if gang["state"] == "running"}
    assert doubted or names(plans, found=True) <= running
    assert not names(plans, found=False) & running

    if names(plans, found=False):
        stage.make_room()
        stage.proceed()
        assert names(plans, found=False) <= {
            name for name, gang in stage.audit().items() if gang["state"] == "running" and is_kept(lab, gang)
        }


def test_a_node_relabelled_under_a_running_task_is_seen_alive_and_in_a_snapshot(lab: Lab) -> None:
    stage = WorkloadLab.of(lab, next(one for one in EXAMPLES if "03-" in str(one)))
    stage.submit()
    (before,) = stage.audit().values()
    task = before["tasks"][0]

    lab.api.patch("nodes", task["node"], {"metadata": {"labels": {"nvidia.com/gpu.clique": "moved"}}})

    alive = call("audit", "context:", KUBECONFIG=str(lab.kubeconfig))
    taken = call("audit", "-", stdin=lab.kubectl(*COMMAND.split()[1:]).encode())
    assert {one["outcome"] for one in before["constraints"]} == {"held"}
    assert (alive.code, taken.code) == (7, 7)
    assert alive.out == taken.out
    assert f"a/moved: {task['task']} on {task['node']}" in alive.out
    assert alive.out.endswith("3 constraints: 2 held, 0 missed, 1 VIOLATED, 0 unobservable.\n")


def test_a_gang_that_others_wrote_is_judged_by_what_kai_was_told(lab: Lab) -> None:
    gangs.prepare(lab, gangs.two_zones())
    lab.apply(gangs.two_models("theirs"))
    lab.wait(lambda: gangs.phases(lab) == {"Running"}, 20, "all pods run")

    found = audit(live_snapshot(lab))

    (gang,) = found.gangs
    assert gang.state is GangProgress.RUNNING
    assert [(finding.path[-1], finding.outcome) for finding in gang.findings] == [
        ((gangs.ZONE, "default"), AuditOutcome.HELD),
        ((gangs.CLIQUE, "model-1"), AuditOutcome.HELD),
        ((gangs.CLIQUE, "model-2"), AuditOutcome.HELD),
    ]


def test_groups_that_wait_for_others_are_applied_one_after_the_other(lab: Lab, tmp_path: Path) -> None:
    flow = tmp_path / "flow.yaml"
    flow.write_text(TWO_STEPS, encoding="utf-8")
    stage = WorkloadLab(lab, flow, ROOT / "examples/03-racks-in-one-zone/cluster.yaml")
    steps = [one.gang.name for plan in stage.plans() for one in plan.gangs]

    for step in steps:
        stage.submit("--group", step)
        gang = stage.audit()[f"two-steps/{step}"]
        assert gang["state"] == "running"
        assert is_kept(lab, gang)
        # The step is over: its pods end, and leave their nodes to the next one. KWOK has started them all before, which
        # it would otherwise do after their end.
        lab.wait(lambda: "Pending" not in gangs.phases(lab), 60, "all pods run")
        for task in gang["tasks"]:
            lab.api.patch("pods", task["pod"], {"status": {"phase": "Succeeded"}}, status=True)

    assert steps == ["prepare", "train"]
    assert {name: gang["state"] for name, gang in stage.audit().items()} == {
        "two-steps/prepare": "finished",
        "two-steps/train": "finished",
    }
