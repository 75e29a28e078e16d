"""An interrupted `coterie run` leaves nothing behind, however it is interrupted."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coterie.backends.local.machine.processes import ProcessIdentity
from coterie.backends.local.shim import ownership
from coterie.cli.inputs.temporary_folder import temporary_folder
from tests.cli.command import PROGRAM, TIMEOUT_S, SampleFolder, at_terminal, call, environment, read_until
from tests.cli.service_fixtures import flow
from tests.eventually import eventually

pytestmark = pytest.mark.slow("kills and detaches runs in processes of their own, and waits for their tasks")

# Says who it is, and good-bye when it is asked to end.
SCRIPT = "trap 'echo bye > {0}.bye; exit 0' TERM; echo $$ > {0}.new; mv {0}.new {0}; while :; do sleep 0.05; done"


@pytest.fixture(autouse=True)
def base(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the folder for what is temporary, which is empty."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def _task(file: Path) -> ProcessIdentity:
    """Return the process of a task, once it has written down who it is."""
    eventually(file.exists)
    found = ProcessIdentity.of(ownership.identity(int(file.read_text())).split())
    assert found
    return found


@contextmanager
def _running(desk: SampleFolder, script: str, *before: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [*before, *PROGRAM, "run", desk.file("wf.yaml", flow(script)), "--cluster", desk.cluster],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(TMPDIR=os.environ["TMPDIR"]),
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


@pytest.mark.parametrize("closed", [True, False])
def test_a_run_whose_terminal_goes_away_stops_its_tasks_with_grace(
    desk: SampleFolder, base: Path, *, closed: bool
) -> None:
    up = desk.folder / "up"
    file = desk.file("wf.yaml", flow(SCRIPT.format(up)))
    with at_terminal("run", file, "--cluster", desk.cluster, TMPDIR=str(base)) as (process, terminal):
        task = _task(up)
        if closed:
            os.close(terminal)
        for _ in range(2):  # by the kernel, and by the shell
            process.send_signal(signal.SIGHUP)
        if not closed:
            read_until(terminal, None)  # as a terminal does: one that reads nothing makes its writers wait
        process.wait(TIMEOUT_S)

    assert process.returncode == 130
    assert not task.alive()
    assert (desk.folder / "up.bye").exists()
    assert list(base.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_run_whose_terminal_takes_no_more_output_stops_its_tasks_all_the_same(
    desk: SampleFolder, base: Path, number: signal.Signals
) -> None:
    up = desk.folder / "up"
    file = desk.file("wf.yaml", flow(SCRIPT.format(up)))
    with at_terminal("run", file, "--cluster", desk.cluster, TMPDIR=str(base)) as (process, terminal):
        task = _task(up)
        read_until(terminal, "RUNNING")
        os.write(terminal, b"\x13")  # Ctrl-S, and nobody presses Ctrl-Q
        while select.select([terminal], [], [], 1.0)[0]:  # until nothing is drawn any more
            os.read(terminal, 4096)
        process.send_signal(number)
        process.wait(TIMEOUT_S)
    assert process.returncode == 130
    assert not task.alive()
    assert (desk.folder / "up.bye").exists()
    assert list(base.iterdir()) == []


def test_nobody_is_asked_when_a_run_is_terminated(desk: SampleFolder, base: Path) -> None:
    up = desk.folder / "up"
    file = desk.file("wf.yaml", flow(SCRIPT.format(up)))
    with at_terminal("run", file, "--cluster", desk.cluster, TMPDIR=str(base)) as (process, terminal):
        _task(up)
        process.send_signal(signal.SIGTERM)
        said = read_until(terminal, None)
        process.wait(TIMEOUT_S)

    assert process.returncode == 130
    assert "ontinue? " not in said
    assert (desk.folder / "up.bye").exists()


def test_a_run_that_was_told_to_outlive_its_terminal_does(desk: SampleFolder) -> None:
    up, flag = desk.folder / "up", desk.folder / "flag"
    with _running(desk, f"echo $$ > {up}; while ! test -e {flag}; do sleep 0.05; done", "nohup") as process:
        eventually(up.exists)
        process.send_signal(signal.SIGHUP)
        flag.touch()

        assert process.wait(TIMEOUT_S) == 0


def test_tasks_end_with_a_run_that_was_killed_and_the_next_run_removes_its_folder(
    desk: SampleFolder, base: Path
) -> None:
    up = desk.folder / "up"
    with _running(desk, SCRIPT.format(up)) as process:
        task = _task(up)
        process.kill()
        process.wait(TIMEOUT_S)

        eventually(lambda: not task.alive())
    assert (desk.folder / "up.bye").exists()
    assert len(list(base.iterdir())) == 1

    assert call("run", desk.file("next.yaml", flow("true")), "--cluster", desk.cluster, "--quiet").code == 0
    assert list(base.iterdir()) == []


def test_tasks_of_a_run_that_keeps_its_state_go_on_when_it_is_killed(desk: SampleFolder) -> None:
    up = desk.folder / "up"
    file, state = desk.file("wf.yaml", flow(SCRIPT.format(up))), desk.folder / "state"
    with at_terminal("run", file, "--cluster", desk.cluster, "--state", state) as (process, terminal):
        task = _task(up)
        process.kill()
        process.wait(TIMEOUT_S)
        os.close(terminal)
    shim = ProcessIdentity.of((next(state.glob("tasks/*/*/*/1")) / "claim").read_text().split()[1:])

    assert shim
    assert shim.alive()
    assert task.alive()
    os.kill(shim.pid, signal.SIGTERM)
    eventually(lambda: not task.alive())


def test_the_folder_of_a_run_that_lives_is_nobody_elses(base: Path) -> None:
    unfinished = base / "coterie-run-being-made"
    unfinished.mkdir()
    with temporary_folder() as first, temporary_folder() as second:
        there = {first.name, second.name, unfinished.name}

        assert {each.name for each in base.iterdir()} == there
    assert [each.name for each in base.iterdir()] == [unfinished.name]


@pytest.mark.parametrize(
    ("words", "variable"),
    [(("run", "wf.yaml", "--state", "a b"), ""), (("serve", "--port", "0", "--state", "a b"), ""), (("run",), "a b")],
)
def test_a_folder_that_cannot_stand_in_commands_is_refused_before_anything_is_made(
    desk: SampleFolder, words: tuple[str, ...], variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.file("wf.yaml", flow(gpus=0).replace("topology: [{key: rack}]", "cpu: 0"))
    if variable:
        (desk.folder / variable).mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(desk.folder / variable))
        words = (*words, "wf.yaml")

    done = call(*words, cwd=desk.folder)

    assert done.code == 2
    assert f'error: the folder "{desk.folder / "a b"}" cannot be used for running tasks' in done.err
    assert ("$TMPDIR" in done.err) == bool(variable)
    assert not (desk.folder / "a b").exists() or list((desk.folder / "a b").iterdir()) == []


@pytest.mark.parametrize("mode", [None, 0o755])
def test_what_tasks_are_given_is_readable_for_their_owner_alone(desk: SampleFolder, mode: int | None) -> None:
    state = desk.folder / "state"
    if mode is not None:
        (state / "tasks").mkdir(mode, parents=True)
    file = desk.file(
        "wf.yaml",
        flow("cat /tmp/greeting").replace(
            "lead: true,", "lead: true, environment: {KEY: s3cret}, files: [{path: /tmp/greeting, contents: hello}],"
        ),
    )

    done = call("run", file, "--cluster", desk.cluster, "--state", state, "--logs", "--quiet")

    assert "t0 | hello" in done.out
    assert (state / "tasks").stat().st_mode & 0o777 == 0o700
    assert [each.stat().st_mode & 0o777 for each in state.glob("tasks/**/launch")] == [0o600]
    assert mode is not None or state.stat().st_mode & 0o777 == 0o700
