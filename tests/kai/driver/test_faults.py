"""Faults of a real cluster under a service: refused, cut and slow calls, restarted parts, quotas and admission.

NVIDIA's controller is away for some seconds. For a minute: COTERIE_OUTAGE=60 pytest -q tests/kai/driver/test_faults.py
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from coterie.backends.kai.driver import removal
from coterie.backends.kai.driver.objects import seconds
from coterie.errors import Unavailable
from coterie.kube import watch
from coterie.kube.api import Api, ApiResponse, failure_of
from coterie.kube.errors import RequestDescription
from coterie.kube.retry import backoff
from coterie.service.pools import live_clusters
from coterie.service.service import Service
from lab import Lab
from tests.kai.driver.service_on_kai import CLUSTER, OWN, RACK, KaiService, add_nodes, serving, settings
from tests.operator.forwarder import Forwarder, server_port
from tests.seed import SEED
from tests.service.running_service import task, workflow

PAIR = {"g": [task("a", "run", "lead: true"), task("b", "run")]}
TOGETHER = "[{key: rack}]"
LIMIT_S = 90.0
OUTAGE_S = float(os.environ.get("COTERIE_OUTAGE", "6"))
CODES = (409, 410, 429, 500, 503)
Attempt = Callable[..., ApiResponse]


class FaultyCalls:
    """A share of all calls of clients that fails, before or after the cluster has carried it out."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt, self._dice, self._lock = attempt, random.Random(SEED), threading.Lock()  # noqa: S311 - a test
        self.injected: Counter[int] = Counter()
        self.active = True

    def method(self) -> Attempt:
        """Return the method that clients have instead of their own."""

        def attempt(
            api: Api,
            call: RequestDescription,
            params: Mapping[str, str | None] | None = None,
            body: object = None,
            *,
            limit_s: float | None = None,
        ) -> ApiResponse:
            return self._call(api, call, params, body, limit_s)

        return attempt

    def _call(
        self,
        api: Api,
        call: RequestDescription,
        params: Mapping[str, str | None] | None,
        body: object,
        limit_s: float | None,
    ) -> ApiResponse:
        with self._lock:
            fails = self.active and self._dice.random() < 0.15
            code, late = self._dice.choice(CODES), self._dice.random() < 0.5
        if fails and code == 410 and call.verb != "list":
            code = 500
        done = None if fails and not late else self._attempt(api, call, params, body, limit_s=limit_s)
        if done is None or fails:
            self.injected[code] += 1
            raise failure_of(call, code, {}, b"")
        return done


