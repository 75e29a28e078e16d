"""A lock of threads that is free after an interrupt at any moment."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from coterie.store.databases.thread_lock import ThreadLock
from tests.eventually import eventually

PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def take_until(interrupt: threading.Timer, lock: ThreadLock) -> None:
    interrupt.start()
    while True:
        with lock.held(PATIENCE_S), lock.held(PATIENCE_S):
            pass


def interrupted(lock: ThreadLock) -> None:
    """Take and release a lock until an interrupt comes."""
    timer = threading.Timer(0.001, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        take_until(timer, lock)
    timer.join(PATIENCE_S)


def test_an_interrupt_at_any_moment_leaves_it_free() -> None:
    lock, ended, turns = ThreadLock(), threading.Event(), [0]

    def take() -> None:
        while not ended.is_set():
            with lock.held(PATIENCE_S) as in_time:
                turns[0] += in_time
            time.sleep(0)

    other = threading.Thread(target=take)
    other.start()
    try:
        for _ in range(100):
            interrupted(lock)
            before = turns[0]
            eventually(lambda before=before: turns[0] > before)  # type: ignore[misc]
    finally:
        ended.set()
        other.join(PATIENCE_S)


def test_a_lock_that_another_thread_holds_is_not_free_in_time() -> None:
    lock, holds, ended = ThreadLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock.held(PATIENCE_S):
            holds.set()
            ended.wait(PATIENCE_S)

    other = threading.Thread(target=hold)
    other.start()
    assert holds.wait(PATIENCE_S)
    with lock.held(0.01) as in_time:
        assert not in_time
    ended.set()
    other.join(PATIENCE_S)
    with lock.held(PATIENCE_S) as in_time:
        assert in_time
