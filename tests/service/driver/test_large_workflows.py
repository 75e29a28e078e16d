"""Workflows of very many tasks: a step writes as little of them as of small ones, and their states survive upgrades."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import event

from coterie.lifecycle import Created, Ended, Observation, Placed
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow
from coterie.service.service import Service
from coterie.service.settings import Submission
from coterie.store import Lease, Store
from coterie.store.databases.database import database
from coterie.store.upgrade import changing, configuration
from tests.eventually import PATIENCE_S
from tests.service.running_service import ServiceFolder, task, workflow
from tests.store.builders import leading


class WrittenRows:
    """The rows that a store writes, and the length of their values as text."""

    def __init__(self, store: Store) -> None:
        self.rows, self.size = 0, 0
        event.listen(store._database.engine, "before_cursor_execute", self._count)

    def _count(self, *execution: Any) -> None:
        _, _, statement, values, _, many = execution
        if statement.split(maxsplit=1)[0] in {"INSERT", "UPDATE", "DELETE"}:
            rows = values if many else [values]
            self.rows += len(rows)
            self.size += sum(len(str(row)) for row in rows)


def step(life: LiveWorkflow, store: Store, lease: Lease, told: Sequence[Observation]) -> None:
    """Save the state after some observations."""
    life.pending += told
    state, _, change = life.next(life.submitted_at)
    assert change is not None
    store.save([change], lease.fence)
    life.saved(state, change)


def written(place: ServiceFolder, groups: int, tasks: int, *, restart: bool) -> tuple[int, int]:
    """Return how many rows, and how much, the end of one of very many running tasks writes."""
    names = {f"g{index:04}": [f"t{index:04}-{place:04}" for place in range(tasks)] for index in range(groups)}
    body = {
        group: [task(name, "true", "" if number else "lead: true") for number, name in enumerate(mine)]
        for group, mine in names.items()
    }
    service = Service(place.settings())
    try:
        text = workflow("many", body, gpu=0).source.replace(b"    tasks:", b"    barrier: false\n    tasks:")
        ident = service.submit(Submission(text), force=True)["id"]
        store, lease = service.store, leading(service.store)
        life = LiveWorkflow.of(store.workflow(ident))
        for group, mine in names.items():
            life.pending += [Placed(group, 1, tuple((name, "r1-n1") for name in mine)), Created(group, 1)]
        step(life, store, lease, [])
        if restart:
            life = LiveWorkflow.of(store.workflow(ident))
        found = WrittenRows(store)
        step(life, store, lease, [Ended(names["g0000"][tasks // 2], 1, 0)])
    finally:
        service.stop()
    return found.rows, found.size


@pytest.mark.parametrize("shape", ["single tasks", "one group"])
def test_a_step_writes_as_much_of_a_large_workflow_as_of_a_small_one(tmp_path: Path, shape: str) -> None:
    """Also the first one after a restart: what is stored is not written again."""
    few, many = (
        written(
            ServiceFolder(tmp_path / f"{tasks}"),
            *((tasks, 1) if shape == "single tasks" else (1, tasks)),
            restart=tasks > 100,
        )
        for tasks in (100, 800)
    )
    assert many[0] == few[0]
    assert many[1] < 1.2 * few[1]  # the texts of numbers and times differ in length


def test_a_workflow_of_an_older_release_goes_on_from_its_middle_in_parts(place: ServiceFolder) -> None:
    gate, ledger = place.folder / "gate", place.folder / "ledger"
    script = f"until [ -e {gate} ]; do sleep 0.05; done; echo $COTERIE_TASK >> {ledger}"
    names = [f"t{number:02}" for number in range(40)]
    with Service(place.settings()) as service:
        ident = service.submit(workflow("many", {f"g{name}": [task(name, script)] for name in names}, gpu=1))["id"]
        service.wait(ident, lambda view: view["tasks"]["running"] > 0, PATIENCE_S)
    before = service.store.workflow(ident)
    assert before.state["version"] == 2
    old = database(service.settings.store, 5)
    with changing(old) as connection:
        command.downgrade(configuration(connection), "0005")
    old.close()

    with Service(place.settings()) as service:
        assert service.store.workflow(ident).state["version"] in {1, 2}
        gate.touch()
        view = service.wait(ident, timeout_s=PATIENCE_S)
    assert (view["status"], view["tasks"]["completed"]) == ("COMPLETED", 40)
    assert sorted(ledger.read_text(encoding="utf-8").split()) == names
