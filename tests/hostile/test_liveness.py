"""No workflow, however large or however many, delays those of others for long, also after a restart in its middle."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coterie.backends.local.attempt_folder import trash
from coterie.errors import CoterieError, Unavailable
from coterie.service.service import Service
from coterie.service.settings import Submission
from coterie.service.work_process import WorkProcesses
from coterie.store import WorkflowQuery
from tests.eventually import eventually
from tests.hostile.probe import FULL, PATIENCE_S, TIME_LIMIT_S, probed, sized
from tests.service.running_service import ServiceFolder, single, task, workflow

pytestmark = [pytest.mark.hostile, pytest.mark.time_limit(TIME_LIMIT_S)]

TEMPLATE = b"""default-values:
  count: 4
version: 2
workflow:
  name: waiting
  groups:
  - name: g
    tasks:
{% for number in range(count) %}
    - {name: "t{{ number }}", lead: {{ number == 0 }}, image: any, command: [sh, -c, "true"]}
{% endfor %}
  resources:
    default: {gpu: 4, cpu: 1}
"""
BURNING = b"""version: 2
workflow:
  name: burning
  groups: [{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}]
"""
EXPANDING = b"""default-values:
  count: 4
version: 2
workflow:
  name: expanding
  groups:
{% for number in range(count) %}
  - {name: "g{{ number }}", tasks: [{name: "t{{ number }}", image: any, command: [sh, -c, "true"]}]}
{% endfor %}
  resources:
    default: {gpu: 0, cpu: 1}
