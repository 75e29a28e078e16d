"""A process that has imported all commands and forks once for each call of `coterie`.

A call has a process, streams and an environment of its own, as at a shell, without the second that imports take. Calls
come as lines of JSON on standard input; the exit code of each is a line on standard output.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import select
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 120.0


def forked_call(arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Call `coterie` from the root of the repository; both streams are in `stdout`."""
    with tempfile.NamedTemporaryFile() as output:
        code = _server(tuple(environment.items())).call(arguments, output.name)
        printed = output.read().decode()
    return subprocess.CompletedProcess(("coterie", *arguments), code, printed)


class _Server:
    """A running server, and the end of its standard input, with which it ends."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self._close)

    def call(self, arguments: Sequence[str], output: str) -> int:
        """Return the exit code of a call whose output goes to a file."""
        reader, writer = self._process.stdout, self._process.stdin
        assert reader is not None
        assert writer is not None
        writer.write(json.dumps({"arguments": arguments, "output": output}) + "\n")
        writer.flush()
        if not select.select([reader], [], [], TIMEOUT_S)[0]:
            self._process.kill()
            raise TimeoutError(f"coterie {' '.join(arguments)} did not end within {TIMEOUT_S:g} s")
        return int(reader.readline())

    def _close(self) -> None:
        with self._process:
            self._process.kill()


@cache
def _server(environment: tuple[tuple[str, str], ...]) -> _Server:
    return _Server(dict(environment))


def serve() -> None:
    """Answer calls until standard input ends."""
    # Here, since the tests that use this server import nothing of it.
    from coterie.cli import handlers  # noqa: PLC0415
    from coterie.cli.command_table import LazyCommands  # noqa: PLC0415

    list(LazyCommands().values())
    for module in pkgutil.walk_packages(handlers.__path__, f"{handlers.__name__}."):
        import_module(module.name)
    gc.freeze()
    for line in sys.stdin:
        call = json.loads(line)
        if not (child := os.fork()):
            _run(call["arguments"], call["output"])
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _run(arguments: Sequence[str], output: str) -> NoReturn:
    """Run a command with an empty standard input and one file for both kinds of output, and end this process."""
    from coterie.cli import main  # noqa: PLC0415 - the same

    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    file = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.argv = ["coterie", *arguments]
    code: object = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - as Python reports what nothing has caught
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # A regular exit would first spend a second on everything that was imported.
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    serve()
