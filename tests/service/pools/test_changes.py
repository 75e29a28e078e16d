"""Changes of stored pools: creation, dry runs, refused rules, warnings and deletion."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from coterie.errors import Conflict, CoterieError, SpecErrors, Unavailable
from coterie.service.service import Service
from tests.eventually import eventually
from tests.service.running_service import CONFIG, ServiceFolder, single, task, workflow

PATIENCE_S = 60.0
OTHERS = """
  cloud: {scheduler: default, context: c}
  kai: {scheduler: kai, context: k}
"""
KEYS = [
    {"key": "zone", "label": "topology.kubernetes.io/zone"},
    {"key": "rack", "label": "topology.kubernetes.io/rack"},
]


@pytest.fixture
def place(tmp_path: Path) -> ServiceFolder:
    config = CONFIG.replace("pools:", OTHERS.strip("\n") + "\npools:", 1)
    return ServiceFolder(tmp_path / "place", config=config)


def test_a_pool_is_made_changed_shown_and_deleted(service: Service) -> None:
    done = service.apply_pool("team", {"backend": "lab", "topology_keys": KEYS, "description": "ours"})
    assert (done["created"], done["changed"], done["pool"]["managed"]) == (True, True, False)
    assert done["pool"]["nodes"] == 8
    assert [pool["name"] for pool in service.pools()] == ["main", "team"]
    again = service.apply_pool("team", {"backend": "lab", "topology_keys": KEYS, "description": "ours"})
    assert (again["created"], again["changed"], again["pool"]["version"]) == (False, False, done["pool"]["version"])
    less = service.apply_pool("team", {"backend": "lab", "topology_keys": KEYS[:1]})
    assert (less["changed"], less["lost_levels"], less["affected"]) == (True, ["rack"], [])
    assert service.pool("team")["topology_keys"] == KEYS[:1]
    service.delete_pool("team")
    assert [pool["name"] for pool in service.pools()] == ["main"]


def test_a_dry_run_changes_nothing(service: Service) -> None:
    done = service.apply_pool("team", b"backend: lab\n", dry_run=True)
    assert (done["created"], done["changed"], done["dry_run"]) == (True, True, True)
    assert [pool["name"] for pool in service.pools()] == ["main"]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"backend": "lab", "topology_keys": [KEYS[0], KEYS[0]]}, "twice"),
        ({"backend": "lab", "topology_keys": [{"key": "rack", "label": "not a label"}]}, "label"),
        ({"backend": "lab", "topology_keys": []}, ""),
        ({"backend": "cloud", "topology_keys": KEYS}, "cannot honour topology"),
        ({"backend": "cloud", "nvlink": True}, "ComputeDomain"),
        ({"backend": "lap"}, "no backend"),
        ({"backend": "lab", "gpus": {"guarantee": 9, "limit": 8}}, "guarantees 9"),
        ({"backend": "lab", "nod_selector": {}}, "nod_selector"),
        ({"backend": "lab", "topology_keys": KEYS, "topology": "t"}, "both"),
        (b"- a\n", "mapping"),
        (b"{", ""),
        (b"backend: lab\ntopology_keys:\n- {key: rack, label: rack}\n- {key: rack, label: zone}\n", "twice"),
    ],
)
def test_pools_that_break_a_rule_are_refused(service: Service, document: bytes | Mapping[str, Any], words: str) -> None:
    with pytest.raises(SpecErrors) as error:
        service.apply_pool("team", document)
    assert words in str(error.value)
    if isinstance(document, bytes):
        assert error.value.faults[0].place
        assert error.value.faults[0].place.file == "pool.yaml"
    assert [pool["name"] for pool in service.pools()] == ["main"]


def test_a_name_that_no_pool_can_have_is_refused(service: Service) -> None:
    with pytest.raises(CoterieError, match="not allowed"):
        service.apply_pool("../x", {"backend": "lab"})


def test_a_label_that_is_on_no_node_is_a_warning(service: Service) -> None:
    keys = [{"key": "rack", "label": "example.com/rack"}]
    done = service.apply_pool("team", {"backend": "lab", "topology_keys": keys})
    assert done["changed"]
    assert any(warning["level"] == "rack" for warning in done["pool"]["warnings"])


def test_pools_of_the_file_are_changed_in_the_file_alone(service: Service, place: ServiceFolder) -> None:
    with pytest.raises(Conflict, match=r"coterie\.yaml"):
        service.apply_pool("main", {"backend": "lab"})
    with pytest.raises(Conflict):
        service.delete_pool("main")
    file = place.folder / "coterie.yaml"
    file.write_text(place.config + "    gpus: {limit: 8}\n")
    assert service.pool("main")["gpus"]["limit"] == 8


def test_a_file_that_became_wrong_is_said_and_changes_nothing(service: Service, place: ServiceFolder) -> None:
    file = place.folder / "coterie.yaml"
    file.write_text("backends: {lab: {scheduler: nonsense}}\n")
    eventually(lambda: _wrong(service))
    service.submit(single("still", "true"))
    assert service.wait("still-1", timeout_s=PATIENCE_S)["status"] == "COMPLETED"
    file.write_text(place.config)
    eventually(lambda: not _wrong(service))


def _wrong(service: Service) -> bool:
    return "configuration" in {problem["what"] for problem in service.health()["problems"]}


def test_a_pool_in_use_is_not_deleted(service: Service) -> None:
    service.apply_pool("team", {"backend": "lab"})
    service.submit(workflow("user", {"g": [task("t", "sleep 600")]}, rest="  pool: team\n"))
    service.wait("user-1", lambda view: bool(view["status"] == "RUNNING"), PATIENCE_S)
    with pytest.raises(Conflict, match="user-1"):
        service.delete_pool("team")
    service.cancel("user-1", force=True)
    service.wait("user-1", timeout_s=PATIENCE_S)
    service.delete_pool("team")


def test_a_level_that_is_removed_blocks_what_waits_for_it_and_touches_nothing_that_runs(service: Service) -> None:
    service.apply_pool("team", {"backend": "lab", "topology_keys": KEYS})
    whole = [task(f"t{n}", "sleep 600", "" if n else "lead: true") for n in range(4)]
    for name in ("one", "two", "three"):
        service.submit(workflow(name, {"g": whole}, topology="[{key: rack}]", rest="  pool: team\n"))
    for name in ("one", "two"):
        service.wait(f"{name}-1", lambda view: bool(view["status"] == "RUNNING"), PATIENCE_S)
    service.wait("three-1", lambda view: bool(view["waiting"]), PATIENCE_S)
    users = service.topology_users("team", ["zone"])
    assert users["change"]["removed"] == ["rack"]
    assert {(each["name"], each["effect"]) for each in users["users"]} == {
        (name, "not-placed") for name in ("one-1", "two-1", "three-1")
    }
    assert {each["effect"] for each in service.topology_users("team")["users"]} == {"none"}
    others = [f"{level['key']}=example.com/{level['key']}" for level in KEYS]
    relabelled = service.topology_users("team", others)
    assert relabelled["change"]["relabelled"] == [level["key"] for level in KEYS]
    assert {each["effect"] for each in relabelled["users"]} == {"none"}
    done = service.apply_pool("team", {"backend": "lab", "topology_keys": KEYS[:1]})
    assert done["lost_levels"] == ["rack"]
    assert {(each["workflow"], each["level"], each["waits"]) for each in done["affected"]} == {
        ("one-1", "rack", False),
        ("two-1", "rack", False),
        ("three-1", "rack", True),
    }
    view = service.wait("three-1", lambda view: "LevelLost" in str(view["waiting"]), PATIENCE_S)
    assert (view["waiting"]["reason"], view["waiting"]["never"]) == ("LevelLost", False)
    why = service.why("three-1")["groups"][0]["refusal"]
    assert (why["reason"], why["level"], why["message"]) == ("LevelLost", "rack", view["waiting"]["message"])
    assert service.workflow("one-1")["status"] == "RUNNING"
    service.cancel("one-1", force=True)
    assert service.wait("one-1", timeout_s=PATIENCE_S)["finished"]
    assert service.workflow("three-1")["waiting"]["reason"] == "LevelLost"
    service.apply_pool("team", {"backend": "lab", "topology_keys": KEYS})
    view = service.wait("three-1", lambda view: bool(view["status"] == "RUNNING"), PATIENCE_S)
    assert view["status"] == "RUNNING"
    for name in ("two-1", "three-1"):
        service.cancel(name, force=True)
        service.wait(name, timeout_s=PATIENCE_S)


def test_pools_that_share_nodes_share_their_room(service: Service) -> None:
    service.apply_pool("team", {"backend": "lab", "gpus": {"limit": 4}})
    service.submit(
        workflow(
            "a", {"g": [task(f"t{n}", "sleep 600", "" if n else "lead: true") for n in range(7)]}, rest="  pool: main\n"
        )
    )
    service.wait("a-1", lambda view: bool(view["status"] == "RUNNING"), PATIENCE_S)
    service.submit(workflow("b", {"g": [task("t", "sleep 600")]}, rest="  pool: team\n"))
    service.wait("b-1", lambda view: bool(view["status"] == "RUNNING"), PATIENCE_S)
    service.submit(workflow("c", {"g": [task("t", "sleep 600")]}, rest="  pool: team\n"))
    service.submit(workflow("d", {"g": [task("t", "sleep 600")]}, rest="  pool: main\n"))
    view = service.wait("c-1", lambda view: bool(view["waiting"]), PATIENCE_S)
    assert view["waiting"]["reason"] == "OverQuota"
    view = service.wait("d-1", lambda view: bool(view["waiting"]), PATIENCE_S)
    assert view["waiting"]["reason"] == "NoCapacity"
    assert (
        service.plan(workflow("e", {"g": [task("t", "true")]}, rest="  pool: team\n"))["groups"][0]["refusal"]["reason"]
        == "OverQuota"
    )
    for name in ("a-1", "b-1", "c-1", "d-1"):
        service.cancel(name, force=True)
    for name in ("a-1", "b-1", "c-1", "d-1"):
        assert service.wait(name, timeout_s=PATIENCE_S)["finished"]


def test_a_pool_of_a_scheduler_that_is_not_driven_here_takes_no_workflows(service: Service) -> None:
    service.apply_pool("far", {"backend": "cloud"})
    with pytest.raises(CoterieError, match="does not drive"):
        service.submit(workflow("x", {"g": [task("t", "true")]}, rest="  pool: far\n"))
    assert service.pool("far")["nodes"] == 0


def test_a_pool_whose_cluster_cannot_be_reached_says_why(service: Service) -> None:
    service.apply_pool("far", {"backend": "kai", "topology_keys": KEYS})

    def refused() -> str:
        with pytest.raises(Unavailable) as caught:
            service.submit(workflow("x", {"g": [task("t", "true")]}, rest="  pool: far\n"))
        return str(caught.value)

    eventually(lambda: "context" in refused(), refused)
    eventually(lambda: any(each["what"] == "backend kai" for each in service.health()["problems"]))
    service.submit(single("near", "true", rest="  pool: main\n"))
    assert service.wait("near-1", timeout_s=PATIENCE_S)["status"] == "COMPLETED"


def test_levels_of_a_pool_whose_nodes_are_not_known_are_shown_as_configured(service: Service) -> None:
    service.apply_pool("far", {"backend": "kai", "topology_keys": KEYS})
    service.apply_pool("flat", {"backend": "kai"})

    found = service.topology("far")

    nothing = {"domains": None, "nodes": None, "unlabelled": None}
    assert found["levels"] == [{**key, **nothing} for key in KEYS]
    assert (found["counted"], found["domains"]) == (False, [])
    assert [one["pool"] for one in service.topologies()] == ["main", "far"]
    assert service.pool("far")["topology_keys"] == KEYS
    assert not service.pool("far")["counted"]


def test_nodes_of_a_kai_pool_are_counted_where_a_file_tells_of_them(tmp_path: Path) -> None:
    far = "  far: {scheduler: kai, cluster: far.yaml}\n  lost: {scheduler: kai, cluster: lost.yaml}\n"
    place = ServiceFolder(tmp_path / "place", config=CONFIG.replace("pools:", f"{far}pools:", 1))
    settings = place.settings()
    (place.folder / "far.yaml").write_text(
        f"topology_keys: {json.dumps(KEYS)}\n"
        "fleet: [{domains: {zone: [z], rack: [r1, r2, r3]}, nodes: 2, gpu: 8}]\n",
        encoding="utf-8",
    )
    with Service(settings) as service:
        service.apply_pool("away", {"backend": "far", "topology_keys": KEYS})
        service.apply_pool("gone", {"backend": "lost", "topology_keys": KEYS})

        found = service.topology("away")

        assert found["counted"]
        assert [(level["domains"], level["nodes"]) for level in found["levels"]] == [(1, 6), (3, 6)]
        assert len(found["domains"]) == 4
        shown = service.pool("away")
        assert (shown["nodes"], shown["gpus"]["total"], shown["counted"]) == (6, 48, True)
        assert not service.topology("gone")["counted"]
        with pytest.raises(CoterieError, match="does not drive"):
            service.submit(workflow("x", {"g": [task("t", "true")]}, rest="  pool: away\n"))


def test_users_see_levels_with_their_domains(service: Service) -> None:
    found = service.topology("main")
    assert found["levels"] == [
        {"key": "zone", "label": "topology.kubernetes.io/zone", "domains": 1, "nodes": 8, "unlabelled": 0},
        {"key": "rack", "label": "topology.kubernetes.io/rack", "domains": 2, "nodes": 8, "unlabelled": 0},
    ]
    assert found["domains"][1] == {
        "path": ["a", "r1"],
        "level": "rack",
        "nodes": 4,
        "gpus": {"total": 16, "used": 0, "free": 16, "out_of_service": 0},
    }
    assert [one["pool"] for one in service.topologies()] == ["main"]


def test_gpus_that_are_idle_on_cordoned_nodes_are_neither_free_nor_used(place: ServiceFolder) -> None:
    """Of the six nodes of a rack two take no work; somebody holds half of one of them, and half of another."""
    marked = """
nodes:
- {name: c1, gpu: 4, domains: {zone: a, rack: r1}, cordoned: true}
- {name: c2, gpu: 4, domains: {zone: a, rack: r1}, ready: false}
pods:
- {owner: stranger, node: c1, gpu: 2}
- {owner: stranger, node: r1-n3, gpu: 2}
"""
    with Service(
        ServiceFolder(place.folder, config=place.config, cluster=place.cluster + marked).settings()
    ) as service:
        gpus = service.pool("main")["gpus"]
        (rack,) = [one["gpus"] for one in service.topology("main")["domains"] if one["path"] == ["a", "r1"]]

    assert gpus["used"] == 0
    assert (gpus["total"], gpus["free"], gpus["out_of_service"]) == (40, 30, 6)
    assert rack == {"total": 24, "used": 4, "free": 14, "out_of_service": 6}
