"""Every workflow can be ended and deleted, whatever keeps it from being driven."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from coterie.errors import Conflict, NotFound
from coterie.frontends.workflow import values
from coterie.service.api.app import create_app
from coterie.service.driver import intake, user_requests
from coterie.service.driver.user_requests import UserRequests
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow
from coterie.service.driver.workflows.texts import FreshWorkflow
from coterie.service.driver.workflows.workflow_table import WorkflowTable
from coterie.service.security import new_token
from coterie.service.service import Service
from coterie.service.settings import Submission
from tests.eventually import eventually
from tests.service.running_service import ServiceFolder, single, task, workflow

Json = dict[str, Any]
PATIENCE_S = 60.0
ROLES = {"bob": "user", "eve": "admin"}


@pytest.fixture
def deep(monkeypatch: pytest.MonkeyPatch) -> Submission:
    """Return a workflow that takes all GPUs, with files deeper than folders can be; it is accepted here."""
    monkeypatch.setattr(values, "LONGEST_PATH", 1 << 20)
    monkeypatch.setattr(values, "DEEPEST_PATH", 1 << 20)
    file = f"files: [{{path: {'/d' * 1900}/f, contents: x}}]"
    gang = [task(f"t{n}", "sleep 600", "" if n else f"lead: true\n{file}") for n in range(8)]
    return workflow("deep", {"g": gang})


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Workflows named "bad" whose life cycle raises an error once the event is set."""
    now, step = threading.Event(), LiveWorkflow.next

    def troubled(life: LiveWorkflow, at: float) -> object:
        if life.id.startswith("bad-") and now.is_set():
            raise KeyError("x")
        return step(life, at)

    monkeypatch.setattr(LiveWorkflow, "next", troubled)
    yield now
    now.clear()


def running(service: Service, submission: Submission) -> str:
    ident = str(service.submit(submission)["id"])
    view = service.wait(ident, until=lambda view: view["status"] == "RUNNING", timeout_s=PATIENCE_S)
    assert view["status"] == "RUNNING", view
    return ident


def finished(service: Service, ident: str) -> Json:
    view = service.wait(ident, timeout_s=PATIENCE_S)
    assert view["finished"], view
    return view


def aside(service: Service, ident: str) -> None:
    eventually(lambda: f"workflow {ident}" in {each["what"] for each in service.health()["problems"]})


def gone(service: Service, ident: str) -> bool:
    try:
        service.workflow(ident)
    except NotFound:
        return True
    return False


def spoil(place: ServiceFolder, ident: str, **changes: object) -> None:
    """Damage the stored state of a workflow."""
    with closing(sqlite3.connect(place.folder / "store.db")) as store, store:
        (text,) = store.execute("select state from workflows where id=?", (ident,)).fetchone()
        store.execute("update workflows set state=? where id=?", (json.dumps({**json.loads(text), **changes}), ident))


def process_of(service: Service, ident: str) -> int:
    """Return the process that a task said it is."""
    eventually(lambda: service.log(ident, "t").strip().isdigit())
    return int(service.log(ident, "t"))


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def free(service: Service) -> int:
    return int(service.pool("main")["gpus"]["free"])


def test_a_workflow_that_no_folder_can_hold_frees_all_its_nodes_when_it_is_canceled(
    place: ServiceFolder, deep: Submission
) -> None:
    with Service(place.settings()) as service:
        ident = service.submit(deep)["id"]
        aside(service, ident)
        assert free(service) == 0

        service.cancel(ident)

        assert finished(service, ident)["status"] == "FAILED_CANCELED"
        assert free(service) == 32
        done = service.submit(single("next", "true"))["id"]
        assert finished(service, done)["status"] == "COMPLETED"
        eventually(lambda: not service.health()["problems"], service.health)


@pytest.mark.parametrize("force", [False, True])
def test_what_its_life_cycle_cannot_end_is_ended_without_it(
    place: ServiceFolder, broken: threading.Event, *, force: bool
) -> None:
    with Service(place.settings()) as service:
        ident = running(service, single("bad", "echo $$; exec sleep 600"))
        process = process_of(service, ident)
        broken.set()

        service.cancel(ident, "it is in the way", force=force, by="root")

        view = finished(service, ident)
        assert view["status"] == "FAILED_CANCELED"
        assert "canceled by root: it is in the way" in view["message"]
        assert "1 placed task with 4 GPUs freed; nothing was left running" in view["message"]
        assert view["groups"][0]["tasks"][0]["status"] == "FAILED_CANCELED"
        assert "EndedByForce" in [each["kind"] for each in service.events(workflow=ident)]
        eventually(lambda: not alive(process))
        assert free(service) == 32
        assert service.store.held() == {}
        assert service.log(ident, "t") == f"{process}\n".encode()
        assert not service.store.pending_requests()