"""


@pytest.fixture
def place(tmp_path: Path) -> ServiceFolder:
    return ServiceFolder(tmp_path / "place")


# The whole form has the intervals of a real service.
SETTINGS: dict[str, Any] = {"lease_s": 10.0, "poll_s": 0.5} if FULL else {}


def started(place: ServiceFolder) -> Service:
    service = Service(place.settings(**SETTINGS))
    service.start()
    eventually(lambda: bool(service.health()["ready"]))
    return service


def full(service: Service) -> None:
    """Occupy every GPU, so that all workflows with GPUs wait."""
    for _ in range(8):
        service.submit(single("full", "sleep 1000"))
    eventually(lambda: service.pool("main")["gpus"]["used"] == 32)


def unfinished(service: Service) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = service.workflows(WorkflowQuery(finished=False), limit=1000)["items"]
    return found


def attacked(
    place: ServiceFolder,
    name: str,
    attack: Callable[[Service], object],
    *,
    beside: Callable[[Service], object] = lambda _: None,
    lasts: Callable[[Service], bool] = lambda _: True,
    priority: str = "NORMAL",
) -> None:
    """Probe a service during an attack, and again after a restart in its middle.

    `beside` is done before each probe; `lasts` is whether the attack has not ended.
    """
    first = started(place)
    try:
        attack(first)
        during = probed(first, beside=beside, priority=priority)
        during.over = not lasts(first)
    finally:
        first.stop()
    second = started(place)
    try:
        after = probed(second, beside=beside, priority=priority)
        after.over = not lasts(second)
        for row in unfinished(second):
            second.cancel(row["id"], force=True)
        eventually(lambda: not unfinished(second), patience_s=PATIENCE_S)
    finally:
        second.stop()
    during.check(name)
    after.check(f"{name}, after a restart")


def test_many_waiting_templates(place: ServiceFolder) -> None:
    def attack(service: Service) -> None:
        full(service)
        for _ in range(sized(10, 400)):
            service.submit(Submission(TEMPLATE))

    attacked(place, "waiting templates", attack)


def test_many_waiting_tasks(place: ServiceFolder) -> None:
    def attack(service: Service) -> None:
        full(service)
        tasks = [task(f"t{number}", "true", "lead: true" if not number else "") for number in range(sized(16, 200))]
        for _ in range(sized(8, 300)):
            service.submit(workflow("large", {"g": tasks}), force=True)

    attacked(place, "waiting tasks", attack)


@pytest.mark.parametrize("room", [True, False], ids=["with room", "in a full pool"])
def test_one_workflow_of_many_single_tasks(place: ServiceFolder, *, room: bool) -> None:
    """Tasks that take every GPU, and tasks that take every processor as well.

    With room for it, a probe is delayed by the service alone. In a full pool, older work of the same priority goes
    first, whoever it belongs to: the queue promises that, and only quotas of pools change it. What the service owes
    others there is that a workflow with a higher priority gets the next free place at once.
    """
    groups = {f"g{number}": [task(f"t{number}", "true")] for number in range(sized(150, 5000))}
    attacked(
        place,
        f"single tasks, {'with room' if room else 'in a full pool'}",
        lambda service: service.submit(workflow("many", groups, gpu=int(room))),
        lasts=lambda service: any(row["name"] == "many" for row in unfinished(service)),
        priority="NORMAL" if room else "HIGH",
    )


def test_many_deletions(place: ServiceFolder) -> None:
    """Very many workflows, half of which run, and one with very many files, deleted at once."""
    folders, some = sized(5, 1000), sized(3, 100)
    script = f"cd $COTERIE_OUTPUT; for i in $(seq {folders}); do mkdir $i; (cd $i; touch $(seq 1000)); done"

    def attack(service: Service) -> None:
        ended = [service.submit(single("gone", "true", gpu=0))["id"] for _ in range(some)]
        ended.append(service.submit(single("files", script, gpu=0))["id"])
        for ident in ended:
            assert service.wait(ident, timeout_s=PATIENCE_S)["status"] == "COMPLETED"
        running = [service.submit(single("gone", "sleep 1000", gpu=0))["id"] for _ in range(some)]
        for ident in running:
            service.wait(ident, lambda view: bool(view["status"] == "RUNNING"), PATIENCE_S)
        for ident in (*reversed(ended), *running):
            service.delete(ident, force=True)

    attacked(place, "deletions", attack, lasts=lambda _: any(trash(place.settings().tasks)))


def test_hostile_requests(place: ServiceFolder) -> None:
    """Plans of very many groups and of very many tasks, and templates that never end, by many callers at once."""
    many = sized(600, 9000)
    plans = [
        workflow("groups", {f"g{number}": [task(f"t{number}", "true")] for number in range(many)}, gpu=0),
        workflow("tasks", {"g": [task(f"t{n}", "true", "" if n else "lead: true") for n in range(many)]}, gpu=0),
        Submission(EXPANDING, sets=(f"count={many}",)),
    ]
    for after in ("", ", after a restart"):
        service = started(place)
        try:
            with repeated([partial(service.plan, replace(plans[n % 3], owner=f"p{n}")) for n in range(8)]):
                planned = probed(service)
                burning = [partial(service.submit, Submission(BURNING, owner=f"b{n}")) for n in range(12)]
                with repeated(burning):
                    requested = probed(service)
        finally:
            service.stop()
        planned.check(f"8 hostile plans{after}", limit_s=1.0)
        requested.check(f"20 hostile requests{after}")


def test_strange_files(place: ServiceFolder) -> None:
    """Tasks that replace their logs by FIFOs, devices and links, leave very deep outputs, and flood their logs."""
    deep = f"(cd $COTERIE_OUTPUT; for i in $(seq {sized(200, 1200)}); do mkdir d && cd -P d; done)"
    flood = f"(head -c {sized(1, 100)}M /dev/zero | tr '\\0' x)"
    files = "for f in log log.times exit pid claim order.json stop lost; do rm -f ../$f;"
    made = {
        "fifo": f"{files} mkfifo ../$f; done",
        "device": f"{files} ln -s /dev/zero ../$f; done",
        "link": f"{files} ln -s $HOME ../$f; done",
        "deep": f"{deep}; {flood}",
    }

    def read(service: Service, ident: str) -> None:
        with suppress(CoterieError):
            service.log(ident, "t")

    def attack(service: Service) -> None:
        for name, script in made.items():
            for number in range(sized(1, 8)):
                done = place.folder / f"done-{name}-{number}"
                ident = service.submit(single(name, f"{script}; touch {done}; sleep 1000", gpu=0))["id"]
                # Its status may be unknown from here on, because its own files say nothing any more.
                eventually(done.exists, patience_s=PATIENCE_S)
                read(service, ident)

    def read_all(service: Service) -> None:
        for row in unfinished(service):
            read(service, row["id"])

    attacked(place, "strange files", attack, beside=read_all)


def test_a_short_template_for_very_many_tasks_is_worked_on_outside_the_service(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    run = WorkProcesses.run

    def noted(processes: WorkProcesses, what: str, *rest: Any) -> object:
        sent.append(what)
        return run(processes, what, *rest)

    monkeypatch.setattr(WorkProcesses, "run", noted)
    with Service(place.settings()) as service:
        assert service.plan(Submission(EXPANDING))["groups"]
        assert not sent
        assert len(service.plan(Submission(EXPANDING, sets=("count=400",)))["groups"]) == 400
        assert len(service.submit(Submission(EXPANDING, sets=("count=400",), pool="main"))["groups"]) == 400
    assert sent == ["this plan", "this submission"]


@contextmanager
def repeated(calls: Sequence[Callable[[], object]]) -> Iterator[None]:
    """Repeat calls that may fail, each in a thread."""
    ended = threading.Event()

    def run(call: Callable[[], object]) -> None:
        while not ended.is_set():
            try:
                call()
            except Unavailable:
                ended.wait(0.1)
            except CoterieError:
                continue

    running = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
    for each in running:
        each.start()
    try:
        yield
    finally:
        ended.set()
        for each in running:
            each.join(PATIENCE_S)
