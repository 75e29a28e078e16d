"""A real `coterie serve` for fault tests: its workload, its client, and the invariants after every fault.

Tasks append a line to a ledger, so that a second run of one is visible, and wait for gates, which are files that a test
creates when tasks should end. Neither is on the disk or in the database that the test breaks.
"""

from __future__ import annotations

import json
import math
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from coterie.service.settings import Submission
from tests.cli.command import PROGRAM, Done, call, environment
from tests.eventually import PATIENCE_S, eventually
from tests.service.running_service import ServiceFolder, single, task, workflow

Json = dict[str, Any]

BLOCK = 1 << 12


@dataclass(frozen=True)
class ExpectedWorkflow:
    """A workflow, the status it ends with whatever happens meanwhile, and how often each of its tasks runs."""

    submission: Submission
    status: str
    runs: Mapping[str, int]

    @property
    def name(self) -> str:
        return self.submission.source.decode().split("name: ", 1)[1].split("\n", 1)[0]


@dataclass(frozen=True)
class FaultFolder:
    """A folder outside of all faults: configuration, ledger, gates and the logs of services."""

    folder: Path

    def __post_init__(self) -> None:
        ServiceFolder(self.folder).settings()

    @property
    def config(self) -> Path:
        return self.folder / "coterie.yaml"

    def open(self, gate: str) -> None:
        """Let tasks go on that wait for a gate."""
        (self.folder / gate).touch()

    def mark(self) -> str:
        """Return shell that writes down that a task runs."""
        return f'echo "$COTERIE_WORKFLOW $COTERIE_TASK $COTERIE_ATTEMPT" >> {self.folder}/ledger; '

    def until(self, gate: str) -> str:
        """Return shell that writes down that a task runs, and waits for a gate."""
        return f"{self.mark()}until [ -e {self.folder / gate} ]; do sleep 0.05; done; "

    def lines(self) -> list[str]:
        """Return what tasks have written down so far: workflow, task and attempt."""
        ledger = self.folder / "ledger"
        return ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else []

    def one(self, name: str, rest: str = "exit 0", *, gate: str = "") -> ExpectedWorkflow:
        """Return a workflow of one task, which completes."""
        begin = self.until(gate) if gate else self.mark()
        return ExpectedWorkflow(single(name, begin + rest, gpu=1), "COMPLETED", {"t": 1})

    def ten(self, mine: str = "") -> list[ExpectedWorkflow]:
        """Return ten workflows whose names begin like this.

        Some wait for the gate `meanwhile`, some for `after`, and one for room.
        """
        early, mark = self.until("meanwhile"), self.mark()
        gang = {"g": [task(f"w{rank}", early, "" if rank else "lead: true") for rank in range(4)]}
        found = [
            ExpectedWorkflow(
                workflow(f"{mine}gang", gang, 1, "[{key: rack}]"), "COMPLETED", {f"w{rank}": 1 for rank in range(4)}
            )
        ]
        for number in range(2):
            chain = {
                "one": [task("a", early + "mkdir {{output}}/said")],
                "two": [task("b", mark + "test -d {{input:0}}/said", "inputs: [{task: a}]")],
            }
            found.append(
                ExpectedWorkflow(workflow(f"{mine}chain{number}", chain, gpu=1), "COMPLETED", {"a": 1, "b": 1})
            )
            broken = {
                "one": [task("a", early + "exit 3")],
                "two": [task("b", mark + "true", "inputs: [{task: a}]")],
            }
            found.append(ExpectedWorkflow(workflow(f"{mine}broken{number}", broken, gpu=1), "FAILED", {"a": 1}))
            found.append(self.one(f"{mine}long{number}", gate="after"))
        again = {"g": [task("a", early + "test $COTERIE_ATTEMPT -ge 2", 'exitActions: {RESCHEDULE: "1"}')]}
        found.append(ExpectedWorkflow(workflow(f"{mine}again", again, gpu=1), "COMPLETED", {"a": 2}))
        found.append(self.one(f"{mine}short", gate="meanwhile"))
        # Others are stopped when the one that leads has ended, so it waits for them.
        met = f"until [ $(grep -c ^{mine}queued- {self.folder}/ledger) = 8 ]; do sleep 0.05; done"
        lead = task("w0", mark + met, "lead: true")
        everywhere = {"g": [lead, *(task(f"w{rank}", mark + "true") for rank in range(1, 8))]}
        found.append(
            ExpectedWorkflow(
                workflow(f"{mine}queued", everywhere, gpu=4), "COMPLETED", {f"w{rank}": 1 for rank in range(8)}
            )
        )
        return found

    def check(self, wanted: Sequence[ExpectedWorkflow], served: ServiceProcess) -> None:
        """Wait until all has ended, and hold it against what was wanted: nothing lost, nothing twice, nothing left."""
        eventually(lambda: served.get("/readyz").status_code == 200, served.health)
        names = {each.name for each in wanted}
        eventually(lambda: names <= {row["name"] for row in served.rows() if row["finished"]}, served.rows)
        rows = [row for row in served.rows() if row["name"] in names]
        assert {row["name"]: row["status"] for row in rows} == {each.name: each.status for each in wanted}
        assert len(rows) == len(wanted)
        lines = self.lines()
        assert max(Counter(lines).values()) == 1, f"an attempt ran twice: {Counter(lines).most_common(3)}"
        runs = Counter((line.split()[0].rpartition("-")[0], line.split()[1]) for line in lines)
        assert runs == {(each.name, name): count for each in wanted for name, count in each.runs.items()}
        eventually(lambda: served.health()["problems"] == [], served.health)
        eventually(lambda: served.get("/readyz").status_code == 200, served.health)
        eventually(lambda: not left(served.state), lambda: left(served.state))
        eventually(lambda: served.used() == [0], served.used)


