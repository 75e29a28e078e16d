"""Each backend has its own driver: an unreachable one delays no other, and one may choose the nodes itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from coterie.backends.base import registry
from coterie.config.configuration import Backend, Config, Pool
from coterie.lifecycle import Ended
from coterie.service.driver import board
from coterie.service.driver.connections.drivers import Drivers
from coterie.service.driver.workflows.texts import CachedTexts, PromptTexts
from coterie.service.pools.catalog import PoolCatalog
from coterie.service.service import Service
from coterie.service.settings import GivenPools, Settings, Submission
from coterie.sources import Snapshot
from coterie.store import Store
from coterie.topology.cluster import CPU, GPU, Cluster, Member, Node, Pod
from coterie.topology.levels import Topology
from tests.eventually import PATIENCE_S, eventually
from tests.service.driver import fake_scheduler
from tests.service.driver.fake_scheduler import FakeCluster
from tests.service.running_service import LEASE_S, single, task, workflow

RACKS = Topology.of(("rack", "rack"))


def nodes(prefix: str, pods: tuple[Pod, ...] = ()) -> Snapshot:
    found = [Node(f"{prefix}{n}", {"rack": f"r{n // 2}"}, {GPU: 8, CPU: 64000}) for n in range(4)]
    return Snapshot(Cluster.of(found, pods))


def settings(folder: Path, pods: tuple[Pod, ...] = ()) -> Settings:
    """Return settings with a backend on this machine and one of the fake scheduler."""
    backends = {"here": Backend("here", "local"), "far": Backend("far", "fake", context="c", namespace="n")}
    pools = {name: Pool(name, name, one.scheduler, topology=RACKS) for name, one in backends.items()}
    given = GivenPools(Config(backends, pools, "the test"), {"here": nodes("h"), "far": nodes("f", pods)})
    return Settings(str(folder / "store.db"), folder, given=given, poll_s=0.05, grace_s=1.0, lease_s=LEASE_S)


def to(pool: str, submission: Submission) -> Submission:
    return replace(submission, pool=pool)


def problems(service: Service) -> set[str]:
    return {each["what"] for each in service.health()["problems"]}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCluster]:
    found = FakeCluster({"t": "f2"})
    found.blocked.set()
    monkeypatch.setattr(fake_scheduler, "WORLD", found)
    monkeypatch.setitem(registry.MODULES, "fake", fake_scheduler.__name__)
    yield found
    found.blocked.set()


def test_a_backend_out_of_reach_delays_nobody_and_goes_on_when_it_is_back(tmp_path: Path, world: FakeCluster) -> None:
    world.out_of_reach = True
    with Service(settings(tmp_path)) as service:
        far = service.submit(to("far", single("far", "true")))["id"]
        eventually(lambda: problems(service) == {"backend far"})

        near = service.submit(to("here", single("near", "true")))["id"]
        assert service.wait(near, timeout_s=PATIENCE_S)["status"] == "COMPLETED"
        assert service.workflow(far)["status"] not in {"COMPLETED", "RUNNING"}

        world.out_of_reach = False
        assert service.wait(far, timeout_s=PATIENCE_S)["status"] == "COMPLETED"
        eventually(lambda: not problems(service))


def test_problems_of_a_backend_are_its_problem_while_they_last_and_its_workflows_go_on(
    tmp_path: Path, world: FakeCluster
) -> None:
    world.problems = ["a folder cannot be removed", "events may not be read"]
    with Service(settings(tmp_path)) as service:
        expected = [("backend far", "a folder cannot be removed; events may not be read")]
        eventually(lambda: [(each["what"], each["message"]) for each in service.health()["problems"]] == expected)
        far = service.submit(to("far", single("far", "true")))["id"]
        assert service.wait(far, timeout_s=PATIENCE_S)["status"] == "COMPLETED"
        assert problems(service) == {"backend far"}
        world.problems = []
        eventually(lambda: not problems(service))


def test_a_backend_that_does_not_answer_delays_nobody(tmp_path: Path, world: FakeCluster) -> None:
    with Service(settings(tmp_path)) as service:
        eventually(lambda: "strays" in world.asked)
        world.blocked.clear()
        far = service.submit(to("far", single("far", "true")))["id"]
        near = service.submit(to("here", single("near", "true")))["id"]

        assert service.wait(near, timeout_s=PATIENCE_S)["status"] == "COMPLETED"
        assert service.workflow(far)["status"] not in {"COMPLETED", "RUNNING"}

        world.blocked.set()
        assert service.wait(far, timeout_s=PATIENCE_S)["status"] == "COMPLETED"


def test_a_service_stops_while_a_backend_does_not_answer(tmp_path: Path, world: FakeCluster) -> None:
    with Service(settings(tmp_path)) as service:
        eventually(lambda: "strays" in world.asked)
        world.blocked.clear()
        service.submit(to("far", single("far", "true")))
        eventually(lambda: any(each.startswith(("adopt", "create")) for each in world.asked))

    assert "close" not in world.asked


def test_a_driver_gets_its_pools_and_its_own_workflows(tmp_path: Path, world: FakeCluster) -> None:
    with Service(settings(tmp_path)) as service:
        for pool in ("here", "far"):
            service.wait(service.submit(to(pool, single(pool, "true")))["id"], timeout_s=PATIENCE_S)
        eventually(lambda: "archive far-1" in world.asked)

        assert service.log("far-1", "t") == b"t ran\n"

    assert "sync far" in world.asked
    eventually(lambda: "close" in world.asked)
    assert not [each for each in world.asked if "here" in each]


def test_the_node_that_a_scheduler_chose_is_stored_as_a_placement(tmp_path: Path, world: FakeCluster) -> None:
    world.ending = False
    with Service(settings(tmp_path)) as service:
        ident = service.submit(to("far", single("far", "true")))["id"]
        found = service.wait(ident, until=lambda view: view["status"] == "RUNNING", timeout_s=PATIENCE_S)
        (task,) = found["groups"][0]["tasks"]
        (row,) = service.store.placements(ident)

        assert (task["node"], row.node, dict(row.domains)) == ("f2", "f2", {"rack": "r1"})
        assert service.pool("far")["gpus"]["used"] == 4
        assert {each.name: each.free_gpus for each in service.nodes()}["f2"] == 4

    # The next leader finds it held.
    with Service(settings(tmp_path)) as service:
        eventually(lambda: f"adopt {ident}" in world.asked)
        assert [row.node for row in service.store.placements(ident)] == ["f2"]
        service.cancel(ident)
        service.wait(ident, until=lambda view: view["finished"], timeout_s=PATIENCE_S)
        assert {each.name: each.free_gpus for each in service.nodes()}["f2"] == 8


def test_a_scheduler_without_a_queue_gets_gangs_when_there_is_room_and_chooses_their_nodes(
    tmp_path: Path, world: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_scheduler, "TRAITS", replace(fake_scheduler.TRAITS, own_queue=False))
    world.ending = False
    world.nodes = {"t": "f2"} | {f"all-{n}": f"f{n}" for n in range(4)}
    with Service(settings(tmp_path)) as service:
        tasks = [task(f"all-{n}", "true", f"lead: {str(n == 0).lower()}") for n in range(4)]
        full = service.submit(to("far", workflow("full", {"g": tasks}, gpu=8)))["id"]
        service.wait(full, until=lambda view: view["status"] == "RUNNING", timeout_s=PATIENCE_S)
        ident = service.submit(to("far", single("far", "true")))["id"]
        service.wait(ident, until=lambda view: view["groups"][0]["waiting"] is not None, timeout_s=PATIENCE_S)
        assert f"create {ident}/g" not in world.asked

        service.cancel(full)
        found = service.wait(ident, until=lambda view: view["status"] == "RUNNING", timeout_s=PATIENCE_S)

        assert found["groups"][0]["tasks"][0]["node"] == "f2"
        service.wait(full, until=lambda view: view["finished"], timeout_s=PATIENCE_S)
        free = {each.name: each.free_gpus for each in service.nodes() if each.backend == "far"}
        assert free == {"f0": 8, "f1": 8, "f2": 4, "f3": 8}


def test_a_task_and_its_live_pod_count_once(tmp_path: Path, world: FakeCluster) -> None:
    world.ending = False
    own = Pod("n/far-1-t", "f2", {GPU: 4, CPU: 1000}, owner="PodGroup/far-1", member=Member("far-1", "g", "t"))
    other = Pod("n/other", "f2", {GPU: 1}, member=Member("other", "g", "t"))
    with Service(settings(tmp_path, (own, other))) as service:
        ident = service.submit(to("far", single("far", "true")))["id"]
        service.wait(ident, until=lambda view: view["status"] == "RUNNING", timeout_s=PATIENCE_S)

        (node,) = [each for each in service.nodes() if each.name == "f2"]
        assert (node.workflows["gpu"], node.others["gpu"], node.free_gpus) == (4, 1, 3)
        assert service.pool("far")["gpus"] | {} == {
            "guarantee": None,
            "limit": None,
            "weight": 1,
            "used": 4,
            "total": 32,
            "free": 27,
            "out_of_service": 0,
        }


def test_a_workflow_stays_on_its_backend_when_its_pool_moves(tmp_path: Path, world: FakeCluster) -> None:
    world.ending = False
    before = settings(tmp_path)
    with Service(before) as service:
        later = task("u", "true", "inputs: [{task: t}]")
        ident = service.submit(to("far", workflow("two", {"a": [task("t", "true")], "b": [later]})))["id"]
        service.wait(ident, until=lambda view: view["status"] == "RUNNING", timeout_s=PATIENCE_S)

    assert before.given is not None
    config = before.given.config
    moved = replace(config, pools={**config.pools, "far": replace(config.pools["here"], name="far")})
    with Service(replace(before, given=replace(before.given, config=moved))) as service:
        world.news.append((ident, Ended("t", 1, 0)))
        found = service.wait(ident, until=lambda view: view["groups"][1]["waiting"], timeout_s=PATIENCE_S)

        assert found["groups"][0]["status"] == "COMPLETED"
        assert 'pool "far" has moved to backend "here"' in found["groups"][1]["waiting"]["message"]


def test_a_workflow_whose_calls_crash_is_set_aside_and_delays_nobody(
    tmp_path: Path, world: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "_AGAIN_S", 3600.0)  # so that nobody takes it up again meanwhile
    world.crashing = "create bad"
    with Service(settings(tmp_path)) as service:
        bad = service.submit(to("far", single("bad", "true")))["id"]
        eventually(lambda: f"workflow {bad}" in problems(service), patience_s=PATIENCE_S)
        good = service.submit(to("far", single("good", "true")))["id"]
        assert service.wait(good, timeout_s=PATIENCE_S)["status"] == "COMPLETED"
        calls = world.asked.count(f"create {bad}/g")
        again = service.submit(to("far", single("again", "true")))["id"]
        assert service.wait(again, timeout_s=PATIENCE_S)["status"] == "COMPLETED"
        assert world.asked.count(f"create {bad}/g") == calls
        eventually(lambda: "backend far" not in problems(service))


def test_a_changed_context_opens_the_driver_of_a_backend_anew(world: FakeCluster, tmp_path: Path) -> None:
    first = settings(tmp_path)
    assert first.given is not None
    given = first.given
    drivers = Drivers(first, "store", (CachedTexts(cast("Store", None)), cast("PromptTexts", None)), lambda: None)

    def catalog(context: str) -> PoolCatalog:
        far = replace(given.config.backends["far"], context=context)
        return PoolCatalog({"far": far}, given.clusters, {})

    try:
        assert [each.home for each in drivers.apply(catalog("c"))] == ["far"]
        eventually(lambda: world.contexts == ["c"])
        assert drivers.apply(catalog("c")) == []
        assert [each.home for each in drivers.apply(catalog("d"))] == ["far"]
        eventually(lambda: world.contexts == ["c", "d"])
        eventually(lambda: world.asked.count("close") == 1)
    finally:
        drivers.close()
