"""Edge cases of nodes that fail under running work, T130 to T141, and of cancelling, T177, on a service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coterie.backends.local.supervisor import Supervisor
from coterie.backends.local.work_order import WorkOrder
from coterie.errors import Conflict, Unavailable
from coterie.service.service import Service
from tests.edge_cases.service_watch import (
    FOREVER,
    WatchedService,
    attempts,
    ended,
    eventually,
    gang,
    kinds,
    nodes,
    racks,
    running,
    single,
    task,
    tasks,
    until,
    waiting,
    workflow,
)

pytestmark = pytest.mark.slow("waits until tasks of a running service fail, are retried or time out")

KEYS = [
    {"key": "zone", "label": "topology.kubernetes.io/zone"},
    {"key": "rack", "label": "topology.kubernetes.io/rack"},
]
TAINT = "taints: [{key: broken, effect: NoExecute}]"

ELSEWHERE = {
    "T134": "A pod that stays Terminating needs a kubelet that died; here the supervisor itself ends processes.",
    "T135": "ContainerStatusUnknown is a kubelet's word for a container it lost; here a lost process is ProcessLost.",
}
SHOWN = {"T130", "T131", "T132", "T133", "T136", "T137", "T138", "T139", "T140", "T141"}


def test_every_case_of_node_failure_is_shown_or_says_why_not() -> None:
    assert SHOWN | set(ELSEWHERE) == {f"T{number}" for number in range(130, 142)}


def lab(tmp_path: Path, **sizes: int) -> WatchedService:
    return WatchedService(tmp_path / "lab", racks(**sizes))


def dash(name: str) -> str:
    return name.replace("-", "_")


def lose(place: WatchedService, service: Service, *names: str) -> None:
    """Take nodes away, all at one time."""
    place.write(service, **{dash(name): None for name in names})


def settled(service: Service, ident: str, numbers: dict[str, int]) -> dict[str, Any]:
    """Wait until all tasks run, in these attempts."""
    return until(
        service,
        ident,
        lambda view: attempts(view) == numbers and view["tasks"]["running"] == view["tasks"]["total"],
    )


def audited(service: Service, ident: str) -> None:
    assert service.placement(ident)["summary"]["violated"] == 0


def test_t130_one_node_dies_and_its_task_is_replaced_in_the_same_rack(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=3, r2=4)
    with place.serving() as service:
        service.submit(gang("w", 2))
        before = nodes(running(service, "w-1"))
        lose(place, service, before["t1"])
        after = nodes(settled(service, "w-1", {"t0": 1, "t1": 2}))
        assert after["t0"] == before["t0"]
        assert after["t1"][:2] == before["t1"][:2]
        assert after["t1"] != before["t1"]
        audited(service, "w-1")


def test_t130_without_a_place_in_the_rack_the_whole_group_moves_and_not_one_task(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=2, r2=3)
    with place.serving() as service:
        service.submit(gang("w", 2))
        before = nodes(running(service, "w-1"))
        assert {node[:2] for node in before.values()} == {"r1"}
        lose(place, service, before["t1"])
        after = nodes(until(service, "w-1", lambda view: view["tasks"]["running"] == 2 and attempts(view)["t0"] > 1))
        assert {node[:2] for node in after.values()} == {"r2"}
        assert "GroupRescheduled" in kinds(service, "w-1")
        audited(service, "w-1")


@pytest.mark.parametrize(("spare", "moves"), [(2, False), (1, True)], ids=["both have a place", "one has none"])
def test_t131_two_nodes_die_at_once(tmp_path: Path, *, spare: int, moves: bool) -> None:
    place = lab(tmp_path, r1=3 + spare, r2=6)
    with place.serving() as service:
        service.submit(gang("w", 3))
        before = nodes(running(service, "w-1"))
        assert {node[:2] for node in before.values()} == {"r1"}
        lose(place, service, before["t1"], before["t2"])
        wanted = {"t0": 3, "t1": 3, "t2": 3} if moves else {"t0": 1, "t1": 2, "t2": 2}
        after = nodes(settled(service, "w-1", wanted))
        assert {node[:2] for node in after.values()} == {"r2" if moves else "r1"}
        assert len(set(after.values())) == 3
        audited(service, "w-1")


def test_t131_tasks_lost_one_after_the_other_are_placed_together(tmp_path: Path) -> None:
    # Tasks a and b must share a rack, which the lead need not be in. Placed one by one, the first would go to the
    # rack that has room for one alone.
    wants = "[{key: zone}, {key: rack, group: %s}]"
    members = [
        task("lead", FOREVER, "lead: true\nresource: lead"),
        task("a", FOREVER, "resource: pair"),
        task("b", FOREVER, "resource: pair"),
    ]
    more = f"    lead: {{gpu: 4, topology: {wants % 'l'}}}\n    pair: {{gpu: 4, topology: {wants % 'p'}}}\n"
    place = lab(tmp_path, r1=1, r2=2)
    with place.serving() as service:
        service.apply_pool("team", {"backend": "lab", "topology_keys": KEYS})
        service.submit(replace(workflow("w", {"g": members}, rest=more), pool="team"))
        before = nodes(running(service, "w-1"))
        assert {before["a"][:2], before["b"][:2]} == {"r2"}
        service.apply_pool("team", {"backend": "lab", "topology_keys": KEYS[:1]})
        lose(place, service, before["a"])
        waiting(service, "w-1", "LevelLost")
        lose(place, service, before["b"])
        until(service, "w-1", lambda view: attempts(view) == {"lead": 1, "a": 3, "b": 3} and bool(view["waiting"]))
        place.write(service, r3_n1="", r4_n1="", r4_n2="")
        service.apply_pool("team", {"backend": "lab", "topology_keys": KEYS})
        after = nodes(settled(service, "w-1", {"lead": 1, "a": 3, "b": 3}))
        assert {after["a"][:2], after["b"][:2]} == {"r4"}
        audited(service, "w-1")


def test_t130_a_replacement_that_the_quota_forbids_waits_alone(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=3)
    with place.serving() as service:
        team: dict[str, Any] = {"backend": "lab", "topology_keys": KEYS}
        service.apply_pool("team", {**team, "gpus": {"limit": 8}})
        service.submit(replace(gang("w", 2), pool="team"))
        before = nodes(running(service, "w-1"))
        service.apply_pool("team", {**team, "gpus": {"limit": 4}})
        lose(place, service, before["t1"])
        view = waiting(service, "w-1", "OverQuota")
        assert (view["tasks"]["running"], attempts(view)) == (1, {"t0": 1, "t1": 2})
        assert service.why("w-1")["groups"][0]["refusal"]["reason"] == "OverQuota"
        service.apply_pool("team", {**team, "gpus": {"limit": 8}})
        settled(service, "w-1", {"t0": 1, "t1": 2})


def test_t132_what_runs_in_a_pool_that_is_gone_is_lost_with_its_node_all_the_same(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=2)
    with place.serving() as service:
        service.submit(gang("w", 1))
        node = nodes(running(service, "w-1"))["t0"]
        file = place.folder / "coterie.yaml"
        file.write_text(place.config.replace("  main:", "  other:"))
        place.nodes[node] = TAINT
        (place.folder / "cluster.yaml").write_text(place.text())
        eventually(lambda: [pool["name"] for pool in service.pools()] == ["other"])
        place.seen(service, "other")
        place.ahead_s += 61
        waiting(service, "w-1", "SchedulerRefused")
        file.write_text(place.config)
        assert nodes(settled(service, "w-1", {"t0": 2}))["t0"] != node


@pytest.mark.parametrize("ailment", ["ready: false", TAINT], ids=["not ready", "NoExecute"])
def test_t132_a_node_that_is_not_well_is_given_time_and_then_its_tasks_move(tmp_path: Path, ailment: str) -> None:
    place = lab(tmp_path, r1=3)
    with place.serving() as service:
        service.submit(gang("w", 2))
        node = nodes(running(service, "w-1"))["t1"]
        place.write(service, **{dash(node): ailment})
        place.ahead_s += 30
        place.seen(service)
        view = service.workflow("w-1")
        assert (view["tasks"]["running"], attempts(view)) == (2, {"t0": 1, "t1": 1})
        place.ahead_s += 31
        view = settled(service, "w-1", {"t0": 1, "t1": 2})
        assert nodes(view)["t1"] != node
        (said,) = [event["message"] for event in service.events(workflow="w-1") if event["kind"] == "TaskRescheduled"]
        assert node in said
        assert "for 60 s" in said


def test_t132_a_taint_that_the_pool_tolerates_drives_nobody_off(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=2)
    place.config += "    tolerations: [{key: broken, operator: Exists}]\n"
    with place.serving() as service:
        service.submit(gang("w", 1))
        node = nodes(running(service, "w-1"))["t0"]
        place.write(service, **{dash(node): TAINT})
        place.ahead_s += 100
        place.seen(service)
        assert attempts(service.workflow("w-1")) == {"t0": 1}


def test_t133_a_node_that_flaps_costs_nothing(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=2)
    with place.serving() as service:
        service.submit(gang("w", 1))
        node = nodes(running(service, "w-1"))["t0"]
        place.seen(service)
        before = service.store.workflow("w-1").version
        for _ in range(3):
            place.write(service, **{dash(node): "ready: false"})
            place.ahead_s += 30
            place.write(service, **{dash(node): ""})
            place.ahead_s += 5
        assert service.store.workflow("w-1").version == before


def test_t136_what_completed_stays_completed_when_its_node_goes(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=3)
    go = tmp_path / "go"
    members = [task("lead", f"until test -e {go}; do sleep 0.02; done", "lead: true"), task("quick", "true")]
    both = workflow("both", {"g": members}, topology="[{key: rack}]")
    text = both.source.replace(b"  - name: g\n", b"  - name: g\n    ignoreNonleadStatus: false\n")
    with place.serving() as service:
        service.submit(replace(both, source=text))
        view = until(service, "both-1", lambda view: view["tasks"]["completed"] == 1 and view["tasks"]["running"] == 1)
        lose(place, service, nodes(view)["quick"])
        go.touch()
        view = ended(service, "both-1")
        assert (view["status"], attempts(view)) == ("COMPLETED", {"lead": 1, "quick": 1})
        lose(place, service, nodes(view)["lead"])
        assert service.workflow("both-1") == view


def test_t137_a_task_that_runs_again_is_given_all_that_it_had(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=3)
    script = "env | sort; cat /etc/note; " + FOREVER
    members = [task("t0", FOREVER, "lead: true"), task("t1", script, "files: [{path: /etc/note, contents: kept}]")]
    with place.serving() as service:
        service.submit(workflow("w", {"g": members}, topology="[{key: rack}]"))
        node = nodes(running(service, "w-1"))["t1"]
        eventually(lambda: b"kept" in service.log("w-1", "t1", 1))
        lose(place, service, node)
        settled(service, "w-1", {"t0": 1, "t1": 2})
        eventually(lambda: b"kept" in service.log("w-1", "t1", 2))
        first, second = (service.log("w-1", "t1", number).decode().splitlines() for number in (1, 2))
    known = dict(line.partition("=")[::2] for line in first if line.startswith("COTERIE_"))
    again = dict(line.partition("=")[::2] for line in second if line.startswith("COTERIE_"))
    assert again.keys() == known.keys()
    own = {"COTERIE_NODE", "COTERIE_ATTEMPT", "COTERIE_MARK", "COTERIE_OUTPUT", "COTERIE_FILES"}
    assert {key: again[key] for key in again if key not in own} == {key: known[key] for key in known if key not in own}
    assert (known["COTERIE_DOMAIN_RACK"], known["COTERIE_WORLD_SIZE"], known["COTERIE_RANK"]) == ("r1", "2", "1")
    assert (known["COTERIE_NODE"], again["COTERIE_NODE"] != node) == (node, True)


def test_t138_a_gang_without_a_place_waits_instead_of_trying_again_and_again(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=3)
    with place.serving() as service:
        service.submit(single("filler", FOREVER))
        running(service, "filler-1")
        service.submit(gang("w", 2))
        lose(place, service, nodes(running(service, "w-1"))["t1"])
        until(service, "w-1", lambda view: bool(view["waiting"]) and set(attempts(view).values()) == {3})
        place.seen(service)
        count = len(kinds(service, "w-1"))
        for _ in range(3):
            place.seen(service)
        assert len(kinds(service, "w-1")) == count


def test_t138_a_tainted_node_is_not_used_again(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=3)
    with place.serving() as service:
        service.submit(gang("w", 1))
        for number in (1, 2):
            node = nodes(settled(service, "w-1", {"t0": number}))["t0"]
            place.write(service, **{dash(node): TAINT})
            place.ahead_s += 61
        last = nodes(settled(service, "w-1", {"t0": 3}))["t0"]
        assert last not in [past["node"] for past in tasks(service.workflow("w-1"))["t0"]["past"]]


def test_t139_what_the_infrastructure_costs_is_not_charged_to_the_user(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=3)
    place.changes = {"max_reschedules": 1}
    ran = tmp_path / "ran"
    script = f"echo x >> {ran}; case $(wc -l < {ran}) in 1) {FOREVER};; 2) exit 10;; esac"
    with place.serving() as service:
        service.submit(workflow("w", {"g": [task("t", script, "exitActions: {RESCHEDULE: '10'}")]}))
        node = nodes(running(service, "w-1"))["t"]
        eventually(ran.exists)
        lose(place, service, node)
        view = ended(service, "w-1")
        assert (view["status"], attempts(view)) == ("COMPLETED", {"t": 3})


def test_t139_losses_have_a_limit_of_their_own(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=3)
    place.changes = {"max_infrastructure_retries": 1}
    with place.serving() as service:
        service.submit(gang("w", 1))
        lose(place, service, nodes(running(service, "w-1"))["t0"])
        lose(place, service, nodes(settled(service, "w-1", {"t0": 2}))["t0"])
        assert ended(service, "w-1")["status"] == "FAILED_BACKEND_ERROR"


def test_t140_a_gang_that_never_ran_is_not_broken(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=2)
    with place.serving() as service:
        service.submit(gang("w", 3), force=True)
        waiting(service, "w-1", "NeverFits")
        place.ahead_s += 24 * 3600
        place.seen(service)
        view = service.workflow("w-1")
        assert (view["status"], set(attempts(view).values())) == ("PENDING", {1})
        assert "GroupRescheduled" not in kinds(service, "w-1")


def test_t140_a_group_that_minds_all_its_tasks_restarts_all_of_them(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=4)
    asked = gang("w", 2)
    text = asked.source.replace(b"  - name: g\n", b"  - name: g\n    ignoreNonleadStatus: false\n")
    with place.serving() as service:
        service.submit(replace(asked, source=text))
        lose(place, service, nodes(running(service, "w-1"))["t1"])
        settled(service, "w-1", {"t0": 2, "t1": 2})


@pytest.mark.parametrize(
    ("lead", "worker", "minds_all", "status"),
    [
        ("true", "exit 3", False, "COMPLETED"),
        ("exit 3", "true", False, "FAILED"),
        ("sleep 0.2", "exit 3", True, "FAILED"),
        ("true", "true", True, "COMPLETED"),
    ],
)
def test_t141_who_fails_decides_by_the_rules_of_the_group(
    tmp_path: Path, *, lead: str, worker: str, minds_all: bool, status: str
) -> None:
    asked = workflow("w", {"g": [task("a", lead, "lead: true"), task("b", worker)]})
    rule = f"  - name: g\n    ignoreNonleadStatus: {str(not minds_all).lower()}\n"
    with lab(tmp_path, r1=2).serving() as service:
        service.submit(replace(asked, source=asked.source.replace(b"  - name: g\n", rule.encode())))
        assert ended(service, "w-1")["status"] == status


def test_t177_a_workflow_is_cancelled_at_once_in_whatever_it_is_doing(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=4)
    with place.serving() as service:
        for number in range(4):
            service.submit(gang(f"w{number}", 1, f"touch {tmp_path}/ran{number}; {FOREVER}"))
            service.cancel(f"w{number}-1", "never mind", force=True)
        for number in range(4):
            view = ended(service, f"w{number}-1")
            assert (view["status"], view["message"]) == ("FAILED_CANCELED", "canceled: never mind")
        assert service.store.held() == {}


def test_t177_a_task_that_is_being_started_never_starts_once_it_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(_supervisor: Supervisor, _orders: Sequence[WorkOrder]) -> None:
        raise Unavailable("cannot start: too many processes", "Wait.")

    place = lab(tmp_path, r1=1)
    with place.serving() as service:
        with monkeypatch.context() as changed:
            changed.setattr(Supervisor, "start", cannot)
            service.submit(gang("w", 1, f"touch {tmp_path}/ran"))
            until(service, "w-1", lambda view: view["groups"][0]["status"] == "INITIALIZING")
            service.cancel("w-1")
            until(service, "w-1", lambda view: view["status"] == "FAILED_CANCELED")
        ended(service, "w-1")
        place.seen(service)
        assert service.store.held() == {}
        assert not (tmp_path / "ran").exists()


def test_t177_cancelled_twice_is_cancelled_once_and_force_ends_what_does_not_listen(tmp_path: Path) -> None:
    place = lab(tmp_path, r1=1)
    place.changes = {"grace_s": 600.0}
    deaf = f"trap '' TERM; touch {tmp_path}/deaf; while :; do sleep 0.1; done"
    with place.serving() as service:
        service.submit(gang("w", 1, deaf))
        running(service, "w-1")
        eventually((tmp_path / "deaf").exists)
        service.cancel("w-1")
        view = until(service, "w-1", lambda view: bool(view["cleaning"]))
        assert view["status"] == "FAILED_CANCELED"
        assert service.cancel("w-1")["status"] == "FAILED_CANCELED"
        service.cancel("w-1", force=True)
        assert ended(service, "w-1")["tasks"]["failed"] == 1
        assert service.cancel("w-1", force=True)["finished"]
        assert kinds(service, "w-1").count("GroupFailed") == 1
        service.submit(gang("done", 1, "true"))
        ended(service, "done-1")
        with pytest.raises(Conflict, match="has already ended"):
            service.cancel("done-1")
