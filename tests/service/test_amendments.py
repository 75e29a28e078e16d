"""Options of a submission change the workflow, for its whole life and under any leader."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from coterie.errors import NeverFits, NotFound, PlanStale, UsageError
from coterie.planning.changes import WhatIf
from coterie.service.service import Service
from coterie.service.settings import Submission
from tests.service.running_service import ServiceFolder, task, workflow

WAIT_S = 60.0
TAINTED = """
topology_keys:
- {key: zone, label: topology.kubernetes.io/zone}
- {key: rack, label: topology.kubernetes.io/rack}
fleet:
- domains: {zone: [a], rack: [r1]}
  nodes: 2
  name: "{rack}-n{n}"
  gpu: 4
  cpu: 32
  memory: 256Gi
  taints: [{key: team, value: red, effect: NoSchedule}]
"""


def crew(size: int, what_if: WhatIf | None = None, rest: str = "", script: str = "true") -> Submission:
    """Return a gang that must share a rack; racks have four nodes, and a task takes a whole one."""
    tasks = [task(f"t{n}", script, "" if n else "lead: true") for n in range(size)]
    found = workflow("w", {"g": tasks}, topology="[{key: rack}]", rest=rest)
    return replace(found, what_if=what_if)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with Service(ServiceFolder(tmp_path / "lab").settings()) as found:
        yield found


@pytest.mark.parametrize(
    ("what_if", "said"),
    [
        (WhatIf(prefer=("rack",)), "rack is preferred instead of required"),
        (WhatIf(coarsen=("rack",)), "zone is asked for instead of rack"),
        (WhatIf(tasks=("g=4",)), 'group "g" runs 4 of 5 tasks; left out: t4'),
    ],
    ids=["prefer", "coarsen", "tasks"],
)
def test_a_way_out_is_taken_by_submitting_with_its_option(service: Service, what_if: WhatIf, said: str) -> None:
    with pytest.raises(NeverFits):
        service.submit(crew(5))

    view = service.submit(crew(5, what_if))
    ended = service.wait("w-1", timeout_s=WAIT_S)

    assert view["changes"] == [said]
    assert view["warnings"] == [each for each in view["warnings"] if each["code"] != "NeverFits"]
    assert ended["status"] == "COMPLETED"
    assert said in service.events(workflow="w-1")[0]["message"]
    assert [one["name"] for one in ended["groups"][0]["tasks"]] == [f"t{n}" for n in range(4 if what_if.tasks else 5)]


def test_a_change_outlives_the_service_that_took_it(tmp_path: Path) -> None:
    place = ServiceFolder(tmp_path / "lab")
    first = Service(place.settings())  # which nobody drives
    first.submit(crew(5, WhatIf(prefer=("rack",))))
    first.stop()
    with Service(place.settings()) as second:
        assert second.wait("w-1", timeout_s=WAIT_S)["status"] == "COMPLETED"
        assert second.placement("w-1")["groups"][0]["constraints"][0]["type"] == "preferred"
        assert second.workflow("w-1")["changes"] == ["rack is preferred instead of required"]


def test_a_taint_is_tolerated_and_exclusions_are_ignored(tmp_path: Path) -> None:
    with Service(ServiceFolder(tmp_path / "lab", cluster=TAINTED).settings()) as service:
        for what_if in (None, WhatIf(tolerate=("team",)), WhatIf(allow_excluded=True)):
            with pytest.raises(NeverFits):
                service.submit(crew(2, what_if, rest="      nodesExcluded: [r1-n1]\n"))
        both = WhatIf(tolerate=("team",), allow_excluded=True)
        view = service.submit(crew(2, both, rest="      nodesExcluded: [r1-n1]\n"))
        assert view["changes"] == ["its tasks tolerate the taint team", "nodesExcluded is ignored"]
        assert service.wait("w-1", timeout_s=WAIT_S)["status"] == "COMPLETED"


def test_other_work_and_nodes_are_waited_for_and_a_change_without_effect_is_said(service: Service) -> None:
    service.submit(replace(crew(4, script="sleep 600"), client_key="first"))
    service.wait("w-1", lambda view: view["status"] == "RUNNING", timeout_s=WAIT_S)
    view = service.submit(crew(4, WhatIf(without=("w-1",), prefer=("zone",))))
    assert view["changes"] == [
        "--prefer zone changes nothing about this workflow",
        "it waits until w-1 has ended; submitting it ends nothing else",
    ]
    assert service.workflow("w-1")["status"] == "RUNNING"
    service.cancel("w-1", force=True)
    assert service.wait("w-2", timeout_s=WAIT_S)["status"] == "COMPLETED"


@pytest.mark.parametrize(
    ("what_if", "kind", "words"),
    [
        (WhatIf(prefer=("rak",)), NotFound, 'no level "rak"'),
        (WhatIf(tasks=("g=0",)), UsageError, "GROUP=N"),
        (WhatIf(without=("nobody",)), NotFound, '"nobody"'),
    ],
)
def test_a_change_that_names_nothing_stores_nothing(
    service: Service, what_if: WhatIf, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        service.submit(crew(2, what_if))
    assert service.workflows()["items"] == []


def test_the_lead_of_a_group_is_not_left_out(service: Service) -> None:
    tasks = [task("t0", "true"), task("t1", "true", "lead: true")]
    asked = replace(workflow("w", {"g": tasks}), what_if=WhatIf(tasks=("g=1",)))
    with pytest.raises(UsageError, match='leaves out "t1", the lead of group "g"'):
        service.submit(asked)


def test_what_a_kept_task_needs_is_not_left_out(service: Service) -> None:
    tasks = [task("t0", "echo {{host:t1}}", "lead: true"), task("t1", "true")]
    asked = replace(workflow("w", {"g": tasks}), what_if=WhatIf(tasks=("g=1",)))
    with pytest.raises(Exception, match="t1"):
        service.submit(asked)
    assert service.workflows()["items"] == []


def test_a_plan_with_changes_is_held_to_with_the_same_changes(service: Service) -> None:
    changed = crew(5, WhatIf(prefer=("rack",)))
    plan = service.plan(changed)
    assert (plan["verdict"], [each["code"] for each in plan["warnings"]]) == ("placed", ["FieldIgnored"])
    with pytest.raises(PlanStale):
        service.submit(crew(5), plan["id"], force=True)
    assert service.submit(changed, plan["id"])["created"]


def test_the_same_key_with_another_change_is_another_request(service: Service) -> None:
    first = replace(crew(5, WhatIf(prefer=("rack",))), client_key="k")
    assert service.submit(first)["created"]
    assert not service.submit(first)["created"]
    with pytest.raises(Exception, match="another submission"):
        service.submit(replace(first, what_if=WhatIf(coarsen=("rack",))))
