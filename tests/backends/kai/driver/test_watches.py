"""Watched pods, PodGroups and nodes: an update that changes nothing of what the driver reads wakes nobody."""

from __future__ import annotations

import threading
from typing import Any

import httpx2

from coterie.backends.kai.driver.observation.watches import BackendWatches
from tests.eventually import PATIENCE_S, eventually
from tests.kube.faulty_transport import Stream, api, event, page, thing

Json = dict[str, Any]


class CountedEvent(threading.Event):
    """An event that counts how often it is set."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def set(self) -> None:
        """Count, and set it."""
        self.count += 1
        super().set()


def node(version: int, heartbeat: str, rack: str = "r1") -> Json:
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat}
    found = thing("n1", version, status={"conditions": [condition], "allocatable": {"cpu": "1"}})
    found["metadata"]["labels"] = {"rack": rack}
    return found


def pod(version: int, probed: str, phase: str = "Pending") -> Json:
    conditions = [{"type": "Ready", "status": "False", "lastProbeTime": probed}]
    found = thing("p1", version, namespace="default", spec={}, status={"phase": phase, "conditions": conditions})
    found["metadata"]["managedFields"] = [{"manager": f"kubelet-{version}"}]
    return found


def test_heartbeats_wake_nobody_and_make_no_new_picture_of_the_nodes() -> None:
    gate, later, over = threading.Event(), threading.Event(), threading.Event()
    beats = {
        "nodes": [event("MODIFIED", node(n, f"2026-01-01T00:00:{n:02}Z")) for n in range(2, 20)],
        "pods": [event("MODIFIED", pod(n, f"2026-01-01T00:00:{n:02}Z")) for n in range(2, 20)],
    }
    changes = {"nodes": event("MODIFIED", node(20, "", "r2")), "pods": event("MODIFIED", pod(20, "", "Running"))}

    def chunks(kind: str) -> Any:
        assert gate.wait(PATIENCE_S)
        yield from beats.get(kind, ())
        assert later.wait(PATIENCE_S)
        if kind in changes:
            yield changes[kind]
        over.wait(PATIENCE_S)

    def server(request: httpx2.Request) -> httpx2.Response:
        kind = request.url.path.rsplit("/", 1)[1]
        if "watch" in request.url.params:
            return httpx2.Response(200, stream=Stream(chunks(kind)))
        return page({"nodes": [node(1, "")], "pods": [pod(1, "")]}.get(kind, []))

    wake = CountedEvent()
    with api(server) as cluster:
        watches = BackendWatches(cluster, "default", "s1", wake)
        try:
            known = [watches._watched[number] for number in (1, 2)]
            first, awoken = watches.cluster(), wake.count
            watches.take_changed_pods()
            gate.set()
            eventually(lambda: all(_version(each) == "19" for each in known))
            assert watches.cluster() is first
            assert watches.take_changed_pods() == {}
            assert wake.count == awoken

            later.set()
            eventually(lambda: watches.labels("n1") == {"rack": "r2"})
            eventually(lambda: wake.count == awoken + 1)
            assert watches.cluster() is not first
            assert watches.take_changed_pods() == {"p1": None}
        finally:
            over.set()
            watches.close()


def test_a_pod_that_is_gone_has_the_state_of_its_deletion() -> None:
    gate, over = threading.Event(), threading.Event()
    gone = pod(2, "")
    gone["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}

    def chunks(kind: str) -> Any:
        assert gate.wait(PATIENCE_S)
        if kind == "pods":
            yield event("DELETED", gone)
        over.wait(PATIENCE_S)

    def server(request: httpx2.Request) -> httpx2.Response:
        kind = request.url.path.rsplit("/", 1)[1]
        if "watch" in request.url.params:
            return httpx2.Response(200, stream=Stream(chunks(kind)))
        return page([pod(1, "")] if kind == "pods" else [])

    with api(server) as cluster:
        watches = BackendWatches(cluster, "default", "s1", threading.Event())
        try:
            watches.take_changed_pods()
            gate.set()
            eventually(lambda: watches.pod("p1") is None)
            last = watches.take_changed_pods()["p1"]
            assert last is not None
            assert last.metadata.deletion_timestamp == "2026-01-01T00:00:30Z"
        finally:
            over.set()
            watches.close()


def _version(watch: Any) -> str:
    (entry,) = watch.entries().values()
    return str(entry.meta.resource_version)
