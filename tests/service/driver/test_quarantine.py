"""A fault of one workflow, one pool or one store does not affect the others."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from coterie.errors import Unavailable, UsageError
from coterie.service.driver import board
from coterie.service.driver.board import Board
from coterie.service.driver.election.replica import new_holder
from coterie.service.driver.executor import ActionExecutor
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow
from coterie.service.queue.positions import PositionCache
from coterie.service.service import Service
from coterie.service.settings import Submission
from coterie.store import NewWorkflow, WorkflowRecord
from tests.eventually import eventually
from tests.service.running_service import CLUSTER, CONFIG, ServiceFolder, single, task, workflow

PATIENCE_S = 60.0

DICE = b"""version: 2
workflow:
  name: dice
  groups:
  - name: g{{ range(100000)|random }}
    tasks:
    - {name: t, image: any, command: [sh, -c, "echo {{ range(100000)|random }}"]}
  resources: {default: {gpu: 4, cpu: 1}}
"""


def running(service: Service, submission: Submission) -> str:
    """Submit something that takes all of its time, and return its id once it runs."""
    ident = str(service.submit(submission)["id"])
    service.wait(ident, until=lambda view: view["status"] == "RUNNING", timeout_s=PATIENCE_S)
    return ident


def ended(service: Service, submission: Submission) -> str:
    ident = service.submit(submission)["id"]
    return str(service.wait(ident, timeout_s=PATIENCE_S)["status"])


def problems(service: Service) -> dict[str, str]:
    return {each["what"]: each["message"] for each in service.health()["problems"]}


def test_a_template_gives_the_same_after_a_restart_even_if_it_throws_dice(place: ServiceFolder) -> None:
    first = Service(place.settings())
    name = first.submit(Submission(DICE))["groups"][0]["name"]
    first.stop()  # before anything could be started

    with Service(place.settings()) as second:
        done = second.wait("dice-1", timeout_s=PATIENCE_S)

        assert (done["status"], done["groups"][0]["name"]) == ("COMPLETED", name)
        assert second.plan(Submission(DICE))["groups"][0]["name"] == name


def test_a_workflow_that_makes_trouble_is_set_aside_and_taken_up_again(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "_AGAIN_S", 0.2)
    do = ActionExecutor._do
    well = threading.Event()

    def troubled(executor: ActionExecutor, life: LiveWorkflow, action: object) -> None:
        if life.id == "bad-1" and not well.is_set():
            raise StopIteration
        do(executor, life, action)  # type: ignore[arg-type]

    monkeypatch.setattr(ActionExecutor, "_do", troubled)
    with Service(place.settings()) as service:
        service.submit(single("bad", "true"))
        eventually(lambda: "unexpected StopIteration" in problems(service).get("workflow bad-1", ""))
        assert ended(service, single("good", "true")) == "COMPLETED"
        assert service.health()["ready"]

        well.set()

        assert service.wait("bad-1", timeout_s=PATIENCE_S)["status"] == "COMPLETED"
        eventually(lambda: not problems(service))


def test_a_workflow_whose_state_cannot_be_read_keeps_its_tasks_and_its_nodes(place: ServiceFolder) -> None:
    with Service(place.settings()) as service:
        gang = [task(f"t{n}", "sleep 600", "" if n else "lead: true") for n in range(8)]
        ident = running(service, workflow("held", {"g": gang}))
        eventually(lambda: {one["status"] for one in service.workflow(ident)["groups"][0]["tasks"]} == {"RUNNING"})
    with closing(sqlite3.connect(place.folder / "store.db")) as store, store:
        (text,) = store.execute("select state from workflows").fetchone()
        store.execute("update workflows set state=?", (json.dumps({**json.loads(text), "version": 99}),))

    with Service(place.settings()) as service:
        eventually(lambda: f"workflow {ident}" in problems(service))
        other = service.submit(single("other", "true"))["id"]
        eventually(lambda: bool(service.workflow(other)["waiting"]))

        assert service.workflow(other)["waiting"]["reason"] == "NoCapacity"
        assert service.pool("main")["gpus"]["free"] == 0
        with closing(sqlite3.connect(place.folder / "store.db")) as store, store:
            store.execute("update workflows set state=? where id=?", (text, ident))

    with Service(place.settings()) as service:
        tasks = service.workflow(ident)["groups"][0]["tasks"]
        assert {(one["status"], one["attempt"]) for one in tasks} == {("RUNNING", 1)}
        service.cancel(ident)
        assert service.wait(other, timeout_s=PATIENCE_S)["status"] == "COMPLETED"


def test_what_runs_keeps_its_nodes_when_its_pool_leaves_the_configuration(tmp_path: Path) -> None:
    place = ServiceFolder(tmp_path / "place", CONFIG + CONFIG.partition("pools:\n")[2].replace("main", "other"))
    gang = [task(f"t{n}", "sleep 600", "" if n else "lead: true") for n in range(8)]
    with Service(place.settings()) as service:
        wide = workflow("wide", {"g": gang})
        ident = running(service, Submission(wide.source, pool="other"))
    (place.folder / "coterie.yaml").write_text(CONFIG, encoding="utf-8")

    with Service(place.settings()) as service:
        later = service.submit(single("later", "true"))["id"]
        eventually(lambda: service.workflow(later)["waiting"] is not None)

        assert service.workflow(later)["waiting"]["reason"] == "NoCapacity"
        assert service.pool("main")["gpus"]["free"] == 0
        assert service.workflow(ident)["status"] == "RUNNING"
        service.cancel(ident)
        assert service.wait(later, timeout_s=PATIENCE_S)["status"] == "COMPLETED"


def test_a_backend_that_left_the_configuration_takes_nothing_until_it_is_back(tmp_path: Path) -> None:
    with_old = CONFIG.replace("pools:\n", "  old: {scheduler: local, cluster: cluster.yaml}\npools:\n")
    pool = CONFIG.partition("pools:\n")[2].replace("backend: lab", "backend: old").partition("\n")[2]
    place = ServiceFolder(tmp_path / "place", with_old)
    gang = [task(f"t{n}", "sleep 600", "" if n else "lead: true") for n in range(8)]
    with Service(place.settings()) as service:
        service.apply_pool("aged", pool.encode())
        wide = running(service, Submission(workflow("wide", {"g": gang}).source, pool="aged"))
        waiter = service.submit(Submission(single("waiter", "true").source, pool="aged"))["id"]
        (place.folder / "coterie.yaml").write_text(CONFIG, encoding="utf-8")
        eventually(lambda: (service.workflow(waiter)["waiting"] or {}).get("reason") == "SchedulerRefused")
        service.cancel(wide, force=True)
        eventually(lambda: bool(service.workflow(wide)["finished"]))

        assert service.workflow(waiter)["waiting"]["reason"] == "SchedulerRefused"

        (place.folder / "coterie.yaml").write_text(with_old, encoding="utf-8")
        assert service.wait(waiter, timeout_s=PATIENCE_S)["status"] == "COMPLETED"


def test_a_save_that_fails_between_two_askings_is_repeated_once_it_can_be(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "_AGAIN_S", 0.1)
    lock: list[sqlite3.Connection] = []
    seat = Board._place

    def then_locked(self: Board, now: float) -> None:
        seat(self, now)
        if not lock and any(life.placed for life in self.table):
            lock.append(sqlite3.connect(place.folder / "store.db", check_same_thread=False, isolation_level=None))
            lock[0].execute("BEGIN IMMEDIATE")

    monkeypatch.setattr(Board, "_place", then_locked)
    with Service(place.settings()) as service:
        ident = service.submit(single("once", "true"))["id"]
        eventually(lambda: "store" in problems(service))
        lock[0].execute("ROLLBACK")
        lock[0].close()

        assert service.wait(ident, timeout_s=PATIENCE_S)["status"] == "COMPLETED"
        assert ended(service, single("another", "true")) == "COMPLETED"
        eventually(lambda: not problems(service), lambda: problems(service))


def test_another_store_does_not_get_the_folder(place: ServiceFolder) -> None:
    with Service(place.settings()) as service:
        ident = service.submit(single("mine", "echo precious"))["id"]
        service.wait(ident, timeout_s=PATIENCE_S)
        long = running(service, single("long", "sleep 600"))
        with pytest.raises(UsageError, match="belong to another store than") as refused:
            Service(place.settings(store=str(place.folder / "other.db")))

        assert "--store" in refused.value.hint
        assert service.workflow(long)["status"] == "RUNNING"
        assert service.log(ident, "t") == b"precious\n"
        service.cancel(long, force=True)


def test_a_second_folder_on_the_same_machine_is_refused_while_the_first_is_in_use(place: ServiceFolder) -> None:
    settings = place.settings()
    elsewhere = replace(settings, state=place.folder / "elsewhere", holder=new_holder())
    with Service(settings) as service:
        long = running(service, single("long", "sleep 600"))
        with pytest.raises(UsageError, match="of this machine uses") as refused:
            Service(elsewhere)
        assert f"--state {settings.state}" in refused.value.hint
        Service(replace(settings, holder=new_holder())).stop()
        with pytest.raises(UsageError, match="of this machine uses"):
            Service(elsewhere)
        assert service.workflow(long)["status"] == "RUNNING"
        service.cancel(long, force=True)
        service.wait(long, timeout_s=PATIENCE_S)
    Service(elsewhere).stop()


def test_a_leader_whose_lease_ran_out_while_it_slept_does_nothing_more(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    skew = 0.0
    did: list[str] = []
    do, save = ActionExecutor.do, Board._save

    def watched(executor: ActionExecutor, actions: object) -> None:
        did.append("did")
        do(executor, actions)  # type: ignore[arg-type]

    def slept(self: Board, now: float, fence: int) -> object:
        nonlocal skew
        found = save(self, now, fence)
        if found[1] and not skew:
            did.clear()
            skew = 3600.0
            monkeypatch.setattr(ActionExecutor, "do", watched)
        return found

    monkeypatch.setattr(Board, "_save", slept)
    with Service(place.settings(now=lambda: time.time() + skew)) as service:
        assert ended(service, single("late", "true")) == "COMPLETED"
        assert did


def test_relabelled_nodes_are_told_of_by_those_who_required_them_together(place: ServiceFolder) -> None:
    gang = [task(f"t{n}", "sleep 600", "" if n else "lead: true") for n in range(4)]
    with Service(place.settings()) as service:
        ident = running(service, workflow("kept", {"g": gang}, topology="[{key: rack}]"))
        rack = service.workflow(ident)["groups"][0]["tasks"][0]["domains"]["rack"]
        nodes = "".join(
            f"- {{name: {r}-n{n}, labels: {{topology.kubernetes.io/zone: a, topology.kubernetes.io/rack: "
            f"{'r9' if (r, n) == (rack, 1) else r}}}, gpu: 4, cpu: 32, memory: 256Gi}}\n"
            for r in ("r1", "r2")
            for n in (1, 2, 3, 4)
        )
        keys = CLUSTER.partition("fleet:")[0]
        (place.folder / "cluster.yaml").write_text(f"{keys}nodes:\n{nodes}", encoding="utf-8")
        eventually(lambda: any(each["kind"] == "Violated" for each in service.events()))

        (told,) = [each for each in service.events() if each["kind"] == "Violated"]
        assert (told["workflow"], told["group"]) == (ident, "g")
        assert "rack is no longer kept together" in told["message"]
        assert service.placement(ident)["summary"]["violated"] == 1
        assert service.workflow(ident)["status"] == "RUNNING"
        service.cancel(ident, force=True)


def test_what_is_stored_is_answered_even_if_nothing_more_can_be_read(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(place.settings())
    store = service.store.submit

    def then_busy(new: NewWorkflow) -> tuple[WorkflowRecord, bool]:
        found = store(new)
        monkeypatch.setattr(PositionCache, "now", _unavailable)
        return found

    monkeypatch.setattr(service.store, "submit", then_busy)
    view = service.submit(single("a", "true"))
    service.stop()

    assert (view["id"], view["created"], view["position"]) == ("a-1", True, None)


def _unavailable(*_: object, **__: object) -> None:
    raise Unavailable("the database is busy")