@dataclass
class ServiceProcess:
    """A service in a process of its own, started as its users do."""

    url: str
    state: Path
    log: Path
    process: subprocess.Popen[str]
    client: httpx2.Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = httpx2.Client(base_url=self.url, timeout=PATIENCE_S)

    def get(self, path: str) -> httpx2.Response:
        return self.client.get(path)

    def submit(self, wanted: ExpectedWorkflow, key: str | None = None) -> httpx2.Response:
        """Submit a workflow; with a key, for the first time or again."""
        body = {"source": wanted.submission.source.decode()}
        return self.client.post("/api/v1/workflows", json=body, headers={"Idempotency-Key": key} if key else {})

    def submit_all(self, wanted: Sequence[ExpectedWorkflow]) -> None:
        for each in wanted:
            answer = self.submit(each)
            assert answer.status_code == 201, answer.text

    def rows(self) -> list[Json]:
        """Return all workflows, as soon as the service can answer: the fault may not quite be over for it."""
        answers: list[httpx2.Response] = []

        def answered() -> bool:
            answers[:] = [self.get("/api/v1/workflows?limit=1000")]
            return answers[0].status_code != 503

        eventually(answered, lambda: answers[0].text)
        assert answers[0].status_code == 200, answers[0].text
        found: list[Json] = answers[0].json()["items"]
        return found

    def submit_again(self, wanted: Sequence[ExpectedWorkflow]) -> None:
        """Submit workflows with their names as keys until all are taken: a fault that is over may still be felt."""
        for each in wanted:
            eventually(lambda each=each: self.submit(each, each.name).status_code in {200, 201}, self.said)  # type: ignore[misc]

    def health(self) -> Json:
        """Return what the service says of its health; one that cannot answer leads nothing and knows no holder."""
        answer = self.get("/api/v1/health")
        found: Json = answer.json()
        return found if answer.status_code == 200 else {"problems": [found["error"]], "leader": False, "holder": None}

    def used(self) -> list[int]:
        """Return the GPUs in use in each pool; none where the service cannot answer."""
        answer = self.get("/api/v1/pools")
        return [pool["gpus"]["used"] for pool in answer.json()["items"]] if answer.status_code == 200 else []

    def said(self) -> str:
        """Return what the problems of the moment say, and of what."""
        return "; ".join(
            f"{each.get('what', each.get('code'))}: {each['message']}" for each in self.health()["problems"]
        )

    def call(self, *arguments: str | Path) -> Done:
        """Run a command of `coterie` against it."""
        return call(*arguments, COTERIE_SERVER=self.url)

    def metric(self, name: str) -> float:
        lines = self.get("/metrics").text.splitlines()
        return next((float(line.split()[1]) for line in lines if line.startswith(f"{name} ")), math.nan)

    def logged(self) -> list[Json]:
        """Return what it has logged."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]


@contextmanager
def serving(
    hall: FaultFolder, state: Path, store: str | None = None, *, replicas: int = 1, log: Path | None = None
) -> Iterator[list[ServiceProcess]]:
    """Give services that run until the end; none may end before, nor log anything unexpected."""
    logs = [log or hall.folder / f"served-{number}.log" for number in range(replicas)]
    where = [] if store is None else ["--store", store]
    options = ["--config", str(hall.config), "--state", str(state), "--processes", "24", *where]
    command = [*PROGRAM, "serve", "--port", "0", *options]
    with ExitStack() as stack:
        started = [stack.enter_context(_started(command, each)) for each in logs]
        found = [
            ServiceProcess(_url(process, each), state, each, process)
            for process, each in zip(started, logs, strict=True)
        ]
        for served in found:
            stack.enter_context(served.client)
        yield found
        assert [process.poll() for process in started] == [None] * replicas, "a service ended by itself"
        for process in started:
            process.send_signal(signal.SIGTERM)
        for process in started:
            process.wait(PATIENCE_S)  # a second signal, at the very end of one that is ending, would be its end
    assert [process.returncode for process in started] == [0] * replicas
    for served in found:
        assert "Traceback" not in served.log.read_text(encoding="utf-8")
        assert [each for each in served.logged() if each["event"] == "unexpected"] == []


@contextmanager
def _started(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[str]]:
    with (
        log.open("ab") as said,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, env=environment(), text=True) as process,
    ):
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE_S)
            finally:
                process.kill()


def _url(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert url, log.read_text(encoding="utf-8")
    return url


def error_of(answer: httpx2.Response) -> Json:
    """Return what a service says that cannot do it now, in the one shape of all errors."""
    assert answer.status_code == 503, f"{answer.status_code} {answer.text}"
    assert set(answer.json()) == {"error"}, answer.text
    error: Json = answer.json()["error"]
    assert set(error) >= {"code", "message", "hint", "location", "errors"}
    assert error["code"] == "Unavailable"
    assert error["hint"]
    assert "retry-after" in answer.headers
    return error


def left(folder: Path) -> list[str]:
    """Return the processes whose environment speaks of a folder, but for services."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if str(folder / "tasks").encode() in entry.read_bytes():
                found.append((entry.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


class Disk:
    """A small file system of its own, which can be filled to the last byte and emptied again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self, leaving: int = 0) -> None:
        """Leave no room, but for so many blocks."""
        with self._ballast.open("ab", buffering=0) as ballast:
            for size in (1 << 20, BLOCK):
                with suppress(OSError):
                    while True:
                        ballast.write(b"x" * size)
            ballast.truncate(ballast.tell() - leaving * BLOCK)

    def clear(self) -> None:
        """Give back all room that `fill` took."""
        self._ballast.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, size: str = "12m") -> Iterator[Disk]:
    """Mount a small disk; skip, loudly, where that is not permitted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "coterie-test", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(
            f"NO SMALL DISK: mounting is not permitted here, so a full one is NOT TESTED: {done.stderr.strip()}"
        )
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S607 - wherever it is
