"""No test hangs and none leaves a process behind: checked on runs of pytest that would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import process_tree

pytestmark = pytest.mark.slow("starts test runs of its own")

ROOT = Path(__file__).parents[1]
Runs = Callable[[str], Iterator[str]]

WAITS = """
import subprocess, threading, pytest

@pytest.mark.time_limit(3)
def test_waits():
    with subprocess.Popen(["sh", "-c", "setsid sleep 71000 & sleep 71000"]) as child:
        child.wait()

@pytest.mark.time_limit(3)
def test_waits_for_a_thread():
    with subprocess.Popen(["sleep", "71000"]) as child:
        waiting = threading.Thread(target=child.wait)
        waiting.start()
        waiting.join()

@pytest.fixture
def slow():
    threading.Event().wait(71000)

@pytest.mark.time_limit(3)
def test_is_never_set_up(slow):
    pass

@pytest.fixture
def endless():
    yield
    threading.Event().wait(71000)

@pytest.mark.time_limit(3)
def test_is_never_over(endless):
    pass

def test_next():
    pass
"""
STUCK = """
import threading, pytest
from tests import limits

pytestmark = pytest.mark.slow("starts test runs of its own, some of which exceed their limits")
limits._LAST_RESORT_S = 1

@pytest.mark.time_limit(1)
def test_does_not_end_at_all():
    for _ in range(10):
        try:
            threading.Event().wait(71000)
        except BaseException:
            pass
"""
LEAVES = """
import subprocess, pytest
from tests import limits

limits._GRACE_S = 2

def test_leaves():
    subprocess.Popen(["sleep", "71001"])

def test_leaves_an_orphan_without_environment():
    subprocess.run(["sh", "-c", "setsid env -i sleep 71002 & exit 0"], check=True)

@pytest.fixture(scope="module")
def careless():
    subprocess.Popen(["sleep", "71003"])

def test_comes_before_the_end_of_a_fixture(careless):
    pass

def test_ends_a_fixture_that_leaves_something(careless):
    pass
"""
SHARES = """
import subprocess, pytest

@pytest.fixture
def own():
    with subprocess.Popen(["sleep", "71004"]) as child:
        yield
        child.kill()

class Server:
    def start(self):
        # A process that a shared program starts later belongs to it as well.
        self.process = subprocess.Popen(["sh", "-c", "read line; sleep 71004 & read line; kill $!"],
                                        stdin=subprocess.PIPE, text=True)

    def stop(self):
        self.process.communicate("go on\\n")

@pytest.fixture(scope="session")
def shared():
    server = Server()
    server.start()
    yield server
    server.stop()

@pytest.fixture
def lazily(request):
    return request.getfixturevalue("shared")

def test_first(own, lazily):
    pass

def test_second(shared):
    shared.process.stdin.write("go\\n")
    shared.process.stdin.flush()

def test_third(shared):
    shared.stop()
    shared.start()

def test_last(shared):
    pass
"""
SIGNALLED = """
import signal, subprocess

def test_programs_end_when_they_are_told_to():
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGPIPE):
        with subprocess.Popen(["sleep", "71005"]) as child:
            child.send_signal(number)
            assert child.wait(60) == -number
"""


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """Give a function that runs tests under the limits of all tests, with signals ignored, and yields what is said.

    They run twice at the same time: alone, and in a worker.
    """

    def call(text: str) -> Iterator[str]:
        ways = {tmp_path / "alone": ("-p", "no:xdist"), tmp_path / "worker": ("-n", "1")}
        with ExitStack() as stack:
            started = [stack.enter_context(_started(folder, text, *workers)) for folder, workers in ways.items()]
            for each in started:
                each.wait(250)
        for folder in ways:
            yield (folder / "said").read_text(encoding="utf-8")

    return call


def _started(folder: Path, text: str, *workers: str) -> subprocess.Popen[bytes]:
    folder.mkdir()
    file = folder / "test_sample.py"
    file.write_text(text, encoding="utf-8")
    command = [
        *(sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"),
        # It takes as long to load as all others, and has nothing to do here.
        *("-p", "no:schemathesis"),
        *("-v", *workers, f"--rootdir={folder}", "-c", os.devnull, str(file)),
    ]
    with (folder / "said").open("wb") as said:
        return subprocess.Popen(
            ["sh", "-c", "trap '' HUP INT TERM QUIT; exec \"$@\"", "sh", *command],  # noqa: S607 - wherever it is
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )


def test_a_test_that_takes_too_long_fails_and_what_it_started_is_killed(runs: Runs) -> None:
    for said in runs(WAITS):
        for name in ("test_waits", "test_waits_for_a_thread", "test_is_never_set_up", "test_is_never_over"):
            assert f"test_sample.py::{name} took more than 3 s" in said
        assert "(sleep 71000)" in said
        assert "in test_waits\n" in said, "the stacks of all threads are shown"
        assert "2 failed, 2 passed, 2 errors" in said
    assert not _sleepers()


def test_a_test_that_does_not_even_end_then_ends_the_process(runs: Runs) -> None:
    for said in runs(STUCK):
        assert "Timeout (0:00:02)!" in said
        assert "in test_does_not_end_at_all\n" in said


def test_a_process_that_outlives_its_test_fails_it(runs: Runs) -> None:
    for said in runs(LEAVES):
        assert "test_sample.py::test_leaves left processes behind, which were killed: " in said
        assert "test_sample.py::test_leaves_an_orphan_without_environment left processes behind" in said
        assert "test_sample.py::test_ends_a_fixture_that_leaves_something left processes behind" in said
        for span in ("71001", "71002", "71003"):
            assert f"(sleep {span})" in said
        assert "4 passed, 3 errors" in said
    assert not _sleepers()


def test_processes_of_fixtures_that_tests_share_may_stay(runs: Runs) -> None:
    for said in runs(SHARES):
        assert "4 passed" in said, said
    assert not _sleepers()


def test_programs_react_to_signals_that_the_run_ignores(runs: Runs) -> None:
    for said in runs(SIGNALLED):
        assert "1 passed" in said, said


def _sleepers() -> str:
    """Return what the tests of a run have left to this process."""
    return " ".join(re.findall(r"\(sleep 7100.\)", process_tree.described(process_tree.descendants())))
