"""The leader: recovery of running tasks after a restart, and takeover by another replica."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from coterie.backends.local.attempt_folder import holder_of
from coterie.backends.local.machine.processes import ProcessIdentity
from coterie.backends.local.supervisor import Supervisor
from coterie.backends.local.work_order import WorkOrder
from coterie.errors import Conflict, Unavailable
from coterie.service.driver import intake
from coterie.service.driver.board import Board
from coterie.service.driver.election.held_lease import HeldLease
from coterie.service.driver.election.replica import is_gone, new_holder
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow
from coterie.service.driver.workflows.workflow_table import WorkflowTable
from coterie.service.service import Service
from coterie.store import Lease, Store, WorkflowChange
from tests.eventually import PATIENCE_S, eventually
from tests.service.running_service import ServiceFolder, single, task, workflow
from tests.store.postgres_server import Postgres

pytestmark = pytest.mark.slow("waits until leases expire")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    return str(request.getfixturevalue("postgres_url"))


def running(service: Service, ident: str) -> None:
    view = service.wait(ident, lambda found: bool(found["status"] == "RUNNING"), PATIENCE_S)
    assert view["status"] == "RUNNING", view


def problems(service: Service) -> dict[str, str]:
    return {each["what"]: each["message"] for each in service.health()["problems"]}


def lasts_until(store: Store) -> float:
    """Return when the lease of the leader ends."""
    held = store.leader()
    return held.expires_at if held else 0.0


def stolen(store: Store) -> Lease:
    """Take the lease away from its holder, which may be faster to take it back."""
    taken: list[Lease] = []

    def taken_at_last() -> bool:
        if (held := store.leader()) is not None:
            store.release(held)
        taken.extend(found for found in [store.acquire("thief", time.time(), 3600.0)] if found is not None)
        return bool(taken)

    eventually(taken_at_last)
    return taken[0]


def completed(service: Service, ident: str) -> None:
    view = service.wait(ident, timeout_s=PATIENCE_S)
    assert (view["status"], view["finished"]) == ("COMPLETED", True), view


def test_a_task_that_runs_is_found_again_after_a_restart(place: ServiceFolder, tmp_path: Path) -> None:
    script = f"echo begin >> {tmp_path}/ledger; while ! test -e {tmp_path}/go; do sleep 0.05; done; echo end"
    with Service(place.settings()) as first:
        first.submit(single("keep", script))
        running(first, "keep-1")
    with Service(place.settings()) as second:
        eventually(lambda: bool(second.health()["leader"]))
        assert second.workflow("keep-1")["status"] == "RUNNING"
        assert second.pool("main")["gpus"]["used"] == 4
        (tmp_path / "go").touch()
        completed(second, "keep-1")
        assert second.log("keep-1", "t") == b"end\n"
    assert (tmp_path / "ledger").read_text() == "begin\n"


def test_what_ends_while_nobody_drives_is_known_afterwards(place: ServiceFolder, tmp_path: Path) -> None:
    with Service(place.settings()) as first:
        first.submit(single("alone", f"while ! test -e {tmp_path}/go; do sleep 0.05; done; touch {tmp_path}/done"))
        running(first, "alone-1")
    (tmp_path / "go").touch()
    eventually((tmp_path / "done").exists)
    with Service(place.settings()) as second:
        completed(second, "alone-1")


def test_a_fault_of_the_drivers_own_is_said_and_the_next_turn_begins_anew(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = threading.Event()
    turn = Board.turn

    def sometimes(board: Board, now: float, lease: HeldLease) -> tuple[bool, float]:
        if broken.is_set():
            raise KeyError("x")
        return turn(board, now, lease)

    monkeypatch.setattr(Board, "turn", sometimes)
    with Service(place.settings()) as service:
        broken.set()
        service.submit(single("later", "true"))
        eventually(lambda: "driver" in [each["what"] for each in service.health()["problems"]])
        broken.clear()
        completed(service, "later-1")
        eventually(lambda: not service.health()["problems"])


def test_a_save_that_is_refused_again_and_again_is_said_and_repeated(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = threading.Event()
    save = Store.save

    def sometimes(store: Store, changes: Sequence[WorkflowChange], fence: int) -> int:
        if refused.is_set():
            raise Conflict("it contradicts what is stored", "")
        return save(store, changes, fence)

    monkeypatch.setattr(Store, "save", sometimes)
    with Service(place.settings()) as service:
        refused.set()
        service.submit(single("later", "true"))
        eventually(lambda: "it contradicts what is stored" in problems(service).get("driver", ""))
        assert not service.health()["ready"]
        refused.clear()
        completed(service, "later-1")
        eventually(lambda: not service.health()["problems"])


def test_a_turn_longer_than_the_lease_keeps_it_and_is_reported_as_slow(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn, slow, ended = Board.turn, threading.Event(), threading.Event()
    boards: set[int] = set()

    def sluggish(board: Board, now: float, lease: HeldLease) -> tuple[bool, float]:
        boards.add(id(board))
        if slow.is_set():
            ended.wait(PATIENCE_S)
        return turn(board, now, lease)

    monkeypatch.setattr(Board, "turn", sluggish)
    # The clock of the lease stands still unless it is moved here, so that only a renewal keeps the lease.
    clock = [time.time()]
    with Service(place.settings(lease_s=0.5, now=lambda: clock[0])) as service:
        eventually(lambda: bool(service.health()["leader"]))
        slow.set()
        service.submit(single("later", "true"))
        eventually(lambda: "turn" in [each["what"] for each in service.health()["problems"]])
        for _ in range(4):  # together longer than the lease
            clock[0] += 0.3
            eventually(lambda: lasts_until(service.store) >= clock[0] + 0.5, "the lease is not renewed")
        assert service.health()["ready"]
        assert service.store.acquire("other", service.settings.now(), 60.0) is None
        slow.clear()
        ended.set()
        completed(service, "later-1")
        eventually(lambda: not service.health()["problems"])
        assert len(boards) == 1, "nothing was begun anew"


def taken_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of the names of workflows, which grows as they are taken up."""
    taken: list[str] = []
    add = WorkflowTable.add

    def noted(table: WorkflowTable, life: LiveWorkflow) -> None:
        taken.append(life.id.rpartition("-")[0])
        add(table, life)

    monkeypatch.setattr(WorkflowTable, "add", noted)
    return taken


