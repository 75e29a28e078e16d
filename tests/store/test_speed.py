"""The duration of one save, reported but not judged, because machines differ."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from coterie.store import NewEvent, Store
from tests.store.builders import NOW, change, leading, submitted

_SAVES = 200
_TASKS = [
    {"name": f"t{n}", "status": "RUNNING", "attempt": 1, "presence": "created", "node": f"node-{n}", "queued": NOW}
    for n in range(8)
]


def test_the_time_of_a_save_is_shown(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    lease = leading(store)
    one = submitted(store)
    state = {"version": 1, "groups": [{"name": "g", "tasks": _TASKS}]}

    begun, busy = time.perf_counter(), time.process_time()
    for number in range(_SAVES):
        step = change(one, state=state, events=[NewEvent(NOW, "Running", "t1 runs")])
        store.save([replace(step, version=one.version + number)], lease.fence)
    elapsed, used = time.perf_counter() - begun, time.process_time() - busy

    assert store.workflow(one.id).version == _SAVES + 1
    with capsys.disabled():
        each = f"{elapsed / _SAVES * 1000:.2f} ms, {used / _SAVES * 1000:.2f} ms of it here"
        kind = store._database.engine.dialect.name
        print(f"\none save of one workflow of 8 tasks on {kind}: {each}")  # noqa: T201 - it must be seen
