"""Edge cases of workflow files, T050 to T085, on a service: submitted and only planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from coterie.backends.local.supervisor import Supervisor
from coterie.backends.local.work_order import WorkOrder
from coterie.config.configuration import Backend, Config, Pool
from coterie.errors import Fault, SpecErrors, Unavailable
from coterie.service.service import Service
from coterie.service.settings import GivenPools, Settings, Submission
from coterie.sources import Snapshot
from coterie.topology.cluster import CPU, GPU, MEMORY, Cluster, Node
from tests.edge_cases.service_watch import WatchedService, clear, ended, racks, task, tasks, until, workflow
from tests.edge_cases.test_workflow_spec import CASES, ENGINE, ENGINE_DOCUMENTS, NO_LEVELS, SHORT, Case, outcome
from tests.frontends.workflow.samples import POOL

WRONG = [case for case in CASES if case.fault]
RIGHT = [case for case in CASES if not case.fault and not case.id.startswith("T085")]


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Service]]:
    """Open a service for each pool that the cases are written for; nobody drives them, so nothing runs."""
    nodes = [Node(f"n{n}", {level.label: "x" for level in POOL.topology.levels}, ROOM) for n in range(4)]
    made = {}
    for number, pool in enumerate((POOL, NO_LEVELS, SHORT)):
        folder = tmp_path_factory.mktemp(f"pool{number}")
        config = Config(
            {pool.backend: Backend(pool.backend, "local")}, {pool.name: replace(pool, scheduler="local")}, ""
        )
        given = GivenPools(config, {pool.backend: Snapshot(Cluster.of(nodes))})
        made[key(pool)] = Service(Settings(str(folder / "store.db"), folder / "state", given=given))
    yield made
    for service in made.values():
        service.stop()


ROOM = {GPU: 8, CPU: 64_000, MEMORY: 1 << 40}


def key(pool: Pool) -> str:
    return f"{pool.name} {pool.topology.names}"


_ENDLESS = pytest.mark.slow("uses all the processor time that a template may use, twice")


def asked(case: Case) -> Submission:
    return Submission(case.text.encode(), "w.yaml", sets=case.sets)


def offline(case: Case) -> tuple[Fault, ...]:
    with pytest.raises(SpecErrors) as caught:
        outcome(case)
    return tuple(caught.value.faults)


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.id, marks=_ENDLESS if case.id == "T080-cpu" else ()) for case in WRONG]
)
def test_the_same_text_has_the_same_faults_submitted_planned_and_offline(
    case: Case, services: dict[str, Service]
) -> None:
    service = services[key(case.pool)]
    expected, known = offline(case), service.last_event()
    # The one that takes too long does so every time.
    for call in (service.submit, service.plan) if case.id != "T080-cpu" else (service.submit,):
        with pytest.raises(SpecErrors) as caught:
            call(asked(case))
        assert tuple(caught.value.faults) == expected
    assert service.last_event() == known


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.id)
def test_what_is_right_is_accepted_with_the_notices_it_deserves(case: Case, services: dict[str, Service]) -> None:
    service = services[key(case.pool)]
    planned = service.plan(asked(case))
    view = service.submit(asked(case), force=True)
    service.cancel(view["id"])
    assert planned["verdict"] in ("placed", "waiting", "impossible")
    if case.notice:
        assert case.notice in {warning["code"] for warning in planned["warnings"]}
        assert case.notice in {warning["code"] for warning in view["warnings"]}


@pytest.mark.parametrize("identity", sorted(ENGINE))
def test_what_the_nodes_decide_is_told_at_submission(identity: str, services: dict[str, Service]) -> None:
    service = services[key(POOL)]
    submission = Submission(ENGINE_DOCUMENTS[identity].encode(), "w.yaml")
    verdict = service.plan(submission)["verdict"]
    view = service.submit(submission, force=True)
    # Ninety-nine tasks of eight GPUs are the only ones that these four nodes can never take.
    assert verdict == ("impossible" if identity in ("T060", "T062") else "placed")
    assert any(warning["code"] == "NeverFits" for warning in view["warnings"]) == (verdict == "impossible")


def test_t085_a_gang_of_101_tasks_runs(tmp_path: Path) -> None:
    lab = WatchedService(tmp_path / "lab", racks(r1=4))
    members = [task(f"t{number}", "true", "" if number else "lead: true") for number in range(101)]
    text = workflow("w", {"g": members}, gpu=0)
    with lab.serving() as service:
        minds_all = text.source.replace(b"  - name: g\n", b"  - name: g\n    ignoreNonleadStatus: false\n")
        service.submit(replace(text, source=minds_all))
        view = ended(service, "w-1")
        assert (view["status"], view["tasks"]["completed"]) == ("COMPLETED", 101)


def test_t085_a_gang_of_400_tasks_is_placed_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def later(_supervisor: Supervisor, _orders: Sequence[WorkOrder]) -> None:
        raise Unavailable("too many processes", "Wait.")

    # Where they go is the question here, so none of them is started.
    monkeypatch.setattr(Supervisor, "start", later)
    lab = WatchedService(tmp_path / "lab", racks(r1=13), changes={"processes": 400})
    members = [task(f"t{number}", "true", "" if number else "lead: true") for number in range(400)]
    with lab.serving() as service:
        service.submit(workflow("w", {"g": members}, gpu=0))
        view = until(service, "w-1", lambda view: all(one["node"] for one in tasks(view).values()))
        assert len(tasks(view)) == 400
        assert len(service.store.held()["w-1"]) == 400
        clear(service)
        assert service.store.held() == {}
