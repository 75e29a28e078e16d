"""Reasons of gangs that wait in KAI's queue: the engine's answer for the live cluster, and KAI's own words."""

from __future__ import annotations

from pathlib import Path

from lab import Lab
from tests.kai.service_on_kai import add_nodes, serving, settings
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
        assert here.service.pool("gb200")["gpus"]["used"] == 24

        here.service.cancel(first)
        here.running(second, 2)
        assert here.service.why(second)["groups"] == []
        here.service.cancel(second)
        here.finished(second)
        assert here.left() == {}
