"""The service end to end: workflows are placed, run, repeated, canceled, retried and cleaned up."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coterie.errors import Conflict, NeverFits, NotFound, SpecErrors, Unavailable, UsageError
from coterie.service.service import Service
from coterie.service.settings import Settings, Submission
from coterie.service.submission.compilation import fingerprint
from coterie.store import NewWorkflow, WorkflowQuery, WorkflowRecord
from tests.eventually import PATIENCE_S, eventually
from tests.service.running_service import ServiceFolder, single, task, workflow

Json = dict[str, Any]


def ended(service: Service, ident: str) -> Json:
    view = service.wait(ident, timeout_s=PATIENCE_S)
    assert view["finished"], view
    return view


def until(service: Service, ident: str, wanted: Callable[[Json], bool]) -> Json:
    view = service.wait(ident, wanted, timeout_s=PATIENCE_S)
    assert wanted(view), view
    return view


def running(view: Json) -> bool:
    return bool(view["status"] == "RUNNING")


def waiting(view: Json) -> bool:
    return bool(view["waiting"])


def test_a_workflow_is_placed_runs_ends_and_leaves_nothing(service: Service) -> None:
    view = service.submit(single("hello", "echo hello on $COTERIE_NODE"))
    assert (view["id"], view["created"], view["status"]) == ("hello-1", True, "PENDING")
    view = ended(service, "hello-1")
    assert view["status"] == "COMPLETED", view
    (one,) = view["groups"][0]["tasks"]
    assert (one["exit_code"], one["node"]) == (0, "r1-n1")
    assert service.log("hello-1", "t") == b"hello on r1-n1\n"
    assert service.log("hello-1", "t", offset=6) == b"on r1-n1\n"
    assert service.log_ended("hello-1", "t")
    assert service.store.held() == {}
    assert service.why("hello-1")["groups"] == []
    kinds = [event["kind"] for event in service.events(workflow="hello-1")]
    assert kinds[0] == "Submitted"
    assert kinds[-1] == "Finished"
    assert {"Placed", "TaskRunning", "TaskCompleted", "Cleaned"} <= set(kinds)


def test_tasks_know_where_they_are_and_read_what_others_wrote(service: Service, tmp_path: Path) -> None:
    # The lead ends the group, and the other task with it, so it waits until that has written.
    written = tmp_path / "written"
    groups = {
        "make": [task("maker", "echo from $COTERIE_DOMAIN_RACK > {{output}}/said")],
        "use": [
            task(
                "lead",
                'echo "$COTERIE_RANK/$COTERIE_WORLD_SIZE $COTERIE_GPUS $(cat {{input:0}}/said)"; '
                f"until [ -e {written} ]; do sleep 0.05; done",
                "lead: true\ninputs: [{task: maker}]",
            ),
            task("other", f"echo $COTERIE_GPUS $COTERIE_DOMAIN_ZONE; touch {written}"),
        ],
    }
    service.submit(workflow("pipe", groups, gpu=2, topology="[{key: rack}]"))
    assert ended(service, "pipe-1")["status"] == "COMPLETED"
    assert service.log("pipe-1", "lead") == b"0/2 0,1 from r1\n"
    assert service.log("pipe-1", "other") == b"2,3 a\n"


def test_the_same_key_and_content_find_the_same_workflow(service: Service) -> None:
    first = replace(single("once", "true"), client_key="k1")
    assert service.submit(first)["created"]
    again = service.submit(first)
    assert (again["id"], again["created"]) == ("once-1", False)
    with pytest.raises(Conflict):
        service.submit(replace(first, priority="HIGH"))
    assert service.submit(replace(first, owner="another"))["id"] == "once-2"
    said = [event["message"] for event in service.events(workflow="once-2") if event["kind"] == "Submitted"]
    assert said == ['workflow "once" was submitted to pool "main" by another']


def test_a_repetition_is_answered_although_its_pool_is_gone(service: Service) -> None:
    service.apply_pool("q", {"backend": "lab"})
    first = replace(single("once", "true"), pool="q", client_key="k1")
    ident = service.submit(first)["id"]
    ended(service, ident)
    service.delete_pool("q")
    again = service.submit(first, plan="00000000")
    assert (again["id"], again["created"], again["status"]) == (ident, False, "COMPLETED")
    with pytest.raises(Conflict):
        service.submit(replace(first, pool="main"))
    with pytest.raises(NotFound):
        service.submit(replace(first, client_key="k2"))


def test_a_repetition_that_names_no_pool_is_answered_although_the_default_has_changed(service: Service) -> None:
    first = replace(single("once", "true"), client_key="k1")
    ident = service.submit(first)["id"]
    service.apply_pool("q", {"backend": "lab"})  # so that none is the default
    again = service.submit(first)
    assert (again["id"], again["pool"], again["created"]) == (ident, "main", False)
    with pytest.raises(Conflict):
        service.submit(replace(first, pool="q"))
    with pytest.raises(Conflict):
        service.submit(replace(first, sets=("a=1",)))
    ended(service, ident)


def test_nothing_is_stored_into_a_pool_that_is_deleted_while_it_is_checked(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.apply_pool("q", {"backend": "lab"})
    store = service.store.submit

    def late(new: NewWorkflow) -> tuple[WorkflowRecord, bool]:
        service.delete_pool("q")
        return store(new)

    monkeypatch.setattr(service.store, "submit", late)
    with pytest.raises(Conflict, match='pool "q" was deleted in the meantime'):
        service.submit(replace(single("late", "true"), pool="q"))
    assert service.workflows()["items"] == []


def test_a_new_workflow_is_not_passed_over_when_the_store_fails_as_it_is_taken_up(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[Any] = []

    def failing(find: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def once(wanted: Any) -> Any:
            if len(failures) < 2 and threading.current_thread().name == "coterie-driver":
                failures.append(wanted)
                raise Unavailable("the database is busy", "Try again.")
            return find(wanted)

        return once

    for name in ("versions", "workflow"):
        monkeypatch.setattr(service.store, name, failing(getattr(service.store, name)))
    service.submit(single("new", "true"))
    assert ended(service, "new-1")["status"] == "COMPLETED"
    assert failures


def test_a_gang_waits_for_room_is_told_why_and_runs_when_it_comes(service: Service, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    whole = [task(f"w{n}", f"cat {gate}" if not n else "true", "" if n else "lead: true") for n in range(8)]
    service.submit(workflow("large", {"g": whole}))
    until(service, "large-1", running)
    service.submit(workflow("next", {"g": [task("a", "true")]}, topology="[{key: rack}]"))
    view = until(service, "next-1", waiting)
    assert view["waiting"]["reason"] == "NoCapacity"
    (why,) = service.why("next-1")["groups"]
    assert why["refusal"]["reason"] == "NoCapacity"
    assert any("large-1" in way["change"] for way in why["refusal"]["ways_out"]), why
    assert service.plan(single("third", "true"))["verdict"] == "waiting"
    assert service.pool("main")["gpus"]["used"] == 32
    gate.write_text("go")
    assert ended(service, "large-1")["status"] == "COMPLETED"
    assert ended(service, "next-1")["status"] == "COMPLETED"


def test_a_group_that_runs_too_long_is_ended(service: Service) -> None:
    service.submit(single("slow", "sleep 600", rest="  timeout: {exec_timeout: 1s}\n"))
    view = ended(service, "slow-1")
    assert view["status"] == "FAILED_EXEC_TIMEOUT"


def test_a_group_that_waits_too_long_is_ended(place: ServiceFolder) -> None:
    clock, limit = [time.time()], "  timeout: {queue_timeout: 1s}\n"
    tasks = [task(f"t{n}", "true", "" if n else "lead: true") for n in range(8)]
    with Service(place.settings(now=lambda: clock[0])) as service:
        service.submit(single("hold", "sleep 600", rest=limit, gpu=4))
        until(service, "hold-1", running)
        service.submit(workflow("big", {"g": tasks}, rest=limit))
        until(service, "big-1", waiting)
        clock[0] += 1.5
        view = ended(service, "big-1")
        assert view["status"] == "FAILED_QUEUE_TIMEOUT"
        assert "NoCapacity" in view["message"]
        service.cancel("hold-1", force=True)
        assert ended(service, "hold-1")["status"] == "FAILED_CANCELED"


def test_what_runs_can_be_cancelled_and_again_without_harm(service: Service) -> None:
    service.submit(single("long", "sleep 600"))
    until(service, "long-1", running)
    service.cancel("long-1", "not needed", by="ana")
    view = ended(service, "long-1")
    assert (view["status"], view["message"]) == ("FAILED_CANCELED", "canceled by ana: not needed")
    assert {**view["canceled"], "at": ""} == {"by": "ana", "at": "", "message": "not needed", "force": False}
    assert service.cancel("long-1", "once more", by="bob")["message"] == "canceled by ana: not needed"


@pytest.mark.parametrize("script", ["sleep 600", "exit 1"], ids=["canceled before", "failed before"])
def test_what_is_about_to_run_again_can_be_cancelled(place: ServiceFolder, script: str) -> None:
    with Service(place.settings()) as service:
        service.submit(single("back", script))
        if script == "sleep 600":
            until(service, "back-1", running)
            service.cancel("back-1", "at first")
        ended(service, "back-1")
    service = Service(place.settings())  # nobody leads, so that requests wait
    try:
        service.retry("back-1")
        service.cancel("back-1", "in the end")
        assert [request.observation["kind"] for request in service.store.pending_requests()] == ["retry", "cancel"]
        service.start()
        wanted = "canceled: in the end"
        view = until(service, "back-1", lambda seen: bool(seen["finished"] and seen["message"] == wanted))
        assert view["status"] == "FAILED_CANCELED"
        assert service.store.pending_requests() == ()
    finally:
        service.stop()


def test_what_has_ended_otherwise_cannot_be_cancelled(service: Service) -> None:
    service.submit(single("done", "true"))
    ended(service, "done-1")
    with pytest.raises(Conflict, match="has already ended as COMPLETED"):
        service.cancel("done-1")
    assert service.store.pending_requests() == ()


def test_the_end_of_a_log_is_whole_lines(service: Service) -> None:
    service.submit(single("long", "seq 1 400000; echo"))
    service.submit(single("wide", "printf 'x%.0s' $(seq 1 500); echo yz"))
    for ident in ("long-1", "wide-1"):
        ended(service, ident)
    assert service.log_end("long-1", "t", None, 15) == b"399999\n400000\n\n"
    assert service.log_end("long-1", "t", None, 14) == b"400000\n\n"
    assert service.log_end("long-1", "t", None, 1 << 20).endswith(b"\n399999\n400000\n\n")
    assert service.log_end("long-1", "t", None, 1 << 20)[:7] > b"200000\n"
    assert service.log_end("wide-1", "t", None, 4) == b"xyz\n"
    assert len(service.log_end("wide-1", "t", None, 1 << 30)) == 503


def test_a_log_can_be_read_from_its_last_lines_or_from_a_time_on(service: Service, tmp_path: Path) -> None:
    go = tmp_path / "go"
    service.submit(single("slow", f"echo one; echo two; while ! test -e {go}; do sleep 0.1; done; echo three"))
    # Neither output nor time is an event, for which `until` would wait.
    eventually(lambda: service.log("slow-1", "t").endswith(b"two\n"))
    # The log knows times to the second.
    between = time.time() + 1.5
    eventually(lambda: time.time() > between)
    go.touch()
    ended(service, "slow-1")

    def since(at: float | None, tail: int | None = None) -> bytes:
        return service.log("slow-1", "t", None, service.log_start("slow-1", "t", None, tail, at))

    assert since(between) == b"three\n"
    assert since(between - 3600) == b"one\ntwo\nthree\n"
    assert since(time.time() + 3600) == b""
    assert [since(None, lines) for lines in (0, 1, 2, 9)] == [
        b"",
        b"three\n",
        b"two\nthree\n",
        b"one\ntwo\nthree\n",
    ]
    assert since(between, 2) == b"three\n"


def test_what_waits_can_be_cancelled(service: Service) -> None:
    service.submit(
        workflow("big", {"g": [task(f"t{n}", "true", "" if n else "lead: true") for n in range(9)]}), force=True
    )
    until(service, "big-1", waiting)
    service.cancel("big-1")
    assert ended(service, "big-1")["status"] == "FAILED_CANCELED"


def test_what_failed_can_be_retried_and_keeps_its_past(service: Service, tmp_path: Path) -> None:
    service.submit(single("flaky", f"echo try; test -e {tmp_path}/fixed"))
    assert ended(service, "flaky-1")["status"] == "FAILED"
    (tmp_path / "fixed").touch()
    service.retry("flaky-1", by="ana")
    view = until(service, "flaky-1", lambda found: bool(found["status"] == "COMPLETED" and found["finished"]))
    (one,) = view["groups"][0]["tasks"]
    assert (one["attempt"], [past["status"] for past in one["past"]]) == (2, ["FAILED"])
    assert service.log("flaky-1", "t", attempt=1) == b"try\n"
    assert view["started"] == one["started"] > one["past"][0]["ended"], "a retry counts its own time"
    said = [event["message"] for event in service.events(workflow="flaky-1")]
    assert 'group "g" runs again, as ana asked' in said
    with pytest.raises(Conflict):
        service.retry("flaky-1")
    with pytest.raises(NotFound):
        service.retry("flaky-1", "tt")


def test_only_what_is_finished_can_be_deleted_and_then_all_of_it_is(service: Service, place: ServiceFolder) -> None:
    service.submit(single("long", "sleep 600"))
    until(service, "long-1", running)
    with pytest.raises(Conflict):
        service.delete("long-1")
    service.cancel("long-1", force=True)
    ended(service, "long-1")
    # It is archived after its end was stored.
    eventually((place.folder / "state/tasks/.ended/long-1").exists)
    seen = service.last_event()
    service.delete("long-1")
    with pytest.raises(NotFound):
        service.workflow("long-1")
    assert service.changed(seen, PATIENCE_S)
    eventually(lambda: not list(os.walk(place.folder / "state/tasks/long-1")), "its folder is still there")


def test_lists_are_filtered_and_paged(service: Service) -> None:
    for number in range(5):
        labels = {"team": "a" if number % 2 else "b"}
        service.submit(replace(single("many", "true"), labels=labels, owner=f"u{number % 2}"))
    for number in range(1, 6):
        ended(service, f"many-{number}")
    page = service.workflows(limit=2)
    assert [row["id"] for row in page["items"]] == ["many-5", "many-4"]
    assert [row["id"] for row in service.workflows(limit=2, after=page["next"])["items"]] == ["many-3", "many-2"]
    assert len(service.workflows(WorkflowQuery(labels={"team": "a"}))["items"]) == 2
    assert len(service.workflows(WorkflowQuery(owners=["u0"], statuses=["COMPLETED"]))["items"]) == 3
    assert service.workflows(WorkflowQuery(statuses=["FAILED"]))["items"] == []
    assert page["items"][0]["tasks"] == {"total": 1, "running": 0, "completed": 1, "failed": 0}


def test_a_workflow_that_can_never_run_is_refused_at_once_and_queued_only_by_force(service: Service) -> None:
    with pytest.raises(NeverFits, match='group "g" does not fit pool "main"') as refused:
        service.submit(single("huge", "true", gpu=5))
    assert "--force" in refused.value.hint
    assert service.workflows()["items"] == []
    view = service.submit(single("huge", "true", gpu=5), force=True)
    assert [warning["code"] for warning in view["warnings"]] == ["FieldIgnored", "NeverFits"]
    assert until(service, "huge-1", waiting)["waiting"]["reason"] == "NeverFits"


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        (replace(single("x", "true"), priority="URGENT"), UsageError, "priority"),
        (replace(single("x", "true"), pool="mian"), NotFound, "mian"),
        (replace(single("x", "true"), labels={"": "v"}), UsageError, "label"),
        (replace(single("x", "true"), client_key=""), UsageError, "key"),
        (replace(single("x", "true"), local_files={"ü" * 513: b""}), UsageError, "of a file has 1,026 bytes"),
        (replace(single("x", "true"), sets=("a",)), SpecErrors, "="),
        (Submission(b"version: 2\nworkflow: {name: x}\n"), SpecErrors, "no tasks"),
        (Submission(b"\xff\xfe\x00"), SpecErrors, "UTF-8"),
        (Submission(b"apiVersion: v1\nkind: Pod\n"), SpecErrors, "a Kubernetes object, not a workflow"),
        (workflow("x", {"g": [task("t", "true")]}, topology="[{key: rak}]"), SpecErrors, "rak"),
        (workflow("x", {"g": [task("t", "true", "files: [{path: /a, localpath: b}]")]}), SpecErrors, "b was not sent"),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_stored(
    service: Service, wrong: Submission, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        service.submit(wrong)
    assert service.workflows()["items"] == []


@pytest.mark.parametrize(
    "call",
    [
        lambda service: service.workflow("no-1"),
        lambda service: service.why("no-1"),
        lambda service: service.placement("no-1"),
        lambda service: service.log("no-1", "t"),
        lambda service: service.spec("no-1"),
        lambda service: service.cancel("no-1"),
        lambda service: service.retry("no-1"),
        lambda service: service.delete("no-1"),
        lambda service: service.owner_of("no-1"),
        lambda service: service.events(workflow="no-1"),
        lambda service: service.pool("no"),
        lambda service: service.topology("no"),
        lambda service: service.map("no"),
        lambda service: service.delete_pool("no"),
    ],
)
def test_what_does_not_exist_is_not_found(service: Service, call: Callable[[Service], object]) -> None:
    with pytest.raises(NotFound):
        call(service)


def test_pages_and_statuses_that_make_no_sense_are_refused(service: Service) -> None:
    with pytest.raises(UsageError, match="status"):
        service.workflows(WorkflowQuery(statuses=["running"]))
    with pytest.raises(UsageError):
        service.workflows(limit=0)


def test_a_placement_is_audited_by_the_labels_of_now(service: Service, place: ServiceFolder) -> None:
    groups = {"g": [task("a", "sleep 600", "lead: true"), task("b", "sleep 600")]}
    service.submit(workflow("pair", groups, topology="[{key: rack}]"))
    until(service, "pair-1", running)
    audit = service.placement("pair-1")
    assert audit["summary"] == {"held": 1, "missed": 0, "violated": 0, "unobservable": 0}
    nodes = [seat["node"] for seat in audit["groups"][0]["tasks"]]
    file = place.folder / "cluster.yaml"
    shape = "gpu: 4, cpu: 32, memory: 256Gi"
    file.write_text(
        "nodes:\n"
        + "".join(
            f"- {{name: {node}, {shape}, labels: {{topology.kubernetes.io/zone: a, "
            f"topology.kubernetes.io/rack: r{number}}}}}\n"
            for number, node in enumerate(nodes)
        )
    )
    audit = service.placement("pair-1")
    assert audit["summary"]["violated"] == 1
    assert service.workflow("pair-1")["status"] == "RUNNING"
    service.cancel("pair-1", force=True)
    ended(service, "pair-1")


def test_tasks_on_a_node_that_is_gone_run_again_elsewhere(
    service: Service, place: ServiceFolder, tmp_path: Path
) -> None:
    service.submit(
        single("move", f"echo $COTERIE_NODE; test -e {tmp_path}/second || {{ touch {tmp_path}/second; sleep 600; }}")
    )
    until(service, "move-1", running)
    eventually((tmp_path / "second").exists)
    file = place.folder / "cluster.yaml"
    file.write_text(place.cluster.replace("rack: [r1, r2]", "rack: [r2]"))
    view = ended(service, "move-1")
    assert view["status"] == "COMPLETED"
    (one,) = view["groups"][0]["tasks"]
    assert (one["node"][:2], one["past"][0]["node"]) == ("r2", "r1-n1")


def test_without_a_configuration_this_machine_is_the_pool(tmp_path: Path) -> None:
    with Service(Settings(store=str(tmp_path / "s.db"), state=tmp_path / "state", poll_s=0.05)) as service:
        service.submit(single("here", "true", gpu=0))
        assert ended(service, "here-1")["status"] == "COMPLETED"
        assert [pool["name"] for pool in service.pools()] == ["default"]


def test_many_commands_and_numbers_are_seen(service: Service) -> None:
    service.submit(single("seen", "true"))
    ended(service, "seen-1")
    assert service.gauges()["workflows"] == {("main", "COMPLETED"): 1}
    assert service.gauges()["gpus_total"] == {"main": 32}
    assert service.spec("seen-1")["source"].startswith("version: 2")
    assert service.owner_of("seen-1") == "local"
    eventually(lambda: not service.health()["problems"], service.health)  # a busy machine makes turns slow
    health = service.health()
    assert (health["ready"], health["leader"], health["store"]) == (True, True, "ok")
    assert service.map("main")["gpus"]["total"] == 32
    assert len(service.scene("main").at(2)) == 2


def test_whoever_waits_has_a_position_and_every_replica_says_the_same(service: Service, place: ServiceFolder) -> None:
    whole = [task(f"t{n}", "sleep 600", "" if n else "lead: true") for n in range(8)]
    service.submit(workflow("all", {"g": whole}))
    until(service, "all-1", running)
    for name, priority in (("one", "LOW"), ("two", "NORMAL"), ("three", "NORMAL"), ("four", "HIGH")):
        service.submit(replace(single(name, "true"), priority=priority))
        until(service, f"{name}-1", waiting)
    other = Service(place.settings(holder="other"))
    try:
        for replica in (service, other):
            why = replica.why("two-1")
            assert (why["position"], why["waiting"], why["groups"][0]["position"]) == (2, 4, 2)
            assert (replica.workflow("one-1")["position"], replica.why("all-1")["position"]) == (4, None)
            found = {row["id"]: row["position"] for row in replica.workflows()["items"]}
            assert found == {"four-1": 1, "two-1": 2, "three-1": 3, "one-1": 4, "all-1": None}
    finally:
        other.stop()
    service.cancel("four-1", force=True)
    ended(service, "four-1")
    assert service.why("two-1")["position"] == 1
    for name in ("one", "two", "three", "all"):
        service.cancel(f"{name}-1", force=True)
    for name in ("one", "two", "three", "all"):
        ended(service, f"{name}-1")


def test_what_older_releases_stored_of_a_submission_still_tells_whether_it_is_the_same() -> None:
    sent = Submission(b"x", sets=("a=1",), labels={"k": "v"}, local_files={"f": b"y"})
    assert fingerprint(sent, "main") == "627e7e6024036d40d2d6c1c8380ef1303b9d4430245f5886c73a50145f934a52"


def test_logs_share_a_budget_in_a_workflow_and_the_oldest_that_ended_give_way(place: ServiceFolder) -> None:
    flood = "head -c 100000 /dev/zero | tr '\\0' x"
    gang = {"g": [task(f"t{n}", flood, "" if n else "lead: true\nexitActions: {COMPLETE: 0-255}") for n in range(2)]}
    with Service(place.settings(workflow_log_bytes=40_000, all_log_bytes=45_000)) as service:
        service.submit(workflow("old", gang, gpu=1))
        ended(service, "old-1")
        assert len(service.log("old-1", "t0", limit=1 << 20)) <= 20_000
        assert b"the limit of 20,000 bytes is reached" in service.log("old-1", "t0", limit=1 << 20)

        service.submit(workflow("new", gang, gpu=1))
        ended(service, "new-1")
        eventually(lambda: b"may take 45,000 bytes" in service.log("old-1", "t0"))
        assert len(service.log("old-1", "t0")) < 200
        assert b"xxx" in service.log("new-1", "t0")
