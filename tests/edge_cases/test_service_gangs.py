"""Edge cases of gangs, capacity and quotas, T100 to T114, on a running service."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from coterie.service.service import Service
from coterie.service.settings import Submission
from coterie.store import PlacementRecord
from tests.edge_cases.service_watch import (
    FOREVER,
    WatchedService,
    attempts,
    clear,
    ended,
    eventually,
    gang,
    nodes,
    racks,
    running,
    single,
    task,
    until,
    waiting,
    workflow,
)

pytestmark = pytest.mark.slow("runs the tasks of a service to their ends")

SHOWN = {"T100", "T101", "T102", "T103", "T104", "T105", "T106", "T108", "T109", "T110", "T112", "T113", "T114"}
ELSEWHERE = {
    "T107": "Nothing is preempted, so no preemption can break a topology.",
    "T111": "A ComputeDomain needs the driver of a cluster; a barrier without one is shown with the embedded backend.",
}


def test_every_case_of_gangs_is_shown_or_says_why_not() -> None:
    assert SHOWN | set(ELSEWHERE) == {f"T{number}" for number in range(100, 115)}


def lab(tmp_path: Path, **sizes: int) -> WatchedService:
    return WatchedService(tmp_path / "lab", racks(**sizes))


def held(service: Service) -> list[PlacementRecord]:
    return [row for rows in service.store.held().values() for row in rows]


def overlaps(rows: list[PlacementRecord]) -> list[tuple[str, int]]:
    """Return the devices that are given to two tasks."""
    counted = Counter((row.node, gpu) for row in rows for gpu in row.gpus)
    return [device for device, count in counted.items() if count > 1]


def ran(folder: Path) -> str:
    """Return what tasks have written so far."""
    file = folder / "ran"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def one_of(gpus: int, name: str = "w") -> Submission:
    return workflow(name, {"g": [task("t", FOREVER)]}, gpu=gpus)


def test_t100_of_two_gangs_that_race_for_one_rack_one_runs_and_the_other_waits_whole(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=3)
    idle = Service(place.place().settings(now=place.now))
    for name in ("a", "b"):
        idle.submit(gang(name, 2))
    idle.stop()
    with place.serving() as service:
        running(service, "a-1")
        view = waiting(service, "b-1", "NoCapacity")
        assert set(nodes(view).values()) == {None}
        assert {row.task for row in service.store.held()["a-1"]} == {"t0", "t1"}
        assert "b-1" not in service.store.held()
        service.cancel("a-1", force=True)
        running(service, "b-1")


def test_t101_a_gang_goes_to_the_empty_rack_when_the_fullest_is_one_short(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=3, r2=3)
    with place.serving() as service:
        service.submit(single("first", FOREVER))
        taken = nodes(running(service, "first-1"))["t"]
        service.submit(gang("w", 3))
        assert {node[:2] for node in nodes(running(service, "w-1")).values()} == {"r1", "r2"} - {taken[:2]}


@pytest.mark.parametrize(
    ("limit", "gpus", "reason"),
    [(64, 8, "NeverFits"), (4, 4, "OverQuota"), (4, 8, "OverQuota"), (64, 4, "NoCapacity")],
    ids=["no node fits", "quota full", "both", "all taken"],
)
def test_t102_quota_and_capacity_are_told_apart(tmp_path: Path, limit: int, gpus: int, reason: str) -> None:
    place = lab(tmp_path, r1=1 if reason == "NoCapacity" else 2)
    place.config += f"    gpus: {{limit: {limit}}}\n"
    with place.serving() as service:
        service.submit(one_of(4, "first"))
        running(service, "first-1")
        service.submit(one_of(gpus), force=True)
        waiting(service, "w-1", reason)
        assert service.why("w-1")["groups"][0]["refusal"]["reason"] == reason
        assert service.plan(one_of(gpus, "other"))["groups"][0]["refusal"]["reason"] == reason


def test_t103_what_is_on_its_way_out_still_holds_its_gpus(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=1)
    place.changes = {"grace_s": 600.0}
    deaf = f"trap '' TERM; touch {tmp_path}/deaf; while :; do sleep 0.1; done"
    with place.serving() as service:
        service.submit(single("old", deaf))
        running(service, "old-1")
        eventually((tmp_path / "deaf").exists)
        service.cancel("old-1")
        until(service, "old-1", lambda view: bool(view["cleaning"]))
        service.submit(one_of(4, "new"))
        waiting(service, "new-1", "NoCapacity")
        assert [holder["owner"] for holder in service.why("new-1")["groups"][0]["refusal"]["holders"]] == ["old-1"]
        service.cancel("old-1", force=True)
        running(service, "new-1")


@pytest.mark.parametrize("kind", ["", ", daemon: true", ", terminating: true"], ids=["other", "daemon", "terminating"])
def test_t104_pods_of_others_count_and_their_end_wakes_what_waits(tmp_path: Path, kind: str) -> None:
    place = lab(tmp_path, r1=1)
    place.pods = f"- {{name: ns/p, node: r1-n1, gpu: 1{kind}}}\n"
    with place.serving() as service:
        service.submit(one_of(4), force=True)
        waiting(service, "w-1", "NeverFits" if "daemon" in kind else "NoCapacity")
        place.pods = ""
        place.rewrite(service)
        running(service, "w-1")


def test_t105_a_node_takes_no_more_tasks_than_it_has_room_for_pods(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=2)
    place.nodes = {"r1-n1": "pods: 1", "r1-n2": "pods: 2"}
    with place.serving() as service:
        service.submit(
            workflow("w", {"g": [task(f"t{n}", FOREVER, "" if n else "lead: true") for n in range(3)]}, gpu=1)
        )
        used = Counter(nodes(running(service, "w-1")).values())
        assert used == {"r1-n1": 1, "r1-n2": 2}
        service.submit(one_of(1, "more"))
        waiting(service, "more-1", "NoCapacity")


def test_t106_a_cordon_touches_nothing_that_runs_and_keeps_new_work_away(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=1)
    with place.serving() as service:
        service.submit(one_of(2, "old"))
        running(service, "old-1")
        place.nodes["r1-n1"] = "cordoned: true"
        (place.folder / "cluster.yaml").write_text(place.text())
        service.submit(one_of(2, "new"))
        waiting(service, "new-1", "NoCapacity")
        place.ahead_s += 1000
        assert service.why("new-1")["position"] == 1
        assert attempts(service.workflow("old-1")) == {"t": 1}
        assert service.workflow("old-1")["tasks"]["running"] == 1
        place.write(service, r1_n1="")
        running(service, "new-1")


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_t106_a_taint_without_toleration_keeps_work_away(tmp_path: Path, effect: str) -> None:
    place = lab(tmp_path, r1=2)
    place.nodes["r1-n1"] = f"taints: [{{key: x, effect: {effect}}}]"
    with place.serving() as service:
        service.submit(one_of(4))
        assert nodes(running(service, "w-1")) == {"t": "r1-n2"}
        service.submit(one_of(4, "more"))
        waiting(service, "more-1", "NoCapacity")


def test_t106_the_taint_of_a_resource_keeps_away_only_work_that_does_not_ask_for_it(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=1)
    place.nodes["r1-n1"] = "taints: [{key: nvidia.com/gpu, effect: NoSchedule}]"
    with place.serving() as service:
        service.submit(one_of(4))
        assert nodes(running(service, "w-1")) == {"t": "r1-n1"}


def test_t108_nobody_is_preempted_whatever_the_priority(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=1)
    with place.serving() as service:
        service.submit(replace(one_of(4, "low"), priority="LOW"))
        running(service, "low-1")
        service.submit(replace(one_of(4, "normal"), priority="NORMAL"))
        waiting(service, "normal-1")
        service.submit(replace(one_of(4, "high"), priority="HIGH"))
        waiting(service, "high-1")
        assert service.workflow("low-1")["tasks"]["running"] == 1
        # Who waits is put in order by priority all the same.
        assert [service.why(f"{name}-1")["position"] for name in ("high", "normal")] == [1, 2]
        assert service.why("high-1")["waiting"] == 2


@pytest.mark.parametrize(("quota", "words"), [({"guarantee": 4}, "no limit"), ({"limit": 4}, "nothing is guaranteed")])
def test_t108_a_quota_that_is_only_partly_given_is_said(tmp_path: Path, quota: dict[str, int], words: str) -> None:
    with lab(tmp_path, r1=1).serving() as service:
        view = service.apply_pool("team", {"backend": "lab", "gpus": quota})["pool"]
        (said,) = [each["message"] for each in view["warnings"] if each["code"] == "QuotaIncomplete"]
        assert words in said
        assert service.pool("team")["warnings"] == view["warnings"]


def test_t109_no_member_of_a_gang_begins_before_all_can(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=4)
    place.changes = {"processes": 2}
    with place.serving() as service:
        service.submit(gang("first", 1, f"until test -e {tmp_path}/go; do sleep 0.02; done"))
        running(service, "first-1")
        # There is room on the nodes for both tasks, and a process for one of them.
        both = f"echo x >> {tmp_path}/ran; until test $(wc -l < {tmp_path}/ran) = 2; do sleep 0.02; done"
        service.submit(gang("pair", 2, both))
        waiting(service, "pair-1", "NoCapacity")
        assert "pair-1" not in service.store.held()
        assert not (tmp_path / "ran").exists()
        (tmp_path / "go").touch()
        assert ended(service, "pair-1")["status"] == "COMPLETED"


def test_t110_an_extra_member_counts_like_the_others(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=2, r2=2)
    with place.serving() as service:
        service.submit(gang("fits", 2, "true"))
        assert ended(service, "fits-1")["status"] == "COMPLETED"
        service.submit(gang("w", 3), force=True)
        waiting(service, "w-1", "NeverFits")
        assert service.store.held() == {}
        assert any(warning["code"] == "NeverFits" for warning in service.workflow("w-1")["warnings"])


def test_t112_a_driver_that_stops_in_the_middle_gives_nothing_away_twice(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=3)
    settings = place.place().settings(now=place.now)
    script = f"echo $COTERIE_TASK >> {tmp_path}/ran; {FOREVER}"
    for number in range(3):
        with Service(settings) as service:
            service.submit(gang(f"w{number}", 1, script))
            if number:
                eventually(lambda: bool(service.health()["leader"]))
    with place.serving() as service:
        for number in range(3):
            running(service, f"w{number}-1")
        rows = held(service)
        assert len({row.node for row in rows}) == 3
        assert overlaps(rows) == []
        eventually(lambda: ran(tmp_path).count("t0") == 3)


def test_t112_of_two_replicas_one_acts(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=4)
    settings = place.place().settings(now=place.now)
    first, second = Service(replace(settings, holder="a")), Service(replace(settings, holder="b"))
    with first, second:
        eventually(lambda: first.health()["leader"] or second.health()["leader"])
        for number, service in enumerate((first, second, first, second)):
            service.submit(gang(f"w{number}", 1, f"echo x >> {tmp_path}/ran; {FOREVER}"))
        for number in range(4):
            running(first, f"w{number}-1")
        eventually(lambda: [first.health()["leader"], second.health()["leader"]].count(True) == 1)
        assert overlaps(held(first)) == []
        assert first.why("w0-1") == second.why("w0-1")
        eventually(lambda: ran(tmp_path) == "x\n" * 4)
        clear(second)


def test_t113_the_same_nodes_and_the_same_workflow_give_the_same_placement(tmp_path: Path) -> None:
    asked = gang("w", 2, topology="[{key: rack, requirementType: preferred}]")
    placed = []
    for folder in ("one", "two"):
        place = WatchedService(tmp_path / folder, racks(r1=3, r2=2))
        with place.serving() as service:
            plans = [service.plan(asked)["groups"] for _ in range(2)]
            assert plans[0] == plans[1]
            service.submit(asked)
            placed.append(nodes(running(service, "w-1")))
            assert placed[-1] == {one["task"]: one["node"] for one in plans[0][0]["assignments"]}
    assert placed[0] == placed[1]


def test_t114_placements_of_one_cycle_do_not_overlap(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=2, r2=2)
    idle = Service(place.place().settings(now=place.now))
    for number in range(5):
        idle.submit(workflow(f"w{number}", {"g": [task("t", FOREVER)]}, gpu=3 if number % 2 else 2))
    idle.stop()
    with place.serving() as service:
        for number in range(5):
            running(service, f"w{number}-1")
        rows = held(service)
        assert sorted(len(row.gpus) for row in rows) == [2, 2, 2, 3, 3]
        assert overlaps(rows) == []
        used = {pool["name"]: pool["gpus"] for pool in service.pools()}["main"]
        assert (used["used"], used["free"]) == (12, 4)
