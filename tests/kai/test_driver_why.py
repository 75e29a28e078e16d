"""Reasons of gangs that wait in KAI's queue: the engine's answer for the live cluster, and KAI's own words."""

from __future__ import annotations

from pathlib import Path

from lab import Lab
from tests.kai.service_on_kai import CONFIG, RACK, add_nodes, serving, settings
from tests.service.running_service import task, workflow


def _gang(*names: str) -> dict[str, list[str]]:
    return {"g": [task(name, "run", "" if number else "lead: true") for number, name in enumerate(names)]}


def test_a_gang_that_waits_has_the_engines_reason_and_kais_words_and_runs_once_there_is_room(
    lab: Lab, tmp_path: Path
) -> None:
    add_nodes(lab)
    with serving(lab, settings(tmp_path)) as here:
        first = here.submit(workflow("first", _gang("a", "b", "c"), gpu=8))
        here.running(first, 3)
        second = here.submit(workflow("second", _gang("d", "e"), gpu=8, topology="[{key: rack}]"))

        def told() -> bool:
            (group,) = here.service.why(second)["groups"]
            refusal, waiting = group["refusal"], group["waiting"]
            return bool(refusal and waiting and refusal["holders"] and waiting["message"].startswith("KAI: "))

        lab.wait(told, 60, "the reasons are known")
        (group,) = here.service.why(second)["groups"]
        assert group["verdict"] == "waiting"
        assert group["refusal"]["reason"] in {"NoDomainFits", "NoCapacity"}
        assert {each["owner"] for each in group["refusal"]["holders"]} == {first}
        assert group["waiting"]["reason"] == "SchedulerRefused"
        assert group["cause"]["kind"] == "DoesNotFit"
        assert here.service.pool("gb200")["gpus"]["used"] == 24

        here.service.cancel(first)
        here.running(second, 2)
        assert here.service.why(second)["groups"] == []
        here.service.cancel(second)
        here.finished(second)
        assert here.left() == {}


def test_a_node_relabelled_under_a_running_gang_violates_its_constraint_and_an_event_says_so(
    lab: Lab, tmp_path: Path
) -> None:
    add_nodes(lab)
    with serving(lab, settings(tmp_path)) as here:
        ident = here.submit(workflow("train", _gang("a", "b"), gpu=8, topology="[{key: rack}]"))
        here.running(ident, 2)
        assert here.service.placement(ident)["summary"]["violated"] == 0
        lab.wait(lambda: here.service.pool("gb200")["gpus"]["free"] == 16, 60, "its pods count once")
        assert here.service.pool("gb200")["gpus"]["used"] == 16

        node = here.tasks(ident)["b"]["node"]
        lab.api.patch("nodes", node, {"metadata": {"labels": {RACK: "r9"}}})
        lab.wait(lambda: here.service.placement(ident)["summary"]["violated"] == 1, 60, "the audit sees it")
        lab.wait(lambda: "Violated" in [each["kind"] for each in here.events(ident)], 60, "an event says so")
        (event,) = [each for each in here.events(ident) if each["kind"] == "Violated"]
        assert "rack is no longer kept together" in event["message"]
        assert here.status(ident) == "RUNNING"
        here.service.cancel(ident)
        here.finished(ident)
        assert here.left() == {}


def test_a_gang_over_the_limit_of_its_pool_waits_for_quota(lab: Lab, tmp_path: Path) -> None:
    add_nodes(lab)
    config = CONFIG.replace("guarantee: 8, limit: 64", "guarantee: 8, limit: 16")
    with serving(lab, settings(tmp_path, config=config)) as here:
        first = here.submit(workflow("first", _gang("a", "b"), gpu=8))
        here.running(first, 2)
        second = here.submit(workflow("second", _gang("c"), gpu=8))

        def cause() -> str:
            groups = here.service.why(second)["groups"]
            return str(groups[0]["cause"]["kind"]) if groups else ""

        lab.wait(lambda: cause() == "Quota", 60, "the quota is the reason")
        here.service.cancel(first)
        here.running(second, 1)
        here.service.cancel(second)
        here.finished(second)
        assert here.left() == {}
