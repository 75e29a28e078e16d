"""Real faults (disk full, database locked or away for ten seconds) are reported and survived without loss."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.command import spawn
from tests.eventually import PATIENCE_S, eventually
from tests.service.faults import FaultFolder, ServiceProcess, error_of, serving, small_disk
from tests.store.postgres_server import Postgres

pytestmark = pytest.mark.slow("takes databases and disks away for seconds, and waits until the service recovers")

AWAY_S = 10.0


def tell_for(seconds: float, served: ServiceProcess) -> list[str]:
    """Ask a service whose database is away for so long, and until readiness tells it; return what it said.

    The database does not come back meanwhile, so that every answer is one that did not wait for it.
    """
    begun = time.monotonic()
    said: list[str] = []
    ready = True
    while time.monotonic() < begun + seconds or ready:
        for path in ("/readyz", "/api/v1/workflows", "/api/v1/health", "/healthz"):
            answer = served.get(path)
            if path == "/healthz":
                assert answer.status_code == 200
            elif path == "/readyz":
                ready = answer.status_code == 200
            else:
                said.append(error_of(answer)["message"])
            threading.Event().wait(0.05)
        assert time.monotonic() < begun + seconds + PATIENCE_S
    return said


@contextmanager
def frozen(postgres: Postgres) -> Iterator[None]:
    """Halt a server and all of its processes, each of which is in a session of its own."""
    pids = [postgres.pid]
    os.kill(postgres.pid, signal.SIGSTOP)
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if entry.read_text().rpartition(")")[2].split()[1] == str(postgres.pid):
                pids.append(int(entry.parent.name))
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in reversed(pids):
            os.kill(pid, signal.SIGCONT)


@pytest.fixture(scope="module")
def services(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ServiceProcess]]:
    """Give one service with a database of its own, and two replicas that share another on the same server."""
    alone, both = (FaultFolder(tmp_path_factory.mktemp("services") / name) for name in ("alone", "both"))
    with (
        serving(alone, alone.folder / "state", postgres.new_database()) as one,
        serving(both, both.folder / "state", postgres.new_database(), replicas=2) as two,
    ):
        yield [*one, *two]


def begun(served: ServiceProcess, folder: Path, mine: str) -> FaultFolder:
    """Have a service run ten workflows, of which the first tasks run."""
    hall = FaultFolder(folder)
    served.submit_all(hall.ten(mine))
    eventually(lambda: len(hall.lines()) == 12, hall.lines)
    return hall


def one_leads(replicas: list[ServiceProcess]) -> bool:
    """Tell whether one of them leads, and all know which."""
    told = [served.health() for served in replicas]
    return sum(each["leader"] for each in told) == 1 and len({each["holder"] for each in told}) == 1


def test_a_postgres_that_is_gone_for_ten_seconds(
    services: list[ServiceProcess], postgres: Postgres, tmp_path: Path
) -> None:
    alone, *both = services
    halls = [begun(served, tmp_path / str(number), "gone") for number, served in enumerate(services[:2])]

    try:
        postgres.stop()
        for hall in halls:
            hall.open("meanwhile")
        said = tell_for(AWAY_S, alone)
        assert all("the database" in each for each in said), said
        for path in ("/readyz", "/api/v1/health"):
            eventually(lambda path=path: [each.get(path).status_code for each in both] == [503, 503])  # type: ignore[misc]
        error_of(alone.submit(halls[0].one("refused")))
        done = alone.call("list")
        assert done.code == 75
        assert "the database cannot be reached" in done.err
        assert "hint: Is Postgres running" in done.err
    finally:
        postgres.start()

    for hall, served in zip(halls, (alone, both[1]), strict=True):
        hall.open("after")
        hall.check(hall.ten("gone"), served)
    eventually(lambda: one_leads(both))
    assert "refused" not in {row["name"] for row in alone.rows()}
    eventually(lambda: [served.health()["problems"] for served in services] == [[], [], []])


def test_a_postgres_that_freezes_for_ten_seconds(
    services: list[ServiceProcess], postgres: Postgres, tmp_path: Path
) -> None:
    _, *both = services
    hall = begun(both[0], tmp_path / "hall", "frozen")

    with frozen(postgres):
        hall.open("meanwhile")
        said = tell_for(AWAY_S, both[0])
        assert all("the database cannot be reached" in each for each in said), said

    hall.open("after")
    hall.check(hall.ten("frozen"), both[1])
    eventually(lambda: one_leads(both))


LOCK = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1], isolation_level=None)
other.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
other.execute("ROLLBACK")
"""


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Have another process hold the lock of a database."""
    command = [sys.executable, "-c", LOCK, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        yield
        assert other.poll() is None


def test_an_sqlite_that_another_program_has_locked_for_longer_than_it_is_waited_for(tmp_path: Path) -> None:
    hall = FaultFolder(tmp_path / "hall")
    with serving(hall, hall.folder / "state") as (served,), ThreadPoolExecutor() as threads:
        served.submit_all(hall.ten())
        eventually(lambda: len(hall.lines()) == 12, hall.lines)
        late = hall.one("late")

        with locked(hall.folder / "state" / "coterie.db"):
            hall.open("meanwhile")
            asked = threads.submit(served.submit, late, "my-key")
            cancelled = threads.submit(served.call, "cancel", "long0-1")
            eventually(lambda: "locked by another program" in served.said(), served.said)
            # What is only read is still there.
            assert {row["name"] for row in served.rows()} == {each.name for each in hall.ten()}
            answer, done = asked.result(), cancelled.result()
        assert error_of(answer)["message"].endswith(("locked by another program", "is busy"))
        assert done.code == 75
        assert "hint: " in done.err

        codes: list[int] = []

        def answered() -> bool:
            codes.append(served.submit(late, "my-key").status_code)
            return codes[-1] != 503

        eventually(answered, served.said)
        assert codes[-1] == 201, "what was refused was stored"
        hall.open("after")
        hall.check([*hall.ten(), late], served)
        problem = next(each for each in served.logged() if (each["event"], each.get("what")) == ("problem", "store"))
        assert problem["reason"]


CHATTY = "i=0; until [ -e {gate} ]; do i=$((i+1)); echo line $i of many; sleep 0.001; done; echo lines: $i"


@pytest.mark.parametrize("alone", [False, True], ids=["everything", "the-database"])
def test_a_disk_that_is_full_for_a_while(tmp_path: Path, *, alone: bool) -> None:
    hall = FaultFolder(tmp_path / "hall")
    with small_disk(tmp_path / "disk") as disk:
        file = disk.folder / "coterie.db"
        state = hall.folder / "state" if alone else disk.folder / "state"
        with serving(hall, state, str(file), log=None if alone else disk.folder / "log") as (served,):
            chatty = hall.one("chatty", CHATTY.format(gate=hall.folder / "enough"))
            served.submit_all([chatty, *hall.ten()])
            eventually(lambda: len(hall.lines()) == 13, hall.lines)

            disk.fill()
            hall.open("meanwhile")
            late = [hall.one(f"late{number}") for number in range(20)]
            answers = [served.submit(each, each.name) for each in late]
            eventually(lambda: f"{file}: the disk is full" in served.said(), served.said)
            eventually(lambda: "Make room" in served.said(), served.said)
            eventually(lambda: served.metric("coterie_problems") >= 1, served.said)
            refused = {error_of(answer)["message"] for answer in answers if answer.status_code != 201}
            assert refused == {f"{file}: the disk is full, nothing was written"}
            last = tmp_path / "last.yaml"
            last.write_bytes(hall.one("last").submission.source)
            done = served.call("submit", last, "--key", "last")
            assert (done.code, done.out) == (75, "")
            assert f"error: {file}: the disk is full, nothing was written\nhint: Make room" in done.err
            disk.clear()

            # Once more, in the middle of it all: what was accepted has begun to run.
            for _ in range(3):
                assert {served.submit(each, each.name).status_code for each in late} <= {200, 201, 503}
                disk.fill()
                assert {served.submit(each, each.name).status_code for each in late} <= {200, 201, 503}
                disk.clear()
            hall.open("enough")
            served.submit_again(late)
            eventually(lambda: served.call("submit", last, "--key", "last").code == 0, served.said)
            hall.open("after")
            hall.check([chatty, *hall.ten(), *late, hall.one("last")], served)
            said = [(each["event"], each.get("what")) for each in served.logged()]
            assert ("problem", "store") in said
            assert ("solved", "store") in said
            assert complete(served.get("/api/v1/workflows/chatty-1/logs?task=t").text)


def complete(log: str) -> bool:
    """Tell whether a log has everything, or says where something is missing and goes on behind it."""
    *lines, last = log.splitlines()
    numbers = [int(found[1]) for line in lines if (found := re.fullmatch(r"line (\d+) of many", line))]
    gaps = re.findall(r"\[coterie: ([\d,]+) bytes are missing here: No space left on device\]", log)
    total = int(last.removeprefix("lines: "))
    assert gaps or numbers == list(range(1, total + 1)), (len(numbers), total)
    return numbers == sorted(numbers) and total >= numbers[-1] > total - 1000


def test_a_disk_of_tasks_that_is_full_while_the_database_is_not(tmp_path: Path) -> None:
    hall = FaultFolder(tmp_path / "hall")
    with small_disk(tmp_path / "disk") as disk:
        state, store = disk.folder / "state", str(hall.folder / "coterie.db")
        with serving(hall, state, store) as (served,):

            def status(name: str) -> str:
                return next(str(row["status"]) for row in served.rows() if row["name"] == name)

            # Before the submission: it is taken, waits, and says why.
            disk.fill()
            first, doomed = hall.one("first", gate="meanwhile"), hall.one("doomed", gate="never")
            served.submit_all([first, doomed])
            full = f'the disk is full, there is no room in the folder "{state}/tasks"'
            eventually(lambda: f'tasks: cannot start "t": {full}' in served.said(), served.said)
            eventually(lambda: full in served.call("events").out, lambda: served.call("events").out)
            eventually(lambda: served.metric("coterie_problems") == 1, served.said)
            eventually(lambda: served.get("/readyz").status_code == 200, served.health)
            assert hall.lines() == []
            late = spawn("serve", "--state", state, "--store", store, "--port", "0")
            assert late.code == 75
            assert "the service cannot write its address: No space left on device" in late.err
            assert "hint: Make room" in late.err
            disk.clear()
            eventually(lambda: len(hall.lines()) == 2, hall.lines)

            # Between the start of tasks and their end: what became of them is known while it is still full.
            disk.fill()
            hall.open("meanwhile")
            eventually(lambda: served.call("cancel", "doomed-1").code == 0, served.said)
            eventually(lambda: (status("first"), status("doomed")) == ("COMPLETED", "FAILED_CANCELED"), served.rows)
            disk.clear()

            # With room for a part of what a start needs.
            tight = [hall.one(f"tight{blocks}") for blocks in range(8)]
            for blocks, each in enumerate(tight):
                disk.fill(leaving=blocks)
                served.submit_all([each])
                eventually(lambda: "the disk is full" in served.said() or each.name in str(hall.lines()), served.said)  # noqa: B023 - called in this turn
                disk.clear()
                eventually(lambda: each.name in str(hall.lines()), hall.lines)  # noqa: B023 - called in this turn

            ended = replace(doomed, status="FAILED_CANCELED")
            hall.check([first, ended, *tight], served)
            assert {line.split()[2] for line in hall.lines()} == {"1"}, "an attempt was wasted"