def test_calls_that_fail_with_any_code_lose_nothing_and_leave_nothing(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A rack for each workflow: in KAI, channels of slowly bound pods stay taken (docs/kai.md, P).
    third = "".join(line + "\n" for line in CLUSTER.splitlines() if "r2" in line).replace("r2", "r3")
    add_nodes(lab, CLUSTER + third)
    faulty = FaultyCalls(Api.attempt)
    with serving(lab, settings(tmp_path, nvlink=True)) as here:
        monkeypatch.setattr(Api, "attempt", faulty.method())
        seen: dict[str, set[str]] = {}
        for number in range(3):
            ident = here.submit(workflow(f"w{number}", PAIR, gpu=8, topology=TOGETHER))
            here.running(ident, 2)
            for pod in here.pods(ident):
                seen.setdefault(pod["metadata"]["name"], set()).add(pod["metadata"]["uid"])
            here.end(ident, "a", code=number % 2)
            assert here.finished(ident) == ("FAILED" if number % 2 else "COMPLETED")
            assert {one["attempt"] for one in here.tasks(ident).values()} == {1}
        faulty.active = False
        lab.wait(lambda: here.left() == {}, LIMIT_S, "nothing is left")
    with capsys.disabled():
        print(f"\nfaults injected: {sum(faulty.injected.values())} ({dict(faulty.injected)}), objects left: 0")  # noqa: T201 - counts
    assert len(faulty.injected) > 2
    assert all(len(uids) == 1 for uids in seen.values())


class CutResponse:
    """The response of a watch that breaks off after some parts of it."""

    def __init__(self, response: httpx2.Response, parts: int) -> None:
        self._response, self._parts = response, parts

    def __getattr__(self, name: str) -> object:
        return getattr(self._response, name)

    def iter_bytes(self) -> Iterator[bytes]:
        """Yield the first parts, and fail as a connection does that was cut."""
        for part, _ in zip(self._response.iter_bytes(), range(self._parts), strict=False):
            yield part
        raise httpx2.ReadError("the connection was cut")


class CutWatches:
    """Watches of all clients that break off again and again, or begin with a version that is gone."""

    def __init__(self) -> None:
        self._dice, self._stream = random.Random(SEED), Api.stream  # noqa: S311 - a test
        self.count: Counter[str] = Counter()

    def method(self) -> Callable[..., AbstractContextManager[Any]]:
        """Return the method that clients have instead of their own."""

        @contextmanager
        def stream(api: Api, call: RequestDescription, *given: Any, **named: Any) -> Iterator[Any]:
            if self._dice.random() < 0.2:
                self.count["gone"] += 1
                raise failure_of(call, 410, {}, b"")
            with self._stream(api, call, *given, **named) as response:
                self.count["cut"] += 1
                yield CutResponse(response, self._dice.randint(1, 3))

        return stream


def test_watches_that_are_cut_again_and_again_miss_nothing(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_nodes(lab)
    watches = CutWatches()
    monkeypatch.setattr(Api, "stream", watches.method())
    with serving(lab, settings(tmp_path)) as here:
        idents = [here.submit(workflow(f"w{number}", PAIR, gpu=8, topology=TOGETHER)) for number in range(4)]
        for number, ident in enumerate(idents):
            here.running(ident, 2)
            here.end(ident, "a", code=number % 2)
            assert here.finished(ident) == ("FAILED" if number % 2 else "COMPLETED")
            assert {one["attempt"] for one in here.tasks(ident).values()} == {1}
        lab.wait(lambda: here.left() == {}, LIMIT_S, "nothing is left")
    with capsys.disabled():
        print(f"\nwatches cut: {watches.count['cut']}, begun too late: {watches.count['gone']}, objects left: 0")  # noqa: T201 - counts
    assert watches.count["cut"] > 10


CLUSTERS = f"""
backends:
  lab: {{scheduler: kai, context: coterie-lab, namespace: default}}
  dead: {{scheduler: kai, context: dead, namespace: default}}
  slow: {{scheduler: kai, context: slow, namespace: slow}}
pools:
  lab: {{backend: lab, topology_keys: [{{key: rack, label: {RACK}}}]}}
  dead: {{backend: dead, topology_keys: [{{key: rack, label: {RACK}}}]}}
  slow: {{backend: slow, topology_keys: [{{key: rack, label: {RACK}}}]}}
"""


def _several(lab: Lab, folder: Path, slow: Path) -> str:
    """Return kubeconfig files with the contexts of three clusters, one of which nobody answers for."""
    found = yaml.safe_load(slow.read_text())
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    (cluster,), (user,) = found["clusters"], found["users"]
    dead = {**cluster["cluster"], "server": f"https://127.0.0.1:{port}"}
    found["clusters"] = [{"name": "slow", "cluster": cluster["cluster"]}, {"name": "dead", "cluster": dead}]
    names = ("slow", "dead")
    found["contexts"] = [{"name": name, "context": {"cluster": name, "user": user["name"]}} for name in names]
    file = folder / "others"
    file.write_text(yaml.safe_dump(found))
    return f"{lab.kubeconfig}{os.pathsep}{file}"


def test_of_several_clusters_those_that_do_not_answer_delay_nobody_and_are_shown(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Calls to a cluster that does not answer are repeated after up to half a minute, which nobody needs to wait here.
    monkeypatch.setattr(live_clusters, "_LONGEST_PAUSE_S", 2.0)
    monkeypatch.setattr(watch, "backoff", lambda failures, first_s, _: backoff(failures, first_s, 2.0))
    add_nodes(lab)
    lab.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "slow"}})
    found = settings(tmp_path, config=CLUSTERS)
    with Forwarder(server_port(lab)) as way:
        monkeypatch.setenv("KUBECONFIG", _several(lab, tmp_path, way.kubeconfig(lab, tmp_path)))
        with Service(found) as service:
            here = KaiService(service, lab)

            def unreachable() -> dict[str, str]:
                return {each["name"]: each["unreachable"] for each in service.pools() if each["unreachable"]}

            def troubled() -> set[str]:
                found = {each["what"] for each in service.health()["problems"]}
                return {each for each in found if each.startswith("backend ")}

            lab.wait(lambda: unreachable().keys() == {"dead"}, LIMIT_S, "two clusters are known")
            lab.wait(lambda: troubled() == {"backend dead"}, LIMIT_S, "the dead one is told")
            with pytest.raises(Unavailable, match='the cluster of backend "dead" is not known: '):
                here.submit(replace(workflow("w", PAIR, gpu=8), pool="dead"))
            running = here.submit(replace(workflow("running", PAIR, gpu=8, topology=TOGETHER), pool="slow"))
            here.running(running, 2)

            way.cut()
            lab.wait(lambda: unreachable().keys() == {"dead", "slow"}, LIMIT_S, "the pool of the silent one says so")
            lab.wait(lambda: troubled() == {"backend dead", "backend slow"}, LIMIT_S, "so does the health")
            waiting = here.submit(replace(workflow("waiting", PAIR, gpu=8, topology=TOGETHER), pool="slow"))

            def cause() -> str:
                return " ".join(str(group.get("cause")) for group in service.why(waiting)["groups"])

            lab.wait(lambda: "Unreachable" in cause(), LIMIT_S, "why says so")
            assert 'the cluster of backend "slow" cannot be reached: ' in cause()
            # The one that answers starts, runs and ends work meanwhile.
            for code, status in ((0, "COMPLETED"), (3, "FAILED")):
                ident = here.submit(replace(workflow("other", PAIR, gpu=8, topology=TOGETHER), pool="lab"))
                here.running(ident, 2)
                here.end(ident, "a", code)
                assert here.finished(ident) == status
            assert unreachable().keys() == {"dead", "slow"}
            assert here.status(running) == "RUNNING"

            way.restore()
            lab.wait(lambda: unreachable().keys() == {"dead"}, 3 * LIMIT_S, "the slow one is back")
            lab.wait(lambda: troubled() == {"backend dead"}, 3 * LIMIT_S, "so is its driver")
            here.running(waiting, 2)
            assert {one["attempt"] for one in here.tasks(running).values()} == {1}
            for ident in (running, waiting):
                service.cancel(ident)
                assert here.finished(ident) == "FAILED_CANCELED"
            lab.wait(lambda: here.left() == {}, LIMIT_S, "nothing is left")


