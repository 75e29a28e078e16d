"""One transaction for the writes of several threads: those that arrive while another commits are written together."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, cast

from coterie.errors import CoterieError, Unavailable

A = TypeVar("A")
B = TypeVar("B")

# How many values are written at a time.
_MOST = 64


class _Pending(Generic[A, B]):
    """One value to be written, and then its result or its error."""

    def __init__(self, value: A) -> None:
        self.value = value
        self.done = False
        self.result: B | None = None
        self.error: BaseException | None = None


class GroupCommit(Generic[A, B]):
    """The writer of values of one kind; it may be called from any thread, and returns once a value is durable.

    `write` writes several values in one transaction, and returns for each its result, or the error for which nothing of
    this one was written. Where it raises, nothing was written.
    """

    def __init__(self, write: Callable[[Sequence[A]], Sequence[B | CoterieError]]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: list[_Pending[A, B]] = []

    def __call__(self, value: A) -> B:
        """Return the result of a value, or raise its error."""
        mine: _Pending[A, B] = _Pending(value)
        with self._lock:
            self._waiting.append(mine)
        while not mine.done:
            # Whoever has it writes for all that wait; the others find their values written when they get it.
            with self._writing:
                if not mine.done:
                    self._write_some()
        if mine.error is not None:
            raise mine.error
        return cast("B", mine.result)

    def _write_some(self) -> None:
        with self._lock:
            some, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
        try:
            self._write_together(some)
        except BaseException as error:
            unwritten = [each for each in some if not each.done]
            for each in unwritten:
                each.done, each.error = True, error if len(unwritten) == 1 else _copied(error)
            # An error is that of the values it concerns; the caller's own may still wait to be written.
            if not isinstance(error, Exception):
                raise

    def _write_together(self, some: Sequence[_Pending[A, B]]) -> None:
        try:
            found = self._write([each.value for each in some])
        except Exception as error:
            if len(some) == 1 or isinstance(error, Unavailable):
                raise
            # It may concern one of them alone.
            for each in some:
                self._write_alone(each)
            return
        for each, result in zip(some, found, strict=True):
            if isinstance(result, CoterieError):
                each.error = result
            else:
                each.result = result
            each.done = True

    def _write_alone(self, one: _Pending[A, B]) -> None:
        try:
            self._write_together([one])
        except Unavailable:
            raise  # the others would fail like it, each after a long wait
        except Exception as error:  # noqa: BLE001 - its own caller gets it
            one.done, one.error = True, error


def _copied(error: BaseException) -> BaseException:
    """Return an error for one of several threads: each that raises the same object would add to its traceback."""
    try:
        copied = copy.copy(error)
    except Exception:  # noqa: BLE001 - a class whose arguments are not those of its constructor
        return error
    copied.__cause__ = error
    return copied
