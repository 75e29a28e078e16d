"""Limits of every test: its time, and the life of the processes that it starts.

A test that takes too long fails, and what it started is killed, so that nobody waits for it. A process that is still
there after the test, its fixtures included, is killed as well, and fails the test. The processes of a fixture that
several tests share may live as long as the fixture.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from lab import Lab
from tests import process_tree
from tests.process_tree import Process

TIME_LIMIT_S = 300.0
CLUSTER_TIME_LIMIT_S = 900.0
# A process that was told to end needs a moment for it, on a busy machine a long one.
_GRACE_S, _PAUSE_S = 60.0, 0.02
# When the test does not even end after that, the whole process is ended this much later.
_LAST_RESORT_S = 60.0


class TimeLimitExceeded(BaseException):
    """Raised in the midst of a test that has taken too long; no test catches it by chance."""


class SharedFixtures:
    """The fixtures that several tests share, by name: what each gives, and the processes that its setup started."""

    def __init__(self) -> None:
        self._values: dict[str, object] = {}
        self._processes: dict[str, set[Process]] = {}
        # What fixtures that are over had started: it must be gone.
        self.abandoned: set[Process] = set()

    def add(self, name: str, value: object, processes: set[Process]) -> None:
        """Remember a fixture until it is removed."""
        self._values[name] = value
        self._processes[name] = processes

    def remove(self, name: str) -> None:
        """Forget a fixture, and expect that whatever it started is gone."""
        self._values.pop(name, None)
        self.abandoned |= self._processes.pop(name, set())

    def processes(self, running: set[Process]) -> set[Process]:
        """Return the running processes that are theirs: started in a setup, restarted since, or below one of these."""
        restarted = {pid for value in self._values.values() for pid in _pids(value)}
        owned = {each for each in running if each.pid in restarted}.union(*self._processes.values()) & running
        return owned | process_tree.descendants(each.pid for each in owned)


def expect_signals() -> None:
    """Let programs that tests start react to every signal as usual, whatever this process was told to ignore.

    Under nohup, or in the background of a shell, some signals are ignored, and so they would be by every program.
    A signal with a handler is not ignored by programs; the handler does nothing, so this process goes on as before.
    """
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        # Python ignores the last two itself, and resets them for the programs that it starts.
        if signal.getsignal(number) is signal.SIG_IGN and number not in {signal.SIGPIPE, signal.SIGXFSZ}:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else _do_nothing)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())


def pytest_configure(config: pytest.Config) -> None:
    """Keep the standard error of the run, which is not that of tests, and name the marker of other limits."""
    config.stash[_STDERR] = os.dup(2)
    config.addinivalue_line(
        "markers", "time_limit(seconds): how long each of setup, test and teardown may take, instead of the usual limit"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Limit the time that the fixtures of a test take."""
    item.stash[_BEFORE] = process_tree.descendants()
    with _limited(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Limit the time that a test takes."""
    with _limited(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Limit the time that a test needs to clean up, and fail it when a process that it started is still there."""
    try:
        with _limited(item):
            return (yield)
    finally:
        if left := _outlived(item):
            said = f"{item.nodeid} left processes behind, which were killed: {process_tree.described(left)}"
            process_tree.kill(left)
            if (error := sys.exception()) is None:
                pytest.fail(said, pytrace=False)
            error.add_note(said)
        process_tree.release_ended(since=item.stash[_BEFORE])


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    """Note what a fixture starts that tests share."""
    if fixturedef.scope == "function":
        return (yield)
    before = process_tree.descendants()
    made = yield
    _shared.add(_name(fixturedef), made, process_tree.descendants() - before)
    return made


def pytest_fixture_post_finalizer(fixturedef: pytest.FixtureDef[object]) -> None:
    """Expect that a fixture which is over has left no process."""
    _shared.remove(_name(fixturedef))


@contextmanager
def _limited(item: pytest.Item) -> Iterator[None]:
    """Raise `TimeLimitExceeded` in a block that takes too long, after killing what the test started."""
    marker = item.get_closest_marker("time_limit")
    usual = CLUSTER_TIME_LIMIT_S if item.get_closest_marker("lab") else TIME_LIMIT_S
    seconds = float(marker.args[0]) if marker else usual
    shown = item.config.stash[_STDERR]

    def expire(_: int, __: FrameType | None) -> None:
        faulthandler.dump_traceback(file=shown)
        started = _started(item)
        said = f"; killed: {process_tree.described(started)}" if started else ""
        process_tree.kill(started)
        raise TimeLimitExceeded(f"{item.nodeid} took more than {seconds:g} s{said}")

    earlier = signal.signal(signal.SIGALRM, expire)
    faulthandler.dump_traceback_later(seconds + _LAST_RESORT_S, exit=True, file=shown)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, earlier)


def _outlived(item: pytest.Item) -> set[Process]:
    """Return the processes that a test has started and that do not end by themselves within a moment."""
    deadline = time.monotonic() + _GRACE_S
    while (left := _started(item)) and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
    return left


def _started(item: pytest.Item) -> set[Process]:
    """Return the processes that a test has started and that run."""
    running = process_tree.descendants()
    new = running - (item.stash[_BEFORE] - _shared.abandoned)
    return new - _shared.processes(running) if new else new


def _pids(value: object) -> Iterator[int]:
    """Yield the processes that an object of a shared fixture stands for at the moment."""
    if isinstance(value, Lab):
        yield from (program.pid for program in value.programs.values())
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _pids(each)
    elif isinstance(pid := getattr(value, "pid", None), int):
        yield pid
    elif (process := getattr(value, "process", None)) is not None:
        yield from _pids(process)


def _name(fixturedef: pytest.FixtureDef[object]) -> str:
    return f"{fixturedef.baseid}::{fixturedef.argname}"


def _do_nothing(_: int, __: FrameType | None) -> None:
    """Do nothing."""


_BEFORE = pytest.StashKey[set[Process]]()
_STDERR = pytest.StashKey[int]()
_shared = SharedFixtures()
expect_signals()
process_tree.adopt_orphans()
