"""Interrupts that wait for the end of a call."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from coterie.cli.follow.interrupts import postponed


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


def test_an_error_of_the_block_goes_before_an_interrupt() -> None:
    def fail() -> None:
        raise ValueError("busy")

    with pytest.raises(ValueError, match="busy"):
        interrupted(1, fail)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_have_no_interrupts() -> None:
    done = list[str]()
    thread = threading.Thread(target=lambda: interrupted(0, lambda: done.append("done")))
    thread.start()
    thread.join(60)
    assert done == ["done"]
