"""Concurrent threads, processes and replicas: no duplicates, no losses, one leader."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import pytest

from coterie.errors import Conflict
from coterie.store import Lease, NewEvent, Store
from tests.eventually import PATIENCE_S
from tests.store.builders import NOW, change, leading, new, submitted

pytestmark = pytest.mark.slow("lets processes compete for one database, and kills some of them")

Opening = Callable[[], Store]


def _submit_many(url: str, count: int) -> list[str]:
    with Store.open(url, PATIENCE_S) as store:
        return [submitted(store, events=[NewEvent(NOW, "Submitted", "")]).id for _ in range(count)]


def test_processes_that_submit_at_once_get_ids_without_gaps_or_clashes(url: str) -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        made = [ident for part in processes.map(partial(_submit_many, url), [20, 20]) for ident in part]

    assert sorted(made, key=lambda ident: int(ident.rpartition("-")[2])) == [f"train-{n}" for n in range(1, 41)]


def test_one_key_makes_one_workflow_however_many_submit_it_at_once(open_store: Opening) -> None:
    stores = [open_store() for _ in range(2)]
    start = threading.Barrier(8, timeout=PATIENCE_S)

    def submit(number: int) -> tuple[str, bool]:
        start.wait()
        made, created = stores[number % 2].submit(new(client_key="k", fingerprint="f"))
        return made.id, created

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(submit, range(8)))

    assert sorted(answers) == [("train-1", False)] * 7 + [("train-1", True)]
    assert len(stores[0].workflows().items) == 1


def test_a_refused_submission_leaves_no_gap(store: Store) -> None:
    store.submit(new(client_key="k", fingerprint="f"))
    with pytest.raises(Conflict):
        store.submit(new("other", client_key="k", fingerprint="g"))

    assert submitted(store, "other").id == "other-1"


def test_one_of_many_that_want_to_lead_leads(open_store: Opening) -> None:
    stores = [open_store() for _ in range(2)]
    start = threading.Barrier(8, timeout=PATIENCE_S)

    def acquire(number: int) -> Lease | None:
        start.wait()
        return stores[number % 2].acquire(f"r{number}", NOW, 10)

    with ThreadPoolExecutor(8) as threads:
        leases = [lease for lease in threads.map(acquire, range(8)) if lease is not None]

    assert leases == [stores[1].leader()]


def test_of_two_leaders_only_the_newest_saves_however_they_race(open_store: Opening) -> None:
    """The old one wakes up after it was overtaken, and saves what it had decided long ago."""
    old_store, new_store = open_store(), open_store()
    flows = [submitted(old_store) for _ in range(10)]
    old = leading(old_store, "old", NOW)
    overtaken = threading.Event()

    def save_old() -> int:
        saved = 0
        for one in flows:
            try:
                old_store.save([change(one, "RUNNING", events=[NewEvent(NOW, "Old", "")])], old.fence)
                saved += 1
            except Conflict:
                assert overtaken.is_set()
        return saved

    def save_new() -> int:
        overtaken.set()
        mine = leading(new_store, "new", NOW + 60)
        current = new_store.unfinished()
        new_store.save([change(one, "FAILED", events=[NewEvent(NOW, "New", "")]) for one in current], mine.fence)
        return len(current)

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.submit(save_old), threads.submit(save_new)
        saved_by_old, saved_by_new = first.result(), second.result()

    kinds = [event.kind for event in new_store.events()]
    assert kinds == ["Old"] * saved_by_old + ["New"] * saved_by_new
    assert {one.status for one in new_store.unfinished()} == {"FAILED"}


def test_whoever_follows_events_sees_each_once_and_in_order_while_many_write(open_store: Opening) -> None:
    stores = [open_store() for _ in range(3)]
    done = threading.Event()

    def write(number: int) -> None:
        for step in range(20):
            stores[number % 2].record([NewEvent(NOW, "K", f"{number}/{step}/{part}") for part in range(3)])

    def follow() -> list[tuple[int, str]]:
        seen: list[tuple[int, str]] = []
        while True:
            last_round = done.is_set()
            seen += [(one.seq, one.message) for one in stores[2].events(after=seen[-1][0] if seen else 0, limit=7)]
            if last_round and (not seen or seen[-1][0] == stores[2].last_event()):
                return seen

    with ThreadPoolExecutor(5) as threads:
        reading = threads.submit(follow)
        for writing in [threads.submit(write, number) for number in range(4)]:
            writing.result()
        done.set()
        seen = reading.result()

    assert [seq for seq, _ in seen] == sorted({seq for seq, _ in seen})
    assert sorted(message for _, message in seen) == sorted(
        f"{number}/{step}/{part}" for number in range(4) for step in range(20) for part in range(3)
    )
    for number in range(4):
        mine = [message for _, message in seen if message.startswith(f"{number}/")]
        assert mine == [f"{number}/{step}/{part}" for step in range(20) for part in range(3)]


_INTERRUPTED = """
import sys
from coterie.store import Store

with Store.open(sys.argv[1]) as store, store._database.writing() as tx:
    tx.exec_driver_sql("UPDATE workflows SET status = 'RUNNING'")
    print("in the middle", flush=True)
    sys.stdin.read()
"""


def test_a_process_that_is_killed_in_the_middle_of_a_change_undoes_it_and_stops_nobody(url: str, store: Store) -> None:
    one = submitted(store)
    with subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTED, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"in the middle\n"
        process.kill()

    assert store.workflow(one.id) == one
    assert submitted(store).id == "train-2"


def test_readers_do_not_wait_for_a_writer(store: Store) -> None:
    one = submitted(store)

    with store._database.writing() as tx:
        tx.exec_driver_sql("UPDATE workflows SET status = 'RUNNING'")
        assert store.workflow(one.id).status == "PENDING"

    assert store.workflow(one.id).status == "RUNNING"


def test_readers_and_writers_of_one_process_get_along(store: Store) -> None:
    lease = leading(store)
    flows = {one.id: one for one in (submitted(store) for _ in range(4))}

    def work(number: int) -> None:
        for _ in range(5):
            if number % 3:
                assert len(store.workflows().items) >= 4
                store.request("train-1", {"by": number}, NOW)
            else:
                store.submit(new())

    def lead() -> None:
        for _ in range(10):
            store.save([change(one) for one in flows.values()], lease.fence)
            flows.update({ident: store.workflow(ident) for ident in flows})

    with ThreadPoolExecutor(13) as threads:
        leader = threads.submit(lead)
        for worker in [threads.submit(work, number) for number in range(12)]:
            worker.result()
        leader.result()

    assert len(store.pending_requests()) == 40
    assert {store.workflow(ident).version for ident in flows} == {11}
    assert [one.id for one in store.workflows().items] == [f"train-{n}" for n in range(24, 0, -1)]
