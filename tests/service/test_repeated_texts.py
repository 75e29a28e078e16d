"""The same text, submitted again: it is compiled once for each state of the pools, and not parsed again."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from coterie.errors import NeverFits
from coterie.frontends.workflow.read import Workflow
from coterie.service.service import Service
from coterie.service.settings import Submission
from coterie.service.submission import admission, compilation
from coterie.store import Store, Upload, WorkflowChange, WorkflowRecord
from tests.eventually import eventually
from tests.service.running_service import ServiceFolder, single, task, workflow


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the files that have been parsed for submissions."""
    found: list[str] = []

    def noted(submission: Submission) -> Workflow:
        found.append(submission.file)
        return compilation.read(submission)

    monkeypatch.setattr(admission, "read", noted)
    return found


def test_a_text_is_compiled_once_and_its_call_counts_each_time(service: Service, read: list[str]) -> None:
    text = single("same", "true", gpu=0)
    views = [service.submit(replace(text, owner=name, labels={"of": name})) for name in ("ann", "bob")]
    assert [(view["id"], view["owner"], view["labels"]) for view in views] == [
        ("same-1", "ann", {"of": "ann"}),
        ("same-2", "bob", {"of": "bob"}),
    ]
    assert len(read) == 1
    service.submit(replace(text, file="other.yaml"))
    assert len(read) == 2
    for number in (1, 2, 3):
        assert service.wait(f"same-{number}", timeout_s=60)["status"] == "COMPLETED"


def test_a_text_is_compiled_again_when_the_pools_have_changed(
    place: ServiceFolder, service: Service, read: list[str]
) -> None:
    text = single("same", "true", gpu=4)
    service.submit(text)
    config = place.folder / "coterie.yaml"
    config.write_text(place.config + "    gpus: {limit: 2}\n", encoding="utf-8")
    eventually(lambda: service.pool("main")["gpus"]["limit"] == 2)
    with pytest.raises(NeverFits):
        service.submit(text)
    assert len(read) == 2


def test_workflows_that_were_submitted_here_are_not_read_again(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: set[str] = set()
    original = Store.workflow

    def noted(store: Store, ident: str) -> WorkflowRecord:
        loaded.add(ident)
        return original(store, ident)

    monkeypatch.setattr(Store, "workflow", noted)
    with Service(place.settings(poll_s=10.0)) as service:
        for number in range(1, 11):
            service.submit(single("new", "true", gpu=0))
            eventually(lambda number=number: service.store.summary(f"new-{number}").finished)  # type: ignore[misc]
    # The driver may look in the moment between the save and the note of it, and then reads the workflow.
    assert len(loaded) < 10


def test_a_replica_that_does_not_lead_keeps_only_small_submissions(place: ServiceFolder) -> None:
    service = Service(place.settings())  # not started, so that it leads nothing
    try:
        small = service.submit(single("small", "true", gpu=0))["id"]
        service.submit(replace(single("files", "true", gpu=0), local_files={"a": bytes(40_000)}))
        many = {f"g{number}": [task(f"t{number}", "true")] for number in range(33)}
        service.submit(workflow("many", many, gpu=0))
        assert [each.stored.id for each in service._fresh] == [small]
    finally:
        service.stop()


def test_what_waits_unchanged_is_not_read_again(place: ServiceFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    with Service(place.settings()) as service:
        for _ in range(8):
            service.submit(single("full", "sleep 600"))
        eventually(lambda: service.pool("main")["gpus"]["free"] == 0)
        waiting = [service.submit(single("waiting", "true"))["id"] for _ in range(5)]
        eventually(lambda: all(service.workflow(ident)["waiting"] for ident in waiting))
        seen: list[str] = []
        workflow_of, upload_of, save = Store.workflow, Store.upload, Store.save

        def loaded(store: Store, ident: str) -> WorkflowRecord:
            if threading.current_thread() is not threading.main_thread():
                seen.append(ident)
            return workflow_of(store, ident)

        def uploaded(store: Store, ident: str) -> Upload:
            seen.append(ident)
            return upload_of(store, ident)

        def saved(store: Store, changes: Sequence[WorkflowChange], fence: int) -> int:
            seen.extend(each.id for each in changes)
            return save(store, changes, fence)

        monkeypatch.setattr(Store, "workflow", loaded)
        monkeypatch.setattr(Store, "upload", uploaded)
        monkeypatch.setattr(Store, "save", saved)
        for _ in range(5):  # each of them takes several turns and queue cycles
            ident = service.submit(single("probe", "true", gpu=0))["id"]
            assert service.wait(ident, timeout_s=60)["status"] == "COMPLETED"
        assert not set(waiting) & set(seen)
        assert seen
