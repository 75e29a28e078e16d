"""Ways to call `coterie` as its users do: in a separate process, with pipes or on a terminal.

A process costs a second, most of it spent on imports. `call` runs the same command in this process, for tables of cases
about its content; `spawn` and `on_terminal` are for tests of its streams and terminal output.
"""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from coterie.cli.app import app

ROOT = Path(__file__).parents[2]
CLUSTER = """\
topology_keys:
- {key: zone, label: topology.kubernetes.io/zone}
- {key: rack, label: topology.kubernetes.io/rack}
fleet:
- {domains: {zone: a, rack: [r1, r2]}, nodes: 2, gpu: 8, cpu: 96, memory: 1Ti}
pods:
- {owner: wf-12, node: a-r2-n1, gpu: 8}
"""
PROGRAM = (sys.executable, "-m", "coterie")
TIMEOUT_S = 120


@dataclass(frozen=True)
class Done:
    """The outcome of a call."""

    code: int
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a call, without anything that would change what it prints."""
    dropped = {"COTERIE_CONFIG", "NO_COLOR", "TERM", "FORCE_COLOR", "PYTHONUNBUFFERED"}
    return {**{name: value for name, value in os.environ.items() if name not in dropped}, "PYTHONUTF8": "1", **more}


def call(*arguments: str | Path, stdin: bytes = b"", cwd: Path = ROOT, **more: str) -> Done:
    """Run a command of `coterie` here and now."""
    unset: dict[str, str | None] = {"COTERIE_CONFIG": None, "NO_COLOR": None}
    with chdir(cwd):
        done = CliRunner().invoke(app, [*map(str, arguments)], input=stdin, env={**unset, **more})
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


def spawn(*arguments: str | Path, stdin: bytes = b"", cwd: Path = ROOT, **more: str) -> Done:
    """Call `coterie` in a process of its own, with its output in pipes."""
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env=environment(**more),
        check=False,
        timeout=TIMEOUT_S,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def on_terminal(*arguments: str | Path, **more: str) -> Done:
    """Call `coterie` on a terminal, on which both streams arrive."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*PROGRAM, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env=environment(TERM="xterm-256color", **more),
    ) as process:
        os.close(theirs)
        try:
            said = read_until(ours, None)
        except TimeoutError:
            process.kill()
            raise
    return Done(process.returncode, said.replace("\r\n", "\n"), "")


def read_until(terminal: int, words: str | None) -> str:
    """Read what a terminal gets, until some words are there or nobody holds its other end any more."""
    said = b""
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while words is None or words not in said.decode(errors="replace"):
            if not select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"{words!r} never came: {said.decode(errors='replace')}")
            if not (piece := os.read(terminal, 4096)):
                break
            said += piece
    except OSError as error:  # how Linux says it
        if isinstance(error, TimeoutError):
            raise
        os.close(terminal)
    return said.decode(errors="replace")


@contextmanager
def at_terminal(*arguments: str | Path, cwd: Path = ROOT, **more: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Call `coterie` with somebody at its terminal; yield the process, and the terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*PROGRAM, *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=cwd,
        env=environment(TERM="xterm-256color", COLUMNS="100", LINES="40", **more),
    ) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            if process.poll() is None:
                process.kill()


def workflow(tasks: int, *, name: str = "wf", topology: str = "{key: rack}", gpus: int = 8, more: str = "") -> str:
    """Return a workflow of one group."""
    listed = "".join(
        f"    - {{name: t{number}, image: i, command: [run], lead: {str(number == 0).lower()}}}\n"
        for number in range(tasks)
    )
    resources = f"resources:\n  default: {{gpu: {gpus}, topology: [{topology}]{more}}}\n"
    return f"workflow:\n  name: {name}\n  groups:\n  - name: g\n    tasks:\n{listed}{resources}"


@dataclass(frozen=True)
class SampleFolder:
    """A folder with a cluster file, to which workflows are added."""

    folder: Path

    @property
    def cluster(self) -> Path:
        """A cluster of two racks with two nodes of eight GPUs, one of them in use."""
        return self.file("cluster.yaml", CLUSTER)

    def file(self, name: str, content: str | bytes) -> Path:
        """Write a file and return its path."""
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def flow(
        self, tasks: int, *, name: str = "wf", topology: str = "{key: rack}", gpus: int = 8, more: str = ""
    ) -> Path:
        """Write a workflow of one group."""
        return self.file(f"{name}.yaml", workflow(tasks, name=name, topology=topology, gpus=gpus, more=more))

    def plan(self, *arguments: str | Path, stdin: bytes = b"") -> Done:
        """Plan on the cluster of the folder."""
        return call("plan", *arguments, "--cluster", self.cluster, stdin=stdin)


# Every command that only asks a service, and changes nothing where there is no such workflow or pool.
ASKING = (
    ("list", "--since", "2h", "--label", "a=b", "-o", "wide"),
    ("show", "wf-0"),
    ("show", "wf-0", "--watch"),
    ("why", "wf-0"),
    ("logs", "wf-0"),
    ("events", "wf-0"),
    ("wait", "wf-0", "--timeout", "1m"),
    ("cancel", "wf-0"),
    ("retry", "wf-0"),
    ("delete", "wf-0"),
    ("pool", "list"),
    ("pool", "show", "none"),
    ("pool", "delete", "none"),
    ("topology", "list"),
    ("topology", "show", "none"),
)
HEAVY = frozenset(
    {
        "alembic",
        "coterie.document.schema",
        "fastapi",
        "jinja2",
        "lightkube",
        "msgspec",
        "numpy",
        "pydantic",
        "sqlalchemy",
        "yaml",
    }
)


def loaded(*calls: Sequence[str], **more: str) -> tuple[list[int], list[str]]:
    """Return the exit codes of some calls, one after the other in one process, and what they loaded that is heavy."""
    script = (
        "import json, sys\n"
        "from coterie.cli import main\n"
        "codes = []\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    sys.argv = ['coterie', *words]\n"
        "    try:\n        main()\n    except SystemExit as end:\n        codes.append(end.code)\n"
        f"print(json.dumps([codes, sorted(set(sys.modules) & {set(HEAVY)!r})]))\n"
    )
    command = [sys.executable, "-c", script, json.dumps(calls)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environment(**more), check=True, timeout=TIMEOUT_S
    )
    codes, found = json.loads(done.stdout.splitlines()[-1])
    return codes, found


def quiet(done: Done, *words: str) -> bool:
    """Tell whether a failed call said what it had to in one or two lines, without a traceback."""
    return "Traceback" not in done.err and all(word in done.err for word in words) and len(done.err.splitlines()) <= 2


def escapes(text: str) -> Sequence[str]:
    """Return the control characters and box characters in a text."""
    return sorted({char for char in text if (ord(char) < 32 and char != "\n") or char in "╷│╵─┌└├"})