@pytest.mark.parametrize("damage", [{"version": 99}, {"groups": 7}, {"groups": []}])
def test_a_workflow_whose_state_cannot_be_read_can_be_canceled_and_deleted(place: ServiceFolder, damage: Json) -> None:
    with Service(place.settings()) as service:
        ident = running(service, single("held", "echo $$; exec sleep 600"))
        process = process_of(service, ident)
    spoil(place, ident, **damage)

    with Service(place.settings()) as service:
        aside(service, ident)
        assert "a stored workflow state" in service.workflow(ident)["message"]
        service.cancel(ident, by="root")

        assert finished(service, ident)["status"] == "FAILED_CANCELED"
        eventually(lambda: not alive(process))
        assert free(service) == 32
        assert service.delete(ident)
        assert gone(service, ident)


def test_a_waiting_workflow_that_cannot_be_read_is_canceled_before_it_is_taken_up(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Service(place.settings()) as service:
        for _ in range(8):
            service.submit(single("full", "sleep 600"))
        eventually(lambda: free(service) == 0)
        ident = service.submit(single("waiting", "true"))["id"]
        eventually(lambda: bool(service.workflow(ident)["waiting"]))
    spoil(place, ident, version=99)
    stopped = Service(place.settings())
    stopped.cancel(ident, by="root")
    stopped.stop()

    monkeypatch.setattr(intake, "_TAKE_UP_S", 0.0)
    with Service(place.settings()) as service:
        assert finished(service, ident)["status"] == "FAILED_CANCELED"
        eventually(lambda: not service.store.pending_requests())


def test_very_many_requests_are_handled_turn_by_turn(place: ServiceFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    with Service(place.settings()) as service:
        for _ in range(8):
            service.submit(single("full", "sleep 600"))
        eventually(lambda: free(service) == 0)
        idents = [service.submit(single("waiting", "true"))["id"] for _ in range(6)]
        eventually(lambda: all(service.workflow(ident)["waiting"] for ident in idents))
    stopped = Service(place.settings())
    for ident in idents:
        stopped.cancel(ident, by="root")
    stopped.stop()

    # No time to load a second workflow in a turn, and none to take one up otherwise.
    monkeypatch.setattr(intake, "_TAKE_UP_S", 0.0)
    monkeypatch.setattr(user_requests, "_LOAD_S", 0.0)
    loaded: list[int] = []
    hand_over, load = UserRequests.hand_over, WorkflowTable.load

    def counted(requests: UserRequests, now: float) -> None:
        loaded.append(0)
        hand_over(requests, now)

    def noted(table: WorkflowTable, workflow: str, fresh: FreshWorkflow | None = None) -> LiveWorkflow | None:
        loaded[-1] += 1
        return load(table, workflow, fresh)

    monkeypatch.setattr(UserRequests, "hand_over", counted)
    monkeypatch.setattr(WorkflowTable, "load", noted)
    with Service(place.settings()) as service:
        for ident in idents:
            assert finished(service, ident)["status"] == "FAILED_CANCELED"
    assert max(loaded) == 1, loaded
    assert sum(loaded) == len(idents)


@pytest.mark.parametrize("trouble", ["none", "life cycle", "folders"])
def test_a_workflow_is_deleted_in_any_state_by_force(
    place: ServiceFolder, broken: threading.Event, deep: Submission, trouble: str
) -> None:
    with Service(place.settings()) as service:
        if trouble == "folders":
            ident = service.submit(deep)["id"]
            aside(service, ident)
        else:
            ident = running(service, single("bad", "echo $$; trap '' TERM; sleep 600"))
        if trouble == "life cycle":
            broken.set()
        with pytest.raises(Conflict):
            service.delete(ident)

        service.delete(ident, force=True)

        eventually(lambda: gone(service, ident))
        eventually(lambda: free(service) == 32)
        eventually(lambda: not (place.folder / "state" / "tasks" / ident).exists())
        eventually(lambda: not service.health()["problems"], service.health)
        assert [each["kind"] for each in service.events() if each["workflow"] == ident] == ["Deleted"]


@pytest.mark.parametrize("state", ["waiting", "stopping"])
def test_a_workflow_that_waits_or_is_being_stopped_is_deleted_by_force(place: ServiceFolder, state: str) -> None:
    with Service(place.settings(grace_s=600.0)) as service:
        held = workflow("full", {"g": [task(f"t{n}", "sleep 600", "" if n else "lead: true") for n in range(8)]})
        if state == "waiting":
            running(service, held)
            ident = service.submit(single("bad", "true"))["id"]
            eventually(lambda: bool(service.workflow(ident)["waiting"]))
        else:
            ident = running(service, single("bad", "trap '' TERM; echo $$; while true; do sleep 0.1; done"))
            process = process_of(service, ident)
            service.cancel(ident)
            eventually(lambda: service.workflow(ident)["status"] == "FAILED_CANCELED")
            assert not service.workflow(ident)["finished"], "its task has ten minutes to end"
            assert alive(process)

        service.delete(ident, force=True)

        eventually(lambda: gone(service, ident))
        if state == "stopping":
            eventually(lambda: not alive(process))
            eventually(lambda: free(service) == 32)
        eventually(lambda: not (place.folder / "state" / "tasks" / ident).exists())
        eventually(lambda: not service.store.pending_requests())


def test_a_deletion_by_force_survives_a_restart(place: ServiceFolder) -> None:
    with Service(place.settings()) as service:
        ident = running(service, single("long", "sleep 600"))
    stopped = Service(place.settings())
    assert not stopped.delete(ident, force=True)
    assert not stopped.delete(ident, force=True)
    with pytest.raises(Conflict, match="has not ended"):
        stopped.retry(ident)
    stopped.stop()

    with Service(place.settings()) as service:
        eventually(lambda: gone(service, ident))
        eventually(lambda: free(service) == 32)


def test_an_admin_ends_what_belongs_to_another_and_cannot_be_driven(
    place: ServiceFolder, broken: threading.Event
) -> None:
    with Service(place.settings()) as service:
        keys = {name: new_token(service.store, name, role, now=time.time()) for name, role in ROLES.items()}
        ident = running(service, replace(single("bad", "sleep 600"), owner="ann"))
        broken.set()
        client = TestClient(create_app(service, open_to_all=True))
        answers = {
            name: client.post(f"/api/v1/workflows/{ident}/cancel", headers={"Authorization": f"Bearer {keys[name]}"})
            for name in ROLES
        }

        assert {name: answer.status_code for name, answer in answers.items()} == {"bob": 403, "eve": 202}
        assert "canceled by eve" in finished(service, ident)["message"]
        assert free(service) == 32

        broken.clear()
        other = running(service, replace(single("bad", "sleep 600"), owner="ann"))
        broken.set()
        for name, expected in (("bob", 403), ("eve", 202)):
            at, key = f"/api/v1/workflows/{other}?force=true", {"Authorization": f"Bearer {keys[name]}"}
            assert client.delete(at, headers=key).status_code == expected
        eventually(lambda: gone(service, other))
        eventually(lambda: free(service) == 32)


def test_of_a_retry_and_a_deletion_at_the_same_moment_one_wins_and_the_other_is_told(place: ServiceFolder) -> None:
    with Service(place.settings()) as service:
        for _ in range(6):
            ident = service.submit(single("fail", "false"))["id"]
            finished(service, ident)
            told: list[str] = []
            barrier = threading.Barrier(2, timeout=PATIENCE_S)

            def ask(act: str, ident: str = ident, told: list[str] = told, at: threading.Barrier = barrier) -> None:
                at.wait()
                try:
                    service.retry(ident) if act == "retry" else service.delete(ident)
                except (Conflict, NotFound):
                    told.append(act)

            askers = [threading.Thread(target=ask, args=(act,)) for act in ("retry", "delete")]
            for each in askers:
                each.start()
            for each in askers:
                each.join(PATIENCE_S)
            if told == ["retry"]:
                assert gone(service, ident)
            else:
                assert told == ["delete"]
                done = service.wait(ident, lambda view: view["groups"][0]["attempt"] == 2, timeout_s=PATIENCE_S)
                assert done["groups"][0]["attempt"] == 2


def test_what_is_about_to_be_retried_is_not_deleted(place: ServiceFolder) -> None:
    with Service(place.settings()) as service:
        ident = service.submit(single("fail", "false"))["id"]
        finished(service, ident)
    stopped = Service(place.settings())
    stopped.retry(ident)
    with pytest.raises(Conflict, match="about to run again") as refused:
        stopped.delete(ident)
    assert f"coterie cancel {ident}" in str(refused.value.hint)
    stopped.delete(ident, force=True)
    stopped.stop()
    with Service(place.settings()) as service:
        eventually(lambda: gone(service, ident))
        eventually(lambda: free(service) == 32)
