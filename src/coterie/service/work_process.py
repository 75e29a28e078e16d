"""Processes for the long computations of requests, so that these delay neither the driver nor other requests.

They have a lower priority than the service, a limit of processor time for each computation, and are killed when the
caller leaves.
"""

from __future__ import annotations

import io
import os
import pickle
import resource
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import MappingProxyType
from typing import IO, Any, TypeVar, cast

from coterie.cancellation import POLL_S, check
from coterie.errors import CoterieError, Unavailable, UsageError

T = TypeVar("T")

# The processor time that one computation may take, in seconds.
PROCESSOR_S = 30
_NICE = 10
# How often a value is copied that changes meanwhile.
_TRIES = 10
_SIZE = 8


class WorkProcesses:
    """Up to `most` processes, started when first needed; `run` may be called from any thread.

    One computation may take `processor_s` seconds of processor time.
    """

    def __init__(self, most: int, processor_s: int = PROCESSOR_S) -> None:
        self._processor_s = processor_s
        self._places = threading.Semaphore(most)
        self._lock = threading.Lock()
        self._idle: list[_WorkProcess] = []
        self._all: set[_WorkProcess] = set()

    def run(self, what: str, work: Callable[..., T], *arguments: object) -> T:
        """Return the result of a function of a module, computed in a process; raise the `CoterieError` it raises.

        Raises `Abandoned` when the caller leaves, and `UsageError` where `what` takes too long.
        """
        request = _encoded((work, arguments))
        with self._places:
            process, used = self._taken()
            found = self._answer(process, request)
            if found is None and used and not process.overran:
                # It may have been killed while it was idle.
                process = self._new()
                found = self._answer(process, request)
            if found is None:
                raise process.failure(what)
            with self._lock:
                if process in self._all:
                    self._idle.append(process)
        done, result = _decoded(found)
        if not done:
            raise result
        return cast("T", result)

    def close(self) -> None:
        """End all processes, with what they compute."""
        with self._lock:
            processes = list(self._all)
        for each in processes:
            self._end(each)

    def _answer(self, process: _WorkProcess, request: bytes) -> bytes | None:
        """Return the answer of a process, or None where it ended instead."""
        try:
            found = process.answer(request)
        except BaseException:
            self._end(process)
            raise
        if found is None:
            self._end(process)
        return found

    def _taken(self) -> tuple[_WorkProcess, bool]:
        """Return a process, and whether it was used before."""
        with self._lock:
            if self._idle:
                return self._idle.pop(), True
        return self._new(), False

    def _new(self) -> _WorkProcess:
        with self._lock:
            process = _WorkProcess(self._processor_s)
            self._all.add(process)
            return process

    def _end(self, process: _WorkProcess) -> None:
        with self._lock:
            self._all.discard(process)
            if process in self._idle:
                self._idle.remove(process)
        process.kill()


class _WorkProcess:
    """One process that answers requests one after another."""

    def __init__(self, processor_s: int) -> None:
        self._processor_s = processor_s
        self._process = subprocess.Popen(  # noqa: S603 - our own module, by our own interpreter
            # -P: a module in the current folder must not take the place of an installed one.
            [sys.executable, "-P", "-c", f"from {__name__} import main; main({processor_s})"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
        self._killing = threading.Lock()
        self._closed = False

    @property
    def overran(self) -> bool:
        """Whether the process has ended because it took too much processor time."""
        return self._process.returncode == -signal.SIGXCPU

    def answer(self, request: bytes) -> bytes | None:
        """Return the answer, or None where the process ended instead."""
        check()
        with suppress(BrokenPipeError):
            _write(_pipe(self._process.stdin), request)
        answers = _pipe(self._process.stdout)
        # Unlike select, poll has no limit for the number of a descriptor.
        ready = select.poll()
        ready.register(answers, select.POLLIN)
        while not ready.poll(POLL_S * 1000):
            check()
        return _read(answers)

    def failure(self, what: str) -> CoterieError:
        """Return why the ended process did not answer."""
        if self.overran:
            hint = "Divide the workflow into smaller ones."
            return UsageError(f"{what} takes more than {self._processor_s} s of processor time", hint)
        return Unavailable(f"the process that worked on {what} has ended", "Try again.")

    def kill(self) -> None:
        """End the process, and what it has started."""
        with self._killing:
            if self._process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            if not self._closed:
                self._closed = True
                for each in (self._process.stdin, self._process.stdout):
                    _pipe(each).close()


def main(processor_s: int) -> None:
    """Answer requests until there are no more; each may take `processor_s` seconds of processor time."""
    os.nice(_NICE)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    while (request := _read(requests)) is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        limit = int(used.ru_utime + used.ru_stime) + processor_s
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        work, arguments = _decoded(request)
        try:
            answer = _encoded((True, work(*arguments)))
        except CoterieError as error:
            answer = _encoded((False, error))
        _write(answers, answer)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: object) -> Any:  # noqa: ANN401 - as the base class says
        """Return how to copy what cannot be copied by default: read-only mappings, and errors with their attributes."""
        if isinstance(value, MappingProxyType):
            return _mapping, (dict(value),)
        if isinstance(value, CoterieError):
            return _error, (type(value), value.args, value.__dict__)
        return NotImplemented


def _mapping(values: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(values)


def _error(kind: type[CoterieError], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> CoterieError:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(attributes)
    return error


def _encoded(value: object) -> bytes:
    """Return a value as bytes, also where other threads fill its caches meanwhile, which ends soon."""
    for left in reversed(range(_TRIES)):
        buffer = io.BytesIO()
        try:
            _Pickler(buffer, 5).dump(value)
        except RuntimeError:
            if not left:
                raise
        else:
            break
    return buffer.getvalue()


def _decoded(data: bytes) -> Any:  # noqa: ANN401 - whatever the other side sent
    return pickle.loads(data)  # noqa: S301 - of our own process


def _write(pipe: IO[bytes], data: bytes) -> None:
    rest = memoryview(len(data).to_bytes(_SIZE, "big") + data)
    while rest:
        rest = rest[pipe.write(rest) :]
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes | None:
    """Return what the other side wrote; None where it has ended."""
    size = _exactly(pipe, _SIZE)
    return None if size is None else _exactly(pipe, int.from_bytes(size, "big"))


def _exactly(pipe: IO[bytes], count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        part = pipe.read(count - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)


def _pipe(found: IO[bytes] | None) -> IO[bytes]:
    if found is None:
        raise AssertionError("the process was started with pipes")
    return found
