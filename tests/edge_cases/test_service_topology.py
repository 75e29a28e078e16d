"""Edge cases of pools, levels and nodes that change under a running service, T025 to T036."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coterie.errors import Conflict, NotFound
from coterie.service.pools.catalog import LiveCatalog
from coterie.service.service import Service
from tests.edge_cases.service_watch import (
    FOREVER,
    WatchedService,
    attempts,
    ended,
    gang,
    kinds,
    nodes,
    racks,
    running,
    until,
    waiting,
)

pytestmark = pytest.mark.slow("changes the topology of a running service, and waits for its tasks")

KEYS = [
    {"key": "zone", "label": "topology.kubernetes.io/zone"},
    {"key": "rack", "label": "topology.kubernetes.io/rack"},
]
TEAM: dict[str, Any] = {"backend": "lab", "topology_keys": KEYS}
FEWER: dict[str, Any] = {"backend": "lab", "topology_keys": KEYS[:1]}

SHOWN = {"T025", "T026", "T027", "T028", "T033", "T034", "T035", "T036"}


@pytest.fixture
def lab(tmp_path: Path) -> WatchedService:
    return WatchedService(tmp_path / "lab", racks(r1=3, r2=3))


@pytest.fixture
def service(lab: WatchedService) -> Iterator[Service]:
    with lab.serving() as found:
        yield found


def in_team(name: str, tasks: int, script: str = FOREVER) -> Any:
    return replace(gang(name, tasks, script), pool="team")


def test_t025_a_pool_is_deleted_when_nobody_uses_it_and_not_before(service: Service) -> None:
    service.apply_pool("team", TEAM)
    service.submit(in_team("waits", 5), force=True)
    waiting(service, "waits-1", "NeverFits")
    with pytest.raises(Conflict, match="waits-1"):
        service.delete_pool("team")
    service.cancel("waits-1")
    ended(service, "waits-1")
    service.delete_pool("team")
    with pytest.raises(NotFound):
        service.pool("team")
    assert service.workflow("waits-1")["pool"] == "team"
    service.apply_pool("team", TEAM)
    assert service.pool("team")["workflows"]["running"] == 0


def test_t026_levels_that_go_and_come_back_leave_pending_work_where_it_was(service: Service) -> None:
    service.apply_pool("team", TEAM)
    for name in ("first", "second"):
        service.submit(in_team(name, 3))
        running(service, f"{name}-1")
    service.submit(in_team("third", 3))
    waiting(service, "third-1", "NoCapacity")
    for _ in range(2):
        service.apply_pool("team", FEWER)
        waiting(service, "third-1", "LevelLost")
        service.apply_pool("team", TEAM)
        waiting(service, "third-1", "NoCapacity")
    assert attempts(service.workflow("third-1")) == {"t0": 1, "t1": 1, "t2": 1}
    service.cancel("first-1", force=True)
    assert {node[:2] for node in nodes(running(service, "third-1")).values()} == {"r1"}
    assert [attempts(service.workflow(f"{name}-1"))["t0"] for name in ("second", "third")] == [1, 1]


def named(rack: str | None) -> str:
    """Return a cluster as kubectl prints it, with a ClusterTopology unless it is left out."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"example.com/rack": "r1"}},
        "status": {
            "allocatable": {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "4", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    items: list[Any] = [node]
    if rack is not None:
        levels = {"levels": [{"domain": "rack", "key": rack}]}
        items.append(
            {
                "apiVersion": "grove.io/v1alpha1",
                "kind": "ClusterTopology",
                "metadata": {"name": "racks"},
                "spec": levels,
            }
        )
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def test_t026_a_named_topology_that_is_made_anew_loses_nothing(tmp_path: Path) -> None:
    lab = WatchedService(tmp_path / "lab", racks(r1=1))
    lab.config = "backends: {lab: {scheduler: local, cluster: cluster.yaml}}\n"
    lab.config += "pools: {main: {backend: lab, topology: racks}}\n"
    settings = lab.place().settings(now=lab.now)
    file = lab.folder / "cluster.yaml"
    file.write_text(named("example.com/rack"))
    with Service(settings) as service:
        service.submit(gang("holder", 1))
        running(service, "holder-1")
        service.submit(gang("pending", 1, "true"))
        waiting(service, "pending-1", "NoCapacity")
        file.write_text(named(None))
        waiting(service, "pending-1", "LevelLost")
        assert service.workflow("holder-1")["status"] == "RUNNING"
        file.write_text(named("example.com/rack"))
        waiting(service, "pending-1", "NoCapacity")
        service.cancel("holder-1", force=True)
        assert ended(service, "pending-1")["status"] == "COMPLETED"


def test_t027_an_update_that_says_the_same_changes_nothing(service: Service, lab: WatchedService) -> None:
    service.apply_pool("team", TEAM)
    service.submit(in_team("w", 5), force=True)
    waiting(service, "w-1", "NeverFits")
    lab.seen(service)
    before = (service.store.workflow("w-1").version, service.pool("team")["version"], kinds(service, "w-1"))
    applied = [event for event in service.events() if event["kind"] == "PoolApplied"]
    for _ in range(3):
        assert not service.apply_pool("team", dict(TEAM))["changed"]
    lab.seen(service)
    assert (service.store.workflow("w-1").version, service.pool("team")["version"], kinds(service, "w-1")) == before
    assert [event for event in service.events() if event["kind"] == "PoolApplied"] == applied


def test_t027_an_update_made_of_an_old_version_is_one_clear_conflict(service: Service) -> None:
    version = service.apply_pool("team", TEAM)["pool"]["version"]
    service.apply_pool("team", FEWER, version=version)
    with pytest.raises(Conflict, match="team"):
        service.apply_pool("team", TEAM, version=version)


def test_t028_a_level_lost_under_running_work_is_said_and_blocks_only_what_needs_a_new_place(
    service: Service, lab: WatchedService
) -> None:
    service.apply_pool("team", TEAM)
    service.submit(in_team("w", 2))
    before = nodes(running(service, "w-1"))
    hit = service.apply_pool("team", FEWER)["affected"]
    assert hit == [{"workflow": "w-1", "group": "g", "level": "rack", "waits": False}]
    lab.seen(service)
    (said,) = [event for event in service.events(workflow="w-1") if event["kind"] == "LevelLost"]
    assert (said["group"], 'level "rack"' in said["message"]) == ("g", True)
    assert service.placement("w-1")["summary"] == {"held": 0, "missed": 0, "violated": 0, "unobservable": 1}
    lab.write(service, **{before["t1"].replace("-", "_"): None})
    view = waiting(service, "w-1", "LevelLost")
    assert (view["status"], view["tasks"]["running"], attempts(view)) == ("RUNNING", 1, {"t0": 1, "t1": 2})
    why = service.why("w-1")
    assert (why["groups"][0]["refusal"]["reason"], why["position"]) == ("LevelLost", None)
    service.apply_pool("team", TEAM)
    after = running(service, "w-1")
    assert attempts(after) == {"t0": 1, "t1": 2}
    assert nodes(after)["t1"][:2] == before["t0"][:2]
    assert nodes(after)["t0"] == before["t0"]


def test_t033_a_node_that_went_between_two_looks_takes_its_task_along(lab: WatchedService) -> None:
    with Service(lab.place().settings(now=lab.now)) as first:
        first.submit(gang("w", 2))
        before = nodes(running(first, "w-1"))
    # Nobody looks while the node goes.
    del lab.nodes[before["t1"]]
    (lab.folder / "cluster.yaml").write_text(lab.text())
    with lab.serving() as second:
        view = until(second, "w-1", lambda view: attempts(view) == {"t0": 1, "t1": 2} and view["tasks"]["running"] == 2)
        assert nodes(view)["t0"] == before["t0"]
        assert nodes(view)["t1"] != before["t1"]
        assert second.topology("main")["levels"][1]["nodes"] == 5


def test_t034_a_node_relabelled_under_a_task_is_a_violation_and_nobody_is_evicted(
    lab: WatchedService, service: Service
) -> None:
    service.submit(gang("w", 2))
    view = running(service, "w-1")
    assert service.placement("w-1")["summary"]["held"] == 1
    file = lab.folder / "cluster.yaml"
    node = nodes(view)["t1"]
    moved = lab.text().replace(
        f"name: {node}, domains: {{zone: a, rack: r1}}", f"name: {node}, domains: {{zone: a, rack: r9}}"
    )
    file.write_text(moved)
    lab.seen(service)
    audit = service.placement("w-1")
    assert audit["summary"] == {"held": 0, "missed": 0, "violated": 1, "unobservable": 0}
    assert node in audit["groups"][0]["constraints"][0]["why"]
    assert (attempts(service.workflow("w-1")), service.workflow("w-1")["tasks"]["running"]) == ({"t0": 1, "t1": 1}, 2)


@pytest.mark.parametrize("ailment", [None, "ready: false", "taints: [{key: x, effect: NoExecute}]"])
def test_t035_a_node_that_comes_back_is_used_again_and_is_in_the_same_domain(
    tmp_path: Path, ailment: str | None
) -> None:
    lab = WatchedService(tmp_path / "lab", racks(r1=2))
    with lab.serving() as service:
        service.submit(gang("w", 2))
        node = nodes(running(service, "w-1"))["t1"]
        name = node.replace("-", "_")
        lab.write(service, **{name: ailment})
        lab.ahead_s += 61
        waiting(service, "w-1")
        assert service.store.workflow("w-1").state["groups"][0]["excluded"] == [node]
        lab.write(service, **{name: ""})
        view = running(service, "w-1")
        assert set(nodes(view).values()) == {"r1-n1", "r1-n2"}
        assert service.placement("w-1")["summary"]["held"] == 1


def test_t035_a_node_that_came_back_while_nobody_looked_is_used_again(lab: WatchedService) -> None:
    lab.nodes = racks(r1=1, r2=1)
    with Service(lab.place().settings(now=lab.now)) as service:
        service.submit(gang("w", 1))
        first = nodes(running(service, "w-1"))["t0"]
        lab.write(service, **{first.replace("-", "_"): None})
        view = until(service, "w-1", lambda view: attempts(view) == {"t0": 2} and view["tasks"]["running"] == 1)
        assert nodes(view)["t0"] != first
    lab.nodes = {first: ""}
    (lab.folder / "cluster.yaml").write_text(lab.text())
    with lab.serving() as service:
        view = until(service, "w-1", lambda view: attempts(view) == {"t0": 3} and view["tasks"]["running"] == 1)
        assert nodes(view)["t0"] == first


def test_t036_a_file_that_is_written_again_without_a_change_moves_nothing(
    lab: WatchedService, service: Service
) -> None:
    service.submit(gang("w", 2))
    running(service, "w-1")
    service.submit(gang("large", 4), force=True)
    waiting(service, "large-1")
    lab.seen(service)
    before = [(service.store.workflow(name).version, kinds(service, name)) for name in ("w-1", "large-1")]
    for file in ("cluster.yaml", "coterie.yaml"):
        os.utime(lab.folder / file, ns=(1, 1))
    lab.seen(service)
    lab.rewrite(service)
    assert [(service.store.workflow(name).version, kinds(service, name)) for name in ("w-1", "large-1")] == before


def test_t036_a_reading_that_says_the_same_is_the_same(lab: WatchedService) -> None:
    settings = lab.place().settings()
    catalogue = LiveCatalog(settings)
    first = catalogue.refresh(())
    for text in (lab.text(), f"# a heartbeat\n{lab.text()}"):
        (lab.folder / "cluster.yaml").write_text(text)
        assert catalogue.refresh(()) is first
    lab.nodes["r1-n1"] = "cordoned: true"
    (lab.folder / "cluster.yaml").write_text(lab.text())
    second = catalogue.refresh(())
    assert (second.number, second.clusters["lab"] is first.clusters["lab"]) == (first.number + 1, False)
