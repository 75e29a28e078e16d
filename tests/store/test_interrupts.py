"""Interrupts that wait for the end of an access to the database, and leave no lock behind."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coterie.store.databases.database import Database, database
from coterie.store.databases.interrupts import postponed
from tests.eventually import eventually


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(times: int, end: Callable[[], object]) -> None:
    with postponed():
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
        end()


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_comes_after_the_block(times: int) -> None:
    done = list[str]()
    with pytest.raises(KeyboardInterrupt):
        interrupted(times, lambda: done.append("all of it"))
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_is_not_lost_with_an_error_of_the_block() -> None:
    def fail() -> None:
        raise ValueError("busy")

    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted(1, fail)
    assert isinstance(caught.value.__context__, ValueError)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_have_no_interrupts() -> None:
    done = list[str]()
    thread = threading.Thread(target=lambda: interrupted(0, lambda: done.append("done")))
    thread.start()
    thread.join(60)
    assert done == ["done"]


PATIENCE_S = 60.0


def read_until(interrupt: threading.Timer, found: Database) -> None:
    interrupt.start()
    while True:
        with found.reading() as connection, found.reading():
            connection.exec_driver_sql("SELECT 1")


def test_an_interrupt_of_a_reader_at_any_moment_keeps_nobody_from_reading(tmp_path: Path) -> None:
    found, ended, turns = database(str(tmp_path / "store.db"), PATIENCE_S), threading.Event(), [0]

    def read() -> None:
        while not ended.is_set():
            with found.reading() as connection:
                turns[0] += connection.exec_driver_sql("SELECT 1").scalar_one()

    other = threading.Thread(target=read)
    other.start()
    try:
        for _ in range(100):
            timer = threading.Timer(0.002, os.kill, (os.getpid(), signal.SIGINT))
            with pytest.raises(KeyboardInterrupt) as _interrupt:
                read_until(timer, found)
            timer.join(PATIENCE_S)
            before = turns[0]
            # The exception keeps what it went through: a lock must be free before it is forgotten.
            eventually(lambda before=before: turns[0] > before)  # type: ignore[misc]
    finally:
        ended.set()
        other.join(PATIENCE_S)
        found.close()
