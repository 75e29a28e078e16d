"""`coterie` as a process: exit codes, streams, terminals, closed pipes, full disks, interrupts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import (
    ASKING,
    PROGRAM,
    TIMEOUT_S,
    SampleFolder,
    environment,
    escapes,
    loaded,
    on_terminal,
    quiet,
    spawn,
    workflow,
)

pytestmark = pytest.mark.slow("starts a process for each case: streams, signals and terminals exist only there")

LINUX = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
EVIL = "\x1b]0;owned\x07\x1b[31m"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("plan", "two.yaml", "--cluster", "cluster.yaml"), 0),
        (("plan", "two.yaml"), 2),
        (("plan", "cluster.yaml", "--cluster", "cluster.yaml"), 3),
        (("plan", "nowhere.yaml", "--cluster", "cluster.yaml"), 4),
        (("plan", "four.yaml", "--cluster", "cluster.yaml"), 6),
        (("plan", "three.yaml", "--cluster", "cluster.yaml"), 7),
    ],
    ids=lambda value: str(value[1]) if isinstance(value, tuple) else str(value),
)
def test_the_exit_code_of_the_process(desk: SampleFolder, arguments: tuple[str, ...], code: int) -> None:
    _ = desk.cluster, desk.flow(2, name="two"), desk.flow(3, name="three")
    desk.flow(4, name="four", topology="{key: zone}")

    done = spawn(*arguments, cwd=desk.folder)

    assert done.code == code
    assert bool(done.out) == (code in {0, 6, 7})
    assert bool(done.err) == (code in {2, 3, 4})
    assert "Traceback" not in done.err
    assert escapes(done.out + done.err) == []


def test_a_list_of_plans_parses_while_warnings_go_to_standard_error(desk: SampleFolder) -> None:
    files = [desk.flow(1, name=name, more=", platform: dgx") for name in ("a", "b")]

    done = spawn("plan", *files, "--cluster", desk.cluster, "-o", "json")

    assert [plan["workload"] for plan in json.loads(done.out)] == ["a", "b"]
    assert done.err.count("warning[FieldIgnored]") == 2


def test_a_terminal_gets_colours_and_rules(desk: SampleFolder) -> None:
    placed = on_terminal("plan", desk.flow(2), "--cluster", desk.cluster)
    wrong = on_terminal("plan", desk.file("bad.yaml", workflow(1).replace("image", "imge")), "--cluster", desk.cluster)

    assert (placed.code, wrong.code) == (0, 3)
    assert "\x1b[" in placed.out
    assert [mark for mark in "╷│╵" if mark not in wrong.out] == []


def test_a_terminal_that_wants_no_colour_gets_none(desk: SampleFolder) -> None:
    done = on_terminal("plan", desk.file("bad.yaml", "workflow: {}"), "--cluster", desk.cluster, NO_COLOR="1")

    assert done.code == 3
    assert escapes(done.out) == []


def test_names_in_files_never_drive_the_terminal(desk: SampleFolder) -> None:
    """An owner in a cluster file, and a value in a workflow that is quoted in an error."""
    evil = json.dumps(EVIL)
    cluster = desk.file(
        "evil.yaml", f"nodes: [{{name: n1, gpu: 8}}]\npods: [{{owner: {evil}, node: n1, gpu: 8, name: p}}]"
    )
    fine = desk.file("fine.yaml", workflow(1, topology=""))
    wrong = desk.file("wrong.yaml", workflow(1, topology=f"{{key: {evil}, group: {evil}}}"))

    waiting = on_terminal("plan", fine, "--cluster", cluster)
    faulty = on_terminal("plan", wrong, "--cluster", desk.cluster)

    assert faulty.code == 3
    for done in (waiting, faulty):
        assert "\x07" not in done.out
        assert "\x1b]0" not in done.out


def test_names_in_json_are_escaped_by_json(desk: SampleFolder) -> None:
    done = spawn(
        "plan", desk.file("w.yaml", f"workflow: {{{json.dumps(EVIL)}: 1}}"), "--cluster", desk.cluster, "-o", "json"
    )

    assert done.code == 3
    assert json.loads(done.out)["errors"]
    assert escapes(done.out) == []


def test_a_reader_that_stops_reading_is_left_without_a_word(desk: SampleFolder) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            [*PROGRAM, "plan", desk.flow(2), "--cluster", desk.cluster],
            stdin=subprocess.DEVNULL,
            stdout=closed,
            stderr=subprocess.PIPE,
            env=environment(),
            check=False,
            timeout=TIMEOUT_S,
        )

    assert done.stderr == b""
    assert done.returncode == 141


@LINUX
@pytest.mark.parametrize("output", ["table", "json", "help"])
def test_a_full_disk_is_one_error_with_a_hint(desk: SampleFolder, output: str) -> None:
    how = ["--help"] if output == "help" else ["-o", output]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*PROGRAM, "plan", desk.flow(2), "--cluster", desk.cluster, *how],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            check=False,
            timeout=TIMEOUT_S,
            text=True,
        )

    assert done.returncode == 1
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["error", "hint"], done.stderr


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_no_fault(desk: SampleFolder, output: str, closed: str) -> None:
    done = subprocess.run(
        [
            "/bin/sh",
            "-c",
            f'"$@" {closed}',
            "sh",
            *PROGRAM,
            "plan",
            desk.flow(2),
            "--cluster",
            desk.cluster,
            "-o",
            output,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(),
        check=False,
        timeout=TIMEOUT_S,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupt_ends_a_call_that_waits_for_its_input(desk: SampleFolder) -> None:
    """More than a pipe holds was written: once that is accepted, the process is reading and waits for the rest."""
    with subprocess.Popen(
        [*PROGRAM, "plan", desk.flow(2), "--cluster", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdin
        assert process.stderr
        process.stdin.write(b" " * (4 << 20))
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        process.wait(TIMEOUT_S)
        said = process.stderr.read().decode()

    assert process.returncode == 130
    assert "Traceback" not in said


@LINUX
def test_an_unexpected_error_shows_its_traceback_only_when_asked(desk: SampleFolder) -> None:
    """A file that vanishes while it is read may get here; no text of a user should."""
    done = spawn("plan", "/proc/self/mem", "--cluster", desk.cluster)

    assert done.code in {1, 2}
    assert quiet(done, "error: ")


def test_help_and_version_load_nothing_heavy() -> None:
    assert loaded(["--help"], ["--version"]) == ([0, 0], [])


def test_commands_that_only_ask_a_service_load_nothing_heavy() -> None:
    """Heavy modules take seconds to load on a busy machine. No service answers here, after all of them are loaded."""
    codes, found = loaded(*ASKING, COTERIE_SERVER="http://127.0.0.1:1")

    assert codes == [75] * len(ASKING)
    assert set(found) <= {"pydantic"}  # by which Typer itself reads options; models of ours would come on top of it
