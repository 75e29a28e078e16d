"""The texts of workflows: no template is rendered twice, and none that is being read delays another workflow."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from coterie.frontends.template import render
from coterie.frontends.template.sandbox import RenderedTemplate, run
from coterie.frontends.workflow.read import Workflow
from coterie.service.driver.workflows import texts
from coterie.service.driver.workflows.texts import CachedTexts
from coterie.service.service import Service
from coterie.service.settings import Submission
from coterie.service.submission.compilation import read
from tests.eventually import eventually
from tests.service.running_service import ServiceFolder, single

PATIENCE_S = 60.0
# How long a text is being read at most: longer than all the workflows that must not wait for it.
READING_S = 4 * PATIENCE_S
TEMPLATE = b"""default-values:
  ranks: [first]
version: 2
workflow:
  name: made
  groups:
  - name: g
    tasks:
{% for rank in ranks %}
    - {name: "{{ rank }}", image: any, command: [sh, -c, "true"]}
{% endfor %}
  resources:
    default: {gpu: 4, cpu: 1}
"""


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the templates that have been rendered."""
    found: list[str] = []

    def counted(template: str, variables: Mapping[str, Any], output: int, traced: str = "") -> RenderedTemplate:
        found.append(template)
        return run(template, variables, output, traced)

    monkeypatch.setattr(render, "run", counted)
    return found


def completed(service: Service, ident: str) -> None:
    ended(service, ident, "COMPLETED")


def ended(service: Service, ident: str, status: str) -> None:
    view = service.wait(ident, timeout_s=PATIENCE_S)
    assert (view["status"], view["finished"]) == (status, True), view


def fill(service: Service, tmp_path: Path) -> None:
    """Occupy all nodes until the file `go` exists."""
    for _ in range(8):
        service.submit(single("full", f"while ! test -e {tmp_path}/go; do sleep 0.05; done"))
    eventually(lambda: service.pool("main")["gpus"]["used"] == 32)


def test_no_template_is_rendered_twice(place: ServiceFolder, tmp_path: Path, rendered: list[str]) -> None:
    with Service(place.settings()) as first:
        fill(first, tmp_path)
        for _ in range(3):
            first.submit(Submission(TEMPLATE))
    assert len(rendered) == 3
    with Service(place.settings()) as second:
        eventually(lambda: second.health()["waiting"] == 3)
        assert second.why("made-1")["groups"][0]["refusal"] is not None
        (tmp_path / "go").touch()
        for number in (1, 2, 3):
            completed(second, f"made-{number}")
    assert len(rendered) == 3


def test_a_workflow_submitted_with_changes_is_rendered_once_and_keeps_its_warnings(
    place: ServiceFolder, rendered: list[str]
) -> None:
    service = Service(place.settings())
    try:
        view = service.submit(Submission(TEMPLATE, sets=("unused=1",)))
        assert [each["code"] for each in view["warnings"]].count("VariableUnused") == 1
        assert len(rendered) == 1
    finally:
        service.stop()


def test_a_text_that_is_being_read_delays_no_other_workflow(
    place: ServiceFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Service(place.settings()) as first:
        fill(first, tmp_path)
        for _ in range(3):
            first.submit(Submission(TEMPLATE))
    get, go_on = CachedTexts.get, threading.Event()

    def slowly(texts: CachedTexts, workflow: str) -> tuple[Workflow, Mapping[str, bytes]]:
        assert go_on.wait(READING_S)
        return get(texts, workflow)

    monkeypatch.setattr(CachedTexts, "get", slowly)
    with Service(place.settings()) as second:
        try:
            second.submit(single("fast", "true", gpu=0))
            ended(second, "fast-1", "COMPLETED")
            second.submit(single("ended", "true"))
            second.cancel("ended-1")
            ended(second, "ended-1", "FAILED_CANCELED")
            # Even the workflow whose text is being read can be ended meanwhile.
            for ident in ("made-1", "made-2"):
                second.cancel(ident)
                ended(second, ident, "FAILED_CANCELED")
        finally:
            go_on.set()
        (tmp_path / "go").touch()
        completed(second, "made-3")


def test_the_same_text_of_several_workflows_is_read_once_after_a_restart(
    place: ServiceFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Service(place.settings()) as first:
        fill(first, tmp_path)
        for _ in range(4):
            first.submit(Submission(TEMPLATE))
        first.submit(single("made", "true"))
    parsed: list[bytes] = []

    def counted(submission: Submission) -> Workflow:
        parsed.append(submission.source)
        return read(submission)

    monkeypatch.setattr(texts, "read", counted)
    with Service(place.settings()) as second:
        eventually(lambda: second.health()["waiting"] == 5)
        (tmp_path / "go").touch()
        for number in range(1, 6):
            completed(second, f"made-{number}")
    assert parsed.count(TEMPLATE) == 1
    assert len(parsed) <= 10, "the tasks that run may be read as well"
