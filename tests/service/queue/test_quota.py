"""The explanation of a gang over its pool's quota: the workflows that use it, and verified remedies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from coterie.gang.tree import Gang, Shape, Task
from coterie.planning.changes import WhatIf
from coterie.service.pools.usage import JoiningGang
from coterie.service.service import Service
from tests.service.running_service import CONFIG, ServiceFolder, single, task, workflow

Json = dict[str, Any]
FOREVER = "sleep 600"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Run a pool of 32 GPUs of which 16 may be used: `large` has 8 of them, `small` and `less` 4 and 2."""
    config = f"{CONFIG}    gpus: {{limit: 16}}\n"
    with Service(ServiceFolder(tmp_path_factory.mktemp("quota") / "place", config=config).settings()) as found:
        found.submit(gang("large", 2))
        found.submit(single("small", FOREVER))
        found.submit(single("less", FOREVER, gpu=2))
        for ident in ("large-1", "small-1", "less-1"):
            found.wait(ident, lambda view: view["status"] == "RUNNING", timeout_s=60)
        yield found
        for ident in ("large-1", "small-1", "less-1"):
            found.cancel(ident, force=True)
            found.wait(ident, timeout_s=60)


PLAN = "coterie submit workflow.yaml --dry-run --pool main "


def gang(name: str, size: int) -> Any:
    return workflow(name, {"g": [task(f"t{n}", FOREVER, "" if n else "lead: true") for n in range(size)]})


def refusal(service: Service, size: int) -> Json:
    """Return the same refusal from a plan and from a workflow that waits."""
    planned: Json = service.plan(gang("next", size))["groups"][0]["refusal"]
    ident = service.submit(gang("next", size), force=True)["id"]
    service.wait(ident, lambda view: bool(view["waiting"]), timeout_s=60)
    (why,) = service.why(ident)["groups"]
    service.cancel(ident, force=True)
    assert planned["reason"] == "OverQuota"
    assert _bare(why["refusal"], f"coterie why {ident}/g ") == _bare(planned, PLAN)
    return planned


def _bare(refusal: Json, call: str) -> Json:
    """Return a refusal with the options of its ways out alone."""
    ways = [{**way, "command": way["command"].removeprefix(call)} for way in refusal["ways_out"]]
    return {**refusal, "ways_out": ways}


def test_whoever_uses_the_limit_up_is_named_the_largest_first(service: Service) -> None:
    found = refusal(service, 2)
    assert [(one["owner"], one["gpus"]) for one in found["holders"]] == [("large-1", 8), ("small-1", 4), ("less-1", 2)]


RAISED = 'if an admin raises gpus.limit of pool "main" to'


@pytest.mark.parametrize(
    ("size", "ways"),
    [
        (1, [("fits when less-1 ends", "--without less-1"), (f"fits now {RAISED} 18", "")]),
        (2, [("fits when large-1 ends", "--without large-1"), (f"fits now {RAISED} 22", "")]),
        (3, [("fits when large-1 and small-1 have ended", ""), (f"fits now {RAISED} 26", "")]),
        (
            5,
            [
                ("is within the limit with 4 tasks, and then waits for its turn", "--tasks g=4"),
                (f"is within the limit {RAISED} 34, and then waits for room", ""),
            ],
        ),
        (9, [("is within the limit with 4 tasks, and then waits for its turn", "--tasks g=4")]),
    ],
)
def test_ways_out_are_to_wait_to_ask_for_less_or_for_a_larger_limit(
    service: Service, size: int, ways: list[tuple[str, str]]
) -> None:
    found = _bare(refusal(service, size), PLAN)["ways_out"]
    assert [(way["change"], way["command"]) for way in found] == ways


@pytest.mark.parametrize(("tasks", "used"), [(("t0", "t1", "t2"), 6), (("t0", "t2"), 10)])
def test_tasks_that_join_others_of_their_gang_do_not_count_those_twice(
    service: Service, tasks: tuple[str, ...], used: int
) -> None:
    live = service._now()
    pool = live.catalog.pools["main"].pool
    joining = JoiningGang("large-1", Gang("g", tasks=tuple(Task(name, Shape()) for name in tasks)))
    assert sum(live.planner(pool).held("main").values()) == 14
    assert sum(live.planner(pool, joining=joining).held("main").values()) == used


@pytest.mark.parametrize(("size", "what_if"), [(1, WhatIf(without=("less-1",))), (2, WhatIf(without=("large-1",)))])
def test_a_dry_run_shows_what_comes_of_a_way_out(service: Service, size: int, what_if: WhatIf) -> None:
    assert service.plan(gang("next", size))["verdict"] == "waiting"
    assert service.plan(replace(gang("next", size), what_if=what_if))["verdict"] == "placed"


def test_with_fewer_tasks_the_limit_holds_as_it_was_told(service: Service) -> None:
    found = service.plan(replace(gang("next", 5), what_if=WhatIf(tasks=("g=4",))))
    assert found["verdict"] == "waiting"
    assert "16 GPUs" in found["groups"][0]["refusal"]["message"]
