"""Reasons of gangs that wait in KAI's queue: the engine's answer for the live cluster, and KAI's own words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from coterie.kube.api import Api, ApiResponse, failure_of
from coterie.kube.errors import RequestDescription
from lab import Lab
from tests.kai.driver.service_on_kai import CONFIG, OWN, RACK, KaiService, add_nodes, serving, settings
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
        lab.wait(lambda: here.service.pool("gb200")["gpus"]["used"] == 24, 60, "its pods count once")

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


def _cause(here: KaiService, ident: str) -> tuple[str, str]:
    groups = here.service.why(ident)["groups"]
    cause = groups[0].get("cause") if groups else None
    return (cause["kind"], cause["message"]) if cause else ("", "")


def test_a_gang_with_a_pod_that_cannot_be_created_waits_for_its_members(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_nodes(lab)
    attempt, shut = Api.attempt, True

    def failing(
        api: Api,
        call: RequestDescription,
        params: Mapping[str, str | None] | None = None,
        body: object = None,
        *,
        limit_s: float | None = None,
    ) -> ApiResponse:
        if shut and call.verb == "post" and call.kind.name == "Pod" and "-b-" in call.name:
            raise failure_of(call, 500, {}, b"")
        return attempt(api, call, params, body, limit_s=limit_s)

    monkeypatch.setattr(Api, "attempt", failing)
    with serving(lab, settings(tmp_path)) as here:
        ident = here.submit(workflow("train", _gang("a", "b"), gpu=8))
        lab.wait(lambda: _cause(here, ident)[0] == "Members", 60, "it waits for its members")
        shut = False
        here.running(ident, 2)
        here.service.cancel(ident)
        here.finished(ident)
        assert here.left() == {}


def test_tasks_on_nodes_wait_for_their_containers_and_for_an_image_that_cannot_be_pulled(
    lab: Lab, tmp_path: Path
) -> None:
    add_nodes(lab)
    with serving(lab, settings(tmp_path)) as here:
        # Nobody plays the kubelets.
        lab.programs["kwok"].stop()
        try:
            ident = here.submit(workflow("train", _gang("a", "b"), gpu=8))
            words = "2 tasks on a node: images are pulled"
            lab.wait(lambda: _cause(here, ident)[1].startswith(words), 60, "both are on nodes")
            assert _cause(here, ident)[0] == "Start"
            (pod,) = here.pods(ident, "b")
            waiting = {"reason": "ErrImagePull", "message": "example.invalid/none:1: no such host"}
            status = {"name": "task", "state": {"waiting": waiting}, "ready": False, "restartCount": 0}
            changed = {"status": {"containerStatuses": [{**status, "image": "", "imageID": ""}]}}
            lab.api.patch("pods", pod["metadata"]["name"], changed, "default", status=True)
            lab.wait(lambda: _cause(here, ident)[0] == "Image", 60, "the image is the reason")
            node = here.tasks(ident)["b"]["node"]
            assert _cause(here, ident)[1] == f"node {node} cannot pull an image: {waiting['message']}"

            def missing() -> list[str]:
                return [one["task"] for one in here.events(ident) if one["kind"] == "ImageMissing"]

            lab.wait(lambda: missing() == ["b"], 60, "an event says so")
        finally:
            lab.programs["kwok"].start()
        here.running(ident, 2)
        assert here.service.why(ident)["groups"] == []
        here.service.cancel(ident)
        here.finished(ident)
        assert here.left() == {}


def test_a_gang_whose_channels_stay_taken_waits_for_claims_and_runs_when_kai_is_restarted(
    lab: Lab, tmp_path: Path
) -> None:
    add_nodes(lab)
    scheduler, binder = lab.programs["kai-scheduler"], lab.programs["kai-binder"]
    with serving(lab, settings(tmp_path, nvlink=True)) as here:
        binder.stop()
        try:
            first = here.submit(workflow("first", _gang("a", "b", "c", "d"), gpu=8))
            lab.wait(lambda: len(lab.objects("bindrequests")) == 4, 60, "KAI has chosen nodes")
            said = scheduler.log.stat().st_size
            lab.wait(lambda: scheduler.log.read_bytes()[said:].count(b"End scheduling") > 2, 30, "KAI goes on")
        finally:
            binder.start()
        here.running(first, 4)
        here.service.cancel(first)
        here.finished(first)
        second = here.submit(workflow("second", _gang("a", "b"), gpu=8, topology="[{key: rack}]"))
        lab.wait(lambda: "P: channels that stay taken" in _cause(here, second)[1], 60, "the claims are the reason")
        assert _cause(here, second)[0] == "Claims"
        scheduler.stop()
        scheduler.start()
        here.running(second, 2)
        here.service.cancel(second)
        here.finished(second)
        assert lab.objects("computedomains", selector=OWN) == []
