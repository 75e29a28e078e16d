"""A killed test run also ends its labs, including those that a command has left running."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from lab.process import started_at

from tests import process_tree
from tests.eventually import eventually
from tests.lab.lab_guard import ROOT

_KILLED = """
import os, signal, subprocess, sys
from pathlib import Path
from lab.process import started_at
from lab.state import Process, new_record
from tests.lab.lab_guard import guarded

with guarded(Path(os.environ["XDG_STATE_HOME"])):
    program = subprocess.Popen(["sleep", "600"], start_new_session=True)
    record = new_record("left")
    record.processes.append(Process("sleep", program.pid, started_at(program.pid)))
    record.write()
    print(program.pid, started_at(program.pid), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_lab_does_not_outlive_tests_that_are_killed(tmp_path: Path) -> None:
    others = process_tree.descendants()
    done = subprocess.run(
        [sys.executable, "-c", _KILLED],
        cwd=ROOT,
        env={"XDG_STATE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    pid, mark = done.stdout.split()
    folder = tmp_path / "coterie" / "lab" / "left"
    eventually(lambda: not folder.exists(), "the lab is still there")
    assert started_at(int(pid)) != mark
    # The guard goes on for a while, lest a command that was killed no sooner starts another lab.
    process_tree.kill(process_tree.descendants() - others)
