"""Edge cases of explanations, T200 to T204, on a service: why, show, list, metrics, and views of pools."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from coterie.cli.output.outcome import result_of
from coterie.cli.output.workflows import list_lines, status_colour
from coterie.lifecycle import Status
from coterie.rendering.text import Style
from coterie.service.api.app import create_app
from coterie.service.service import Service
from coterie.service.settings import Submission
from coterie.store import WorkflowQuery
from tests.edge_cases.service_watch import (
    FOREVER,
    LEVELS,
    WatchedService,
    gang,
    racks,
    running,
    single,
    task,
    waiting,
    workflow,
)
from tests.planning.plan_json import REFUSAL, breaches, holes
from tests.service.running_service import ServiceFolder

RACK = "[{key: rack}]"
WHY = {"id": str, "status": str, "position": (int, None), "waiting": int}
WAITING = ({"reason": str, "message": str, "since": str}, None)
WHY_GROUP = {"name": str, "verdict": str, "waiting": WAITING, "refusal": (REFUSAL, None), "position": (int, None)}


def pair(first: int, second: int) -> Submission:
    """Return a gang of two subgroups that each want a rack of their own choice."""
    members = [
        *(task(f"a{n}", FOREVER, "resource: a" + ("" if n else "\nlead: true")) for n in range(first)),
        *(task(f"b{n}", FOREVER, "resource: b") for n in range(second)),
    ]
    wants = "".join(f"    {name}: {{gpu: 4, topology: [{{key: rack, group: {name}}}]}}\n" for name in ("a", "b"))
    return workflow("w", {"g": members}, rest=wants)


@dataclass(frozen=True)
class Case:
    """Nodes, what is in use, a workflow that has to wait, and why."""

    reason: str
    nodes: dict[str, str]
    asked: Submission
    pods: str = ""
    config: str = ""


CASES = [
    Case("NoCapacity", racks(r1=1), gang("w", 1), "- {node: r1-n1, gpu: 4, owner: other}\n"),
    Case("NoCapacity", {"r1-n1": "cordoned: true"}, gang("w", 1)),
    Case("NoCapacity", {"r1-n1": "ready: false"}, gang("w", 1)),
    Case("NoDomainFits", racks(r1=2, r2=2), gang("w", 2), "- {owner: other, gpu: 4, nodes: [r1-n1, r2-n1]}\n"),
    Case("NeverFits", racks(r1=1, r2=1), gang("w", 2)),
    Case("NodesUnlabelled", {}, gang("w", 2)),
    Case(
        "NodesExcluded", racks(r1=1), workflow("w", {"g": [task("t", "true")]}, rest="      nodesExcluded: [r1-n1]\n")
    ),
    Case("GroupsConflict", racks(r1=2, r2=2, r3=2), pair(2, 2), "- {owner: x, gpu: 4, nodes: [r2-n1, r3-n1]}\n"),
    Case("OverQuota", racks(r1=2), gang("w", 2), config="    gpus: {limit: 4}\n"),
]


def ids(case: Case) -> str:
    return f"{case.reason} {' '.join(case.nodes.values())}".strip()


def opened(tmp_path: Path, case: Case) -> Service:
    """Return a service that nobody drives: whoever is submitted waits, and is explained from the store alone."""
    lab = WatchedService(tmp_path / "lab", case.nodes, pods=case.pods)
    lab.config += case.config
    text = (
        lab.text()
        if case.nodes
        else f"{LEVELS}nodes:\n" + "".join(f"- {{name: n{n}, gpu: 4, cpu: 8}}\n" for n in (1, 2))
    )
    return Service(ServiceFolder(lab.folder, lab.config, text).settings())


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_t200_t202_whoever_waits_is_told_why_without_a_hole_and_in_one_shape(tmp_path: Path, case: Case) -> None:
    service = opened(tmp_path, case)
    try:
        service.submit(case.asked, force=True)
        why = service.why("w-1")
        (group,) = why.pop("groups")
        assert group["refusal"]["reason"] == case.reason
        assert list(breaches(why, WHY)) == []
        assert list(breaches(group, WHY_GROUP)) == []
        assert (why["position"], why["waiting"], group["position"]) == (1, 1, 1)
        for said in (why, group, service.workflow("w-1"), service.workflows(), service.pools(), service.topologies()):
            assert list(holes(said)) == []
    finally:
        service.stop()


def test_t200_what_a_driver_says_of_those_that_wait_has_no_hole(tmp_path: Path) -> None:
    lab = WatchedService(tmp_path / "lab", racks(r1=2))
    with lab.serving() as service:
        service.submit(gang("first", 2))
        running(service, "first-1")
        for name, asked in (("none", single("none", FOREVER)), ("never", gang("never", 3))):
            service.submit(asked, force=True)
            view = waiting(service, f"{name}-1")
            assert list(holes([view, service.events(workflow=f"{name}-1"), service.health()])) == []
        assert list(holes([service.workflows(), service.pool("main"), service.map("main")])) == []


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Service]:
    service = Service(ServiceFolder(tmp_path / "place").settings())
    yield service
    service.stop()


@pytest.mark.parametrize("status", list(Status))
def test_t201_every_status_can_be_asked_for_coloured_and_ends_in_a_code(idle: Service, status: Status) -> None:
    assert idle.workflows(WorkflowQuery(statuses=[status.value]))["items"] == []
    assert (status_colour(status.value) == "red") == status.failed
    assert (result_of({"status": status.value}) == 0) == (not status.failed)


def test_t201_a_status_that_nobody_knows_is_shown_as_it_is(idle: Service) -> None:
    idle.submit(single("w", "true"))
    (row,) = idle.workflows()["items"]
    lines = list(list_lines([{**row, "status": "SOMETHING_NEW"}], Style(width=200), time.time()))
    assert "SOMETHING_NEW" in lines[1]


def test_t202_the_metrics_count_what_waits(idle: Service) -> None:
    idle.submit(single("w", "true"))
    with TestClient(create_app(idle, open_to_all=True, hosts={"localhost"}), base_url="http://localhost") as client:
        text = client.get("/metrics").text
        why = client.get("/api/v1/workflows/w-1/why").json()
    assert 'coterie_workflows{pool="main",status="PENDING"} 1.0' in text
    assert (why["position"], why["waiting"]) == (1, 1)


def test_t203_a_pool_of_ten_thousand_nodes_is_shown_quickly_and_by_its_domains(tmp_path: Path) -> None:
    fleet = "fleet:\n- {domains: {zone: [a, b], rack: 312}, nodes: 16, gpu: 8, cpu: 64, memory: 512Gi}\n"
    service = Service(ServiceFolder(tmp_path / "place", cluster=LEVELS + fleet).settings())
    try:
        took = math.inf
        for _ in range(3):  # the machine may stop the test at any of them
            began = time.monotonic()
            topology, drawn, pool = service.topology("main"), service.map("main"), service.pool("main")
            took = min(took, time.monotonic() - began)
        assert took < 5.0
    finally:
        service.stop()
    assert pool["nodes"] == 9984
    assert [level["domains"] for level in topology["levels"]] == [2, 624]
    assert len(topology["domains"]) == 626
    assert drawn["gpus"]["total"] == 8 * 9984


def test_t204_a_wish_that_was_not_met_is_said_to_be_missed(tmp_path: Path) -> None:
    lab = WatchedService(tmp_path / "lab", racks(r1=1, r2=1))
    with lab.serving() as service:
        service.submit(gang("w", 2, topology="[{key: zone}, {key: rack, requirementType: preferred}]"))
        running(service, "w-1")
        audit = service.placement("w-1")
        assert audit["summary"] == {"held": 1, "missed": 1, "violated": 0, "unobservable": 0}
        (missed,) = [each for each in audit["groups"][0]["constraints"] if each["outcome"] == "missed"]
        assert (missed["level"], missed["type"], missed["why"]) == ("rack", "preferred", "2 racks instead of 1")