def test_clean_up_goes_on_past_a_kind_that_cannot_be_deleted_and_tries_it_again(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_nodes(lab)
    attempt, shut = Api.attempt, True

    def refusing(
        api: Api,
        call: RequestDescription,
        params: Mapping[str, str | None] | None = None,
        body: object = None,
        *,
        limit_s: float | None = None,
    ) -> ApiResponse:
        if shut and call.verb == "delete" and call.kind.name == "ComputeDomain":
            raise failure_of(call, 403, {}, b"")
        return attempt(api, call, params, body, limit_s=limit_s)

    with serving(lab, settings(tmp_path, nvlink=True)) as here:
        ident = here.submit(workflow("train", PAIR, gpu=8, topology=TOGETHER))
        here.running(ident, 2)
        monkeypatch.setattr(Api, "attempt", refusing)
        here.service.cancel(ident)
        lab.wait(lambda: set(here.left()) == {"computedomains"}, LIMIT_S, "all other kinds are gone")
        _told(here, "may not delete")
        assert not here.service.store.workflow(ident).finished
        shut = False
        assert here.finished(ident) == "FAILED_CANCELED"
        assert here.left() == {}


def test_a_restarted_api_server_and_kai_lose_nothing(lab: Lab, tmp_path: Path) -> None:
    add_nodes(lab)
    with serving(lab, settings(tmp_path)) as here:
        running = here.submit(workflow("running", PAIR, gpu=8, topology=TOGETHER))
        here.running(running, 2)
        uids = {pod["metadata"]["uid"] for pod in here.pods(running)}
        server, scheduler, binder = (lab.programs[name] for name in ("kube-apiserver", "kai-scheduler", "kai-binder"))
        server.stop()
        here.service.cancel(here.submit(workflow("canceled", PAIR, gpu=8, topology=TOGETHER)))
        pending = here.submit(workflow("pending", PAIR, gpu=8, topology=TOGETHER))
        _told(here, "cannot be reached")
        server.start()
        # KAI comes back after the API server, as after the failure of a whole control plane.
        scheduler.stop()
        binder.stop()
        lab.wait(lambda: _answers(lab), LIMIT_S, "the API server is back")
        scheduler.start()
        binder.start()
        here.running(pending, 2)
        assert {pod["metadata"]["uid"] for pod in here.pods(running)} == uids
        for ident in (running, pending):
            here.end(ident, "a")
            assert here.finished(ident) == "COMPLETED"
        lab.wait(lambda: here.left() == {}, LIMIT_S, "nothing is left")
        lab.wait(lambda: not here.problems(), LIMIT_S, "no problem is left")


def _answers(lab: Lab) -> bool:
    try:
        return bool(lab.objects("nodes"))
    except Exception:  # noqa: BLE001 - whatever it is, the server is not back
        return False


def _told(here: KaiService, words: str) -> None:
    here.lab.wait(lambda: words in here.problems(), LIMIT_S, f"{words!r} is told")


def test_without_its_controller_a_compute_domain_is_stuck_and_goes_when_that_is_back(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "STUCK_S", min(removal.STUCK_S, OUTAGE_S / 2))
    add_nodes(lab)
    with serving(lab, settings(tmp_path, nvlink=True)) as here:
        ident = here.submit(workflow("train", PAIR, gpu=8, topology=TOGETHER))
        here.running(ident, 2)
        controller = lab.programs["compute-domain-controller"]
        controller.stop()
        try:
            here.service.cancel(ident)
            assert here.finished(ident) == "FAILED_CANCELED"
            _told(here, "has been stuck for")
            assert "resource.nvidia.com/computeDomain" in here.problems()
            # Another gang waits for its claims until the controller is back.
            waiting = here.submit(workflow("waiting", PAIR, gpu=8, topology=TOGETHER))
            lab.wait(lambda: len(here.pods(waiting)) == 2, LIMIT_S, "its pods are there")
            lab.wait(lambda: _deleted_for_s(lab) >= OUTAGE_S, OUTAGE_S + LIMIT_S, "it is stuck for all this time")
            assert "has been stuck for" in here.problems()
            assert here.status(waiting) != "RUNNING"
        finally:
            controller.start()
        here.running(waiting, 2)
        lab.wait(lambda: len(lab.objects("computedomains", selector=OWN)) == 1, LIMIT_S, "the stuck one is gone")
        here.service.cancel(waiting)
        here.finished(waiting)
        lab.wait(lambda: here.left() == {}, LIMIT_S, "nothing is left")


def _deleted_for_s(lab: Lab) -> float:
    """Return the seconds since the deletion of a ComputeDomain that is still there."""
    found = [one["metadata"].get("deletionTimestamp") for one in lab.objects("computedomains", selector=OWN)]
    return max((time.time() - (seconds(at) or time.time()) for at in found), default=0.0)


def test_admission_that_refuses_one_pod_of_a_gang_fails_it_with_its_words(lab: Lab, tmp_path: Path) -> None:
    add_nodes(lab)
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-b"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ]
            },
            "validations": [
                {
                    "expression": "!('coterie.dev/task' in object.metadata.labels) || "
                    "object.metadata.labels['coterie.dev/task'] != 'b'",
                    "message": "task b is not welcome here",
                }
            ],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-b"},
        "spec": {"policyName": "no-b", "validationActions": ["Deny"]},
    }
    with serving(lab, settings(tmp_path, nvlink=True)) as here:
        lab.apply([policy, binding])
        try:
            lab.wait(lambda: _refuses(lab), LIMIT_S, "the policy is in force")
            ident = here.submit(workflow("train", PAIR, gpu=8, topology=TOGETHER))
            assert here.finished(ident) == "FAILED_BACKEND_ERROR"
            assert "task b is not welcome here" in here.tasks(ident)["a"]["message"]
            lab.wait(lambda: here.left() == {}, LIMIT_S, "nothing is left")
        finally:
            lab.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "no-b")


def _refuses(lab: Lab) -> bool:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "probe-", "namespace": "default", "labels": {"coterie.dev/task": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    try:
        made = lab.api.create(pod)
    except Exception as error:  # noqa: BLE001 - only its words matter
        return "not welcome" in str(error)
    lab.api.delete("pods", made["metadata"]["name"], "default", grace=0)
    return False
