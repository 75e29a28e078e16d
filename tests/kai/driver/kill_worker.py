"""A service on a cluster that kills itself: `python -m tests.kai.driver.kill_worker FOLDER KUBECONFIG AFTER ROUNDS`.

It goes through rounds of workflows, each of which runs, waits, finishes, is canceled, retried or deleted. It kills
itself (SIGKILL) after so many actions of their state machines or writes to the cluster; with 0, it ends by itself. The
next one goes on where it was. A step may be repeated: a submission has a key, and a request that is out of date is not
carried out any more.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab.api import Api as LabApi
from lab.api import ApiError
from lab.kubeconfig import read_kubeconfig

from coterie.errors import Conflict, NotFound, Unavailable
from coterie.kube.api import Api, ApiResponse
from coterie.kube.errors import RequestDescription
from coterie.service.driver.executor import ActionExecutor
from coterie.service.service import Service
from coterie.service.settings import Submission
from tests.kai.driver.service_on_kai import settings
from tests.service.running_service import task, workflow

PAIR = {"g": [task("a", "run", "lead: true"), task("b", "run")]}
# Seven of eight GPUs are no whole node, so that only one workflow of a round has claims: in KAI, devices can stay taken
# after their pods are gone (docs/kai.md, P).
FOUR = {"g": [task(name, "run", "" if number else "lead: true") for number, name in enumerate("cdef")]}
PATIENCE_S = 240.0
_READS = ("get", "list", "watch")
Step = tuple[str, Callable[[], bool]]


class Fuse:
    """The end of this process after so many actions and writes, whoever makes them; never with 0."""

    def __init__(self, after: int) -> None:
        self._left, self._lock = after, threading.Lock()

    def burn(self) -> None:
        """Count one."""
        with self._lock:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def attach(self) -> None:
        """Count all actions of state machines, and all writes to the cluster, once they are carried out."""
        perform, attempt = ActionExecutor._do, Api.attempt

        def performed(executor: ActionExecutor, *given: Any) -> None:
            perform(executor, *given)
            self.burn()

        def written(
            api: Api,
            call: RequestDescription,
            params: Mapping[str, str | None] | None = None,
            body: object = None,
            *,
            limit_s: float | None = None,
        ) -> ApiResponse:
            found = attempt(api, call, params, body, limit_s=limit_s)
            if call.verb not in _READS and call.namespace:
                self.burn()
            return found

        ActionExecutor._do = performed  # type: ignore[assignment,method-assign]
        Api.attempt = written  # type: ignore[assignment,method-assign]


class Rounds:
    """The rounds of workflows, and how far they have come."""

    def __init__(self, service: Service, cluster: LabApi, file: Path) -> None:
        self._service, self._cluster, self._file = service, cluster, file
        self.done: list[str] = json.loads(file.read_text()) if file.exists() else []

    def run(self, rounds: int) -> None:
        """Take all steps that were not taken yet."""
        for number in range(rounds):
            for name, step in self._steps(number):
                if name not in self.done:
                    _until(step, lambda name=name: f"{name}\n{self._evidence()}")  # type: ignore[misc]
                    self.done.append(name)
                    self._keep()

    def _keep(self) -> None:
        """Keep the steps that were taken, all or none, since the kill may come at this moment."""
        draft = self._file.with_suffix(".draft")
        draft.write_text(json.dumps(self.done))
        draft.replace(self._file)

    def _steps(self, n: int) -> Iterator[Step]:
        run, wait, fail, gone = f"run{n}-1", f"wait{n}-1", f"fail{n}-1", f"gone{n}-1"
        yield f"submit {run}", lambda: self._submit(workflow(f"run{n}", PAIR, gpu=8, topology="[{key: rack}]"))
        yield f"{run} runs", lambda: self._status(run) == "RUNNING"
        yield f"submit {wait}", lambda: self._submit(workflow(f"wait{n}", FOUR, gpu=7))
        yield f"{wait} has pods", lambda: len(self._pods(wait)) == len(FOUR["g"])
        yield f"end {run}", lambda: self._ended(run, "COMPLETED")
        yield f"{wait} runs", lambda: self._status(wait) == "RUNNING"
        yield f"cancel {wait}", lambda: self._canceled(wait)
        yield f"submit {fail}", lambda: self._submit(workflow(f"fail{n}", PAIR, gpu=7))
        yield f"fail {fail}", lambda: self._ended(fail, "FAILED", code=1)
        yield f"retry {fail}", lambda: self._retried(fail)
        yield f"end {fail}", lambda: self._ended(fail, "COMPLETED")
        yield f"submit {gone}", lambda: self._submit(workflow(f"gone{n}", PAIR, gpu=1))
        yield f"{gone} runs", lambda: self._status(gone) == "RUNNING"
        yield f"delete {gone}", lambda: self._deleted(gone)

    def _evidence(self) -> str:
        """Return the unfinished workflows, why they wait, and all pods, for a step that does not come to its end."""
        found = [each["id"] for each in self._service.workflows()["items"] if not each["status"].startswith("COMP")]
        lines = [json.dumps([self._service.workflow(ident), self._service.why(ident)]) for ident in found]
        lines += [each.message for each in self._service._problems.all()]
        for kind in ("pods", "podgroups.scheduling.run.ai", "computedomains", "resourceclaims"):
            lines += [f"{kind} {json.dumps(each)}" for each in self._cluster.objects(kind, "default")]
        return "\n".join(lines)

    def _submit(self, submission: Submission) -> bool:
        name = submission.source.split(b"name: ")[1].split()[0].decode()
        self._service.submit(replace(submission, client_key=name))
        return True

    def _status(self, ident: str) -> str:
        return str(self._service.workflow(ident)["status"])

    def _pods(self, ident: str) -> list[dict[str, Any]]:
        return self._cluster.objects("pods", "default", f"coterie.dev/workflow={ident}")

    def _ended(self, ident: str, status: str, code: int = 0) -> bool:
        """End the pods of a workflow, and return whether it has finished."""
        notes = {"coterie.dev/lab-exit-code": str(code), "coterie.dev/lab-runs-for": "0s"}
        for pod in self._pods(ident) if not self._service.store.workflow(ident).finished else ():
            with suppress(ApiError):
                self._cluster.patch("pods", pod["metadata"]["name"], {"metadata": {"annotations": notes}}, "default")
        return self._service.store.workflow(ident).finished and self._status(ident) == status

    def _canceled(self, ident: str) -> bool:
        with suppress(Conflict):
            self._service.cancel(ident)
        return self._service.store.workflow(ident).finished

    def _retried(self, ident: str) -> bool:
        if self._status(ident) == "FAILED":
            with suppress(Conflict):
                self._service.retry(ident)
        return self._status(ident) == "RUNNING"

    def _deleted(self, ident: str) -> bool:
        with suppress(NotFound):
            self._service.delete(ident, force=True)
            return False
        return not self._pods(ident)


def _until(step: Callable[[], bool], words: Callable[[], str]) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        with suppress(Unavailable):
            if step():
                return
        if time.monotonic() > end:
            raise SystemExit(f"not within {PATIENCE_S:g} s: {words()}")
        time.sleep(0.05)


def main() -> None:
    """Go through the rounds; print the statuses of all workflows at their end."""
    folder, kubeconfig = Path(sys.argv[1]), Path(sys.argv[2])
    after, rounds = int(sys.argv[3]), int(sys.argv[4])
    os.environ["KUBECONFIG"] = str(kubeconfig)
    Fuse(after).attach()
    found = replace(settings(folder, nvlink=True), lease_s=1.0)
    with Service(found) as service:
        table = Rounds(service, LabApi(*read_kubeconfig(kubeconfig)), folder / "done.json")
        table.run(rounds)
        statuses = {each["id"]: each["status"] for each in service.workflows()["items"]}
    print(json.dumps(statuses))  # noqa: T201 - read by the test


if __name__ == "__main__":
    main()
