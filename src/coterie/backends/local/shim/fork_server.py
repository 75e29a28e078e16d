"""The fork server of shims: a copy of a Python process with all modules loaded starts at once."""

from __future__ import annotations

import os
import resource
import select
import signal
import socket

from .watch import main as watch

_LONGEST = 1 << 14
_HANDLES = 1024


def main(handle: int, files: int) -> None:
    """Start a shim for each requested folder until the requester is gone; each may open this many `files`.

    With each folder comes the end of a pipe, which the shim keeps for its final message: the error that kept it from
    beginning, or 0. The answer is a handle of the shim's process, or the number of an error.
    """
    os.chdir("/")
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    asked = socket.socket(fileno=handle)
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    for each in (handle, woken):
        poll.register(each, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready == woken:
                os.read(woken, _LONGEST)
            else:
                folder, words, *_ = socket.recv_fds(asked, _LONGEST, 1)
                if not folder:
                    return
                _answer(asked, os.fsdecode(folder), words[0])
        _reap()


def _answer(asked: socket.socket, folder: str, word: int) -> None:
    try:
        pid = os.fork()
        if not pid:
            _become(folder, word)
        # It cannot be reaped before this, so the number is still its own.
        shim = os.pidfd_open(pid)
    except OSError as error:
        asked.send(str(error.errno).encode())
        return
    finally:
        os.close(word)
    socket.send_fds(asked, [b"0"], [shim])
    os.close(shim)


def _become(folder: str, word: int) -> None:
    """Become the shim of a folder, with nothing of the fork server but its loaded modules."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.closerange(3, word)
        os.closerange(word + 1, _HANDLES)
        os.set_inheritable(word, False)  # noqa: FBT003 - it takes no names
        os.write(word, str(watch(folder)).encode())
    finally:
        os._exit(0)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return