def test_after_a_restart_what_runs_is_taken_up_first_and_then_what_waits_by_its_priority(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Service(place.settings()) as first:
        for _ in range(8):
            first.submit(single("full", "sleep 600"))
        eventually(lambda: first.pool("main")["gpus"]["free"] == 0)
        for priority in ("LOW", "NORMAL", "HIGH", "NORMAL"):
            first.submit(replace(single(priority.lower(), "true"), priority=priority))
        eventually(lambda: first.health()["waiting"] == 4)
    taken = taken_up(monkeypatch)
    monkeypatch.setattr(intake, "_TAKE_UP_S", 0.0)
    with Service(place.settings()) as second:
        # Until it is taken up, what waits counts as waiting, and no turn takes up all of it.
        eventually(lambda: second.health()["waiting"] == 4)
        monkeypatch.setattr(intake, "_TAKE_UP_S", PATIENCE_S)
        eventually(lambda: len(taken) == 12, lambda: taken)
        assert taken == [*["full"] * 8, "high", "normal", "normal", "low"]


def test_what_is_submitted_during_a_restart_is_not_taken_up_after_all_that_waits(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Service(place.settings()) as first:
        for _ in range(8):
            first.submit(single("full", "sleep 600"))
        eventually(lambda: first.pool("main")["gpus"]["free"] == 0)
        for _ in range(6):
            first.submit(single("old", "true"))
        eventually(lambda: all(first.workflow(f"old-{number}")["waiting"] for number in range(1, 7)))
    idle = Service(place.settings())
    for priority in ("NORMAL", "HIGH"):
        idle.submit(replace(single(f"new-{priority.lower()}", "true", gpu=0), priority=priority))
    idle.stop()
    taken = taken_up(monkeypatch)
    with Service(place.settings()) as second:
        completed(second, "new-high-1")
        completed(second, "new-normal-1")
        eventually(lambda: len(taken) == 16, lambda: taken)
    assert taken[8:] == ["new-high", "old", "new-normal", *["old"] * 5]


def test_after_a_restart_priority_decides_before_turns_are_taken() -> None:
    resting = [(0, 3, "high-3"), (0, 1, "high-1"), (1, 2, "normal-2")]
    unseen = [(2, 9, "low-9"), (0, 8, "high-8"), (1, 7, "normal-7"), (1, 6, "normal-6")]
    assert list(intake.backlog_order(resting, unseen)) == [
        "high-1",
        "high-8",
        "high-3",
        "normal-2",
        "normal-6",
        "normal-7",
        "low-9",
    ]


def test_what_is_submitted_while_nobody_drives_runs_later(place: ServiceFolder) -> None:
    idle = Service(place.settings())
    idle.submit(single("early", "true"))
    idle.stop()
    with Service(place.settings()) as service:
        completed(service, "early-1")


def test_another_replica_takes_over_when_the_leader_stops(place: ServiceFolder, url: str, tmp_path: Path) -> None:
    first, second = Service(place.settings(url, holder="a")), Service(place.settings(url, holder="b"))
    first.start()
    eventually(lambda: bool(first.health()["leader"]))
    second.start()
    try:
        second.submit(single("shared", f"while ! test -e {tmp_path}/go; do sleep 0.05; done; echo x >> {tmp_path}/ran"))
        running(second, "shared-1")
        assert not second.health()["leader"]
        assert second.health()["holder"] == "a"
        first.stop()
        eventually(lambda: bool(second.health()["leader"]))
        (tmp_path / "go").touch()
        completed(second, "shared-1")
    finally:
        first.stop()
        second.stop()
    assert (tmp_path / "ran").read_text() == "x\n"


def test_a_leader_that_died_elsewhere_is_replaced_within_its_lease(place: ServiceFolder, url: str) -> None:
    with Store.open(url) as store:
        assert store.acquire("elsewhere", time.time(), 1.5)
        with Service(place.settings(url, lease_s=3600.0)) as service:
            service.submit(single("late", "true"))
            completed(service, "late-1")


def test_a_leader_whose_lease_was_taken_stops_driving_and_does_nothing_twice(
    place: ServiceFolder, tmp_path: Path
) -> None:
    settings = place.settings(lease_s=2.0)
    with Service(settings) as service:
        service.submit(single("calm", f"while ! test -e {tmp_path}/go; do sleep 0.05; done; echo x >> {tmp_path}/ran"))
        running(service, "calm-1")
        thief = stolen(service.store)
        eventually(lambda: not service.health()["leader"])
        service.submit(single("later", "true"))
        assert service.workflow("later-1")["status"] == "PENDING"
        service.store.release(thief)
        (tmp_path / "go").touch()
        completed(service, "calm-1")
        completed(service, "later-1")
    assert (tmp_path / "ran").read_text() == "x\n"


def test_a_replica_that_died_on_this_machine_is_known_to_be_gone() -> None:
    mine = new_holder()
    host, pid, started, *rest = mine.split("/")
    assert not is_gone(mine)
    assert is_gone("/".join([host, pid, str(int(started) + 1), *rest]))
    assert not is_gone("/".join(["elsewhere", pid, str(int(started) + 1), *rest]))
    assert not is_gone("anything")


def test_a_database_that_goes_away_during_a_run_is_said_and_nothing_is_lost(
    place: ServiceFolder, postgres: Postgres, postgres_url: str, tmp_path: Path
) -> None:
    with Service(place.settings(postgres_url)) as service:
        groups = {
            "one": [task("a", f"echo a >> {tmp_path}/ran; while ! test -e {tmp_path}/go; do sleep 0.05; done")],
            "two": [task("b", f"echo b >> {tmp_path}/ran", "inputs: [{task: a}]")],
        }
        service.submit(workflow("steady", groups))
        running(service, "steady-1")
        postgres.stop()
        try:
            eventually(lambda: any(one["what"] == "store" for one in service.health()["problems"]))
            assert not service.health()["ready"]
            with pytest.raises(Unavailable):
                service.submit(single("refused", "true"))
            (tmp_path / "go").touch()
        finally:
            postgres.start()
        view = service.wait("steady-1", timeout_s=PATIENCE_S)
        assert view["status"] == "COMPLETED"
        eventually(lambda: not service.health()["problems"])
    assert (tmp_path / "ran").read_text() == "a\nb\n"


def test_a_disk_that_is_full_is_said_and_tasks_start_when_there_is_room(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, full = Supervisor.start, [True]

    def start(self: Supervisor, orders: Sequence[WorkOrder]) -> None:
        if full:
            raise Unavailable("cannot start: No space left on device", "Make room.")
        real(self, orders)

    monkeypatch.setattr(Supervisor, "start", start)
    with Service(place.settings()) as service:
        service.submit(single("squeezed", "true"))
        eventually(lambda: any("No space" in one["message"] for one in service.health()["problems"]))
        eventually(lambda: any(one["kind"] == "ServiceProblem" for one in service.events(workflow="squeezed-1")))
        full.clear()
        completed(service, "squeezed-1")
        eventually(lambda: not service.health()["problems"], service.health)


def test_a_process_that_nobody_expects_is_ended(place: ServiceFolder, tmp_path: Path) -> None:
    settings = place.settings()
    with Service(settings) as service:
        service.submit(single("gone", f"touch {tmp_path}/on; sleep 600"))
        running(service, "gone-1")
    # As if a leader that had lost its lease had started it after the workflow was over.
    with Store.open(settings.store) as store:
        stored = store.workflow("gone-1")
        lease = store.acquire("hand", time.time(), 60.0)
        assert lease is not None
        store.save([WorkflowChange("gone-1", stored.version, "FAILED", {**stored.state}, finished=True)], lease.fence)
        store.release(lease)
    with Service(settings) as service:
        eventually(lambda: bool(service.health()["leader"]))
        eventually(lambda: not _alive(tmp_path))


def _alive(folder: Path) -> bool:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"touch {folder}/on".encode() in entry.read_bytes():
                return True
        except OSError:
            continue
    return False


def test_higher_priority_is_placed_first(place: ServiceFolder, tmp_path: Path) -> None:
    idle = Service(place.settings())
    for name, priority in [("low", "LOW"), ("normal", "NORMAL"), ("high", "HIGH")]:
        # Each needs the whole cluster, so they run one after the other.
        lead = task("lead", f"echo {name} >> {tmp_path}/order", "lead: true")
        idle.submit(
            replace(workflow(name, {"g": [lead, *(task(f"t{n}", "true") for n in range(7))]}), priority=priority)
        )
    idle.stop()
    with Service(place.settings()) as service:
        for name in ("low", "normal", "high"):
            completed(service, f"{name}-1")
    assert (tmp_path / "order").read_text().split() == ["high", "normal", "low"]


def test_a_task_whose_process_disappears_runs_again_at_no_cost_to_the_user(
    place: ServiceFolder, tmp_path: Path
) -> None:
    script = f"echo x >> {tmp_path}/ran; while ! test -e {tmp_path}/go; do sleep 0.05; done"
    with Service(place.settings()) as service:
        service.submit(workflow("lossy", {"g": [task("a", script, "lead: true"), task("b", script)]}))
        running(service, "lossy-1")
        eventually(lambda: (tmp_path / "ran").exists() and (tmp_path / "ran").read_text() == "x\nx\n")
        # Whoever watches the command is killed: nobody will ever know how it ended.
        os.kill(_watcher(place.folder / "state/tasks/lossy-1/g/b/1"), signal.SIGKILL)
        eventually(lambda: (tmp_path / "ran").read_text().count("x") >= 3)
        (tmp_path / "go").touch()
        completed(service, "lossy-1")
        tasks = {each["name"]: each for each in service.workflow("lossy-1")["groups"][0]["tasks"]}
        assert [past["status"] for past in tasks["b"]["past"]] == ["RESCHEDULED"]


def _watcher(folder: Path) -> int:
    holder = holder_of(folder)
    assert isinstance(holder, ProcessIdentity)
    return holder.pid


def test_a_workflow_that_cannot_be_read_back_does_not_stop_the_others(place: ServiceFolder) -> None:
    settings = place.settings()
    idle = Service(settings)
    idle.submit(single("broken", "true"))
    idle.submit(single("sound", "true"))
    idle.stop()
    with closing(sqlite3.connect(settings.store)) as database, database:
        database.execute("update workflows set state = '{\"version\": 99}' where id = 'broken-1'")
    with Service(settings) as service:
        completed(service, "sound-1")
        eventually(lambda: "workflow broken-1" in problems(service), service.health)
        assert "version 99" in problems(service)["workflow broken-1"]


def test_a_command_that_does_not_exist_fails_its_task(place: ServiceFolder) -> None:
    with Service(place.settings()) as service:
        service.submit(single("typo", "exec no-such-program"))
        view = service.wait("typo-1", timeout_s=PATIENCE_S)
        assert (view["status"], view["groups"][0]["tasks"][0]["exit_code"]) == ("FAILED", 127)
