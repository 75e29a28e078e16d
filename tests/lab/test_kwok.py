"""The start and end of pods in the lab."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from lab import EXIT_CODE, RUNS_FOR, Lab, nodes
from tests.lab.gangs import snapshot

NODE = "nodes: [{name: n1, gpu: 8}]"


def _bound(name: str, **annotations: str) -> dict[str, Any]:
    named = {"runs_for": RUNS_FOR, "exit_code": EXIT_CODE}
    noted = {named[key]: value for key, value in annotations.items()}
    containers = [{"name": "main", "image": "work"}, {"name": "side", "image": "work"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": noted},
        "spec": {"nodeName": "n1", "restartPolicy": "Never", "containers": containers},
    }


def test_pods_end_after_their_time_with_their_exit_code(lab: Lab) -> None:
    nodes.add(lab, snapshot(NODE))
    began = time.monotonic()
    for body in (
        _bound("for-ever"),
        _bound("fails", runs_for="1500ms", exit_code="3"),
        _bound("succeeds", runs_for="1s"),
        _bound("at-once", runs_for="0s", exit_code="137"),
    ):
        lab.api.create(body)

    def ended(name: str) -> dict[str, Any]:
        pod = lab.get("pod", name) or {}
        return pod if pod["status"]["phase"] in {"Succeeded", "Failed"} else {}

    for name, phase, code in (("at-once", "Failed", 137), ("succeeds", "Succeeded", 0), ("fails", "Failed", 3)):
        pod = lab.wait(partial(ended, name), what=f"{name} ends")
        assert pod["status"]["phase"] == phase
        states = [status["state"] for status in pod["status"]["containerStatuses"]]
        assert [state["terminated"]["exitCode"] for state in states] == [code, code]
        assert all("running" not in state for state in states)
        ready = [condition for condition in pod["status"]["conditions"] if condition["type"] == "Ready"]
        assert [condition["status"] for condition in ready] == ["False"]
    assert time.monotonic() - began >= 1.5
    lab.wait(lambda: (lab.get("pod", "for-ever") or {})["status"]["phase"] == "Running", what="the first one runs")


def test_a_deleted_pod_goes(lab: Lab) -> None:
    nodes.add(lab, snapshot(NODE))
    lab.api.create(_bound("victim"))
    lab.wait(lambda: (lab.get("pod", "victim") or {}).get("status", {}).get("phase") == "Running")
    lab.api.delete("pod", "victim")
    lab.wait(lambda: lab.get("pod", "victim") is None, what="the pod goes")
