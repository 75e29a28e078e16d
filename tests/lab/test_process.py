"""Programs of a lab react to signals as usual, whatever their parent ignores or blocks."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from lab.process import Program

from tests.eventually import eventually


def _status(program: Program) -> dict[str, str]:
    lines = Path(f"/proc/{program.pid}/status").read_text("utf-8").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@pytest.mark.parametrize("tied", [True, False])
def test_a_program_reacts_to_all_signals_as_usual(tmp_path: Path, *, tied: bool) -> None:
    program = Program("sleep", ["/bin/sleep", "1000"], tmp_path / "sleep.log", tied=tied)
    earlier = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        program.start()
        eventually(lambda: _status(program)["Name"] == "sleep", program.tail)
        found = _status(program)
        assert (int(found["SigIgn"], 16), int(found["SigBlk"], 16)) == (0, 0)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGHUP, earlier)
        program.stop()
