"""`coterie run`: from a file to its result, in one process that leaves nothing behind."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command import (
    CLUSTER,
    PROGRAM,
    ROOT,
    TIMEOUT_S,
    SampleFolder,
    at_terminal,
    call,
    environment,
    escapes,
    read_until,
)
from tests.cli.service_fixtures import CONFIG, flow, furnished, serving

HELLO = ROOT / "examples/00-hello-rack"


@pytest.fixture(autouse=True)
def own_temporary_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def test_a_run_shows_what_happens_then_where_it_ran_and_leaves_nothing(own_temporary_folder: Path) -> None:
    done = call("run", HELLO / "workflow.yaml", "--cluster", HELLO / "cluster.yaml", "--set", "steps=1")

    assert done.code == 0
    assert "8/8  hello-rack-1" in done.out
    assert "1 constraint: 1 held" in done.out
    assert 'group "train" completed' in done.err
    assert "hello-rack-1 COMPLETED after" in done.err
    assert escapes(done.out + done.err) == []
    assert list(own_temporary_folder.iterdir()) == []


def test_the_output_of_tasks_is_printed_with_their_names() -> None:
    done = call("run", HELLO / "workflow.yaml", "-c", HELLO / "cluster.yaml", "--set", "steps=1", "--logs", "--quiet")

    assert "worker-1 | step 1: rank 1 of 2, rack blue, GPUs 0,1,2,3" in done.out.splitlines()
    assert any(line.startswith("summary  | training finished on") for line in done.out.splitlines())
    assert done.err == ""


@pytest.mark.parametrize(
    ("script", "tasks", "code", "words"),
    [
        ("echo fine", 1, 0, ""),
        ("echo sorry; exit 3", 1, 100, "exit code 3"),
        ("echo x", 3, 7, "wf-1 can never run here"),
        ("no-such-command", 1, 100, "127"),
    ],
)
def test_the_exit_code_is_the_result_of_the_workflow(
    desk: SampleFolder, script: str, tasks: int, code: int, words: str
) -> None:
    file = desk.file("wf.yaml", flow(script, tasks=tasks, gpus=8))

    done = call("run", file, "--cluster", desk.cluster, "--quiet")

    assert done.code == code
    assert words in done.err
    assert "Traceback" not in done.err


def test_what_a_failed_task_wrote_last_is_said(desk: SampleFolder) -> None:
    done = call("run", desk.file("wf.yaml", flow("echo sorry; exit 3")), "--cluster", desk.cluster, "--quiet")

    assert "t0: FAILED on a-r2-n2, exit code 3:\n  sorry\n" in done.err
    assert "error: wf-1 ended as FAILED after" in done.err


def test_a_run_that_nobody_can_make_room_for_ends_with_the_reason(desk: SampleFolder) -> None:
    """One node of the rack is held by pods of the cluster file, and they never end."""
    cluster = desk.file("full.yaml", CLUSTER + "- {owner: wf-13, node: a-r1-n1, gpu: 8}\n")

    done = call("run", desk.file("wf.yaml", flow(tasks=2, gpus=8)), "--cluster", cluster)

    assert done.code == 6
    assert "NoDomainFits" in done.err
    assert "would wait forever" in done.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--prefer", "rack"), "changed: rack is preferred instead of required"),
        (("--tasks", "g=1"), 'changed: group "g" runs 1 of 2 tasks; left out: t1'),
        (("--without", "wf-13"), ""),
    ],
)
def test_a_way_out_is_taken_by_running_with_its_option(desk: SampleFolder, options: tuple[str, ...], said: str) -> None:
    cluster = desk.file("full.yaml", CLUSTER + "- {owner: wf-13, node: a-r1-n1, gpu: 8}\n")

    done = call("run", desk.file("wf.yaml", flow(tasks=2, gpus=8)), "--cluster", cluster, *options)

    assert done.code == 0, done.err
    assert said in done.err


def test_that_images_are_not_used_is_said_once(desk: SampleFolder) -> None:
    done = call("run", desk.file("wf.yaml", flow(tasks=2)), "--cluster", desk.cluster)

    assert done.err.count("image is ignored: commands run on this machine, not in containers") == 1
    data = json.loads(call("run", desk.file("wf.yaml", flow()), "--cluster", desk.cluster, "-o", "json").out)
    assert [warning["code"] for warning in data["workflow"]["warnings"]] == ["FieldIgnored"]


def test_json_has_the_workflow_and_where_it_ran_and_nothing_else_is_on_standard_output(desk: SampleFolder) -> None:
    done = call("run", "-", "--cluster", desk.cluster, "-o", "json", stdin=flow().encode())

    found = json.loads(done.out)
    assert found["workflow"]["status"] == "COMPLETED"
    assert found["placement"]["summary"]["held"] == 1


def test_a_pool_of_a_configuration_is_run_in(desk: SampleFolder) -> None:
    _ = desk.cluster
    config = desk.file("coterie.yaml", CONFIG)

    done = call("run", desk.file("wf.yaml", flow()), "--config", config, "--pool", "lab", "--quiet")

    assert done.code == 0
    assert "1 held" in done.out


def test_without_a_cluster_this_machine_is_the_cluster(desk: SampleFolder) -> None:
    plain = flow(gpus=0).replace("topology: [{key: rack}]", "cpu: 0")

    assert call("run", desk.file("wf.yaml", plain), "--quiet").code == 0


def test_levels_can_be_given_for_one_run(desk: SampleFolder) -> None:
    bare = desk.file("bare.yaml", "nodes: [{name: n1, gpu: 8, cpu: 8, labels: {room: east}}]\n")

    done = call("run", desk.file("wf.yaml", flow()), "--cluster", bare, "--levels", "rack=room", "--quiet")

    assert "rack  required  held  east" in done.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("run", "nowhere.yaml"), 4),
        (("run", "wf.yaml", "--cluster", "nowhere.yaml"), 4),
        (("run", "wf.yaml", "--pool", "x"), 2),
        (("run", "wf.yaml", "--levels", "a=b", "--topology", "c"), 2),
        (("run", "cluster.yaml", "--cluster", "cluster.yaml"), 3),
        (("run", "-", "--cluster", "-"), 2),
        (("run", "wf.yaml"), 3),  # this machine has no racks
    ],
)
def test_a_call_that_is_wrong_is_refused_in_words(desk: SampleFolder, arguments: tuple[str, ...], code: int) -> None:
    _ = desk.cluster, desk.file("wf.yaml", flow())

    done = call(*arguments, cwd=desk.folder)

    assert done.code == code
    assert done.err.startswith("error")
    assert done.out == ""


def test_a_file_beside_the_workflow_is_sent_along_and_one_that_is_missing_is_said(desk: SampleFolder) -> None:
    listed = flow("cat /tmp/greeting").replace(
        "lead: true,", "lead: true, files: [{path: /tmp/greeting, localpath: greeting.txt}],"
    )
    file = desk.file("wf.yaml", listed)

    missing = call("run", file, "--cluster", desk.cluster, "--quiet")
    desk.file("greeting.txt", "good morning\n")
    there = call("run", file, "--cluster", desk.cluster, "--quiet", "--logs")

    assert missing.code == 3
    assert "greeting.txt" in missing.err
    assert "t0 | good morning" in there.out


def test_what_a_run_did_is_kept_in_the_folder_that_was_named(desk: SampleFolder) -> None:
    file = desk.file("wf.yaml", flow())

    for number in (1, 2):
        done = call("run", file, "--cluster", desk.cluster, "--state", desk.folder / "kept", "-o", "name", "--quiet")
        assert done.out == f"wf-{number}\n"


@contextmanager
def _running(desk: SampleFolder, script: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Start a run in a process of its own; it has begun once its task has written its first file."""
    with subprocess.Popen(
        [*PROGRAM, "run", desk.file("wf.yaml", flow(script)), "--cluster", desk.cluster, "--logs", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(TMPDIR=os.environ["TMPDIR"]),
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline().startswith("t0 | ")
        yield process


@pytest.mark.slow("interrupts or detaches a run at a terminal, and waits for its tasks")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_stops_the_workflow_and_waits_for_its_end(
    desk: SampleFolder, number: signal.Signals, own_temporary_folder: Path
) -> None:
    with _running(desk, "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done") as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == 130
    assert "t0 | bye" in out
    assert "stopping" in err
    assert "FAILED_CANCELED" in err
    assert list(own_temporary_folder.iterdir()) == []


@pytest.mark.slow("interrupts or detaches a run at a terminal, and waits for its tasks")
def test_a_second_interrupt_kills_tasks_that_do_not_listen(desk: SampleFolder, own_temporary_folder: Path) -> None:
    with _running(desk, "trap '' TERM; echo $$; while :; do sleep 0.1; done") as process:
        assert process.stderr
        process.send_signal(signal.SIGINT)
        for line in process.stderr:
            if "stopping" in line:
                break
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == 130, err
    assert "killing its tasks" in err
    assert list(own_temporary_folder.iterdir()) == []


@pytest.mark.slow("interrupts or detaches a run at a terminal, and waits for its tasks")
@pytest.mark.parametrize(("answer", "code"), [("s", 130), ("c", 0), ("", 0)])
def test_somebody_at_a_terminal_is_asked_what_to_do_about_an_interrupt(
    desk: SampleFolder, answer: str, code: int
) -> None:
    flag = desk.folder / "flag"
    file = desk.file("wf.yaml", flow(f"while ! test -e {flag}; do sleep 0.1; done"))
    with at_terminal("run", file, "--cluster", desk.cluster) as (process, terminal):
        read_until(terminal, "RUNNING")
        process.send_signal(signal.SIGINT)
        asked = read_until(terminal, "ontinue? ")
        os.write(terminal, f"{answer}\n".encode())
        if answer != "s":  # it might end before it is stopped
            flag.touch()
        read_until(terminal, None)
        process.wait(TIMEOUT_S)
    assert "[s]top it, [C]ontinue" in asked
    assert process.returncode == code


@pytest.mark.slow("interrupts or detaches a run at a terminal, and waits for its tasks")
def test_a_key_that_means_nothing_is_asked_about_again(desk: SampleFolder) -> None:
    file = desk.file("wf.yaml", flow("while :; do sleep 0.1; done"))
    with at_terminal("run", file, "--cluster", desk.cluster) as (process, terminal):
        read_until(terminal, "RUNNING")
        process.send_signal(signal.SIGINT)
        read_until(terminal, "ontinue? ")
        os.write(terminal, b"no\n")
        again = read_until(terminal, "ontinue? ")
        os.write(terminal, b"s\n")
        read_until(terminal, None)
        process.wait(TIMEOUT_S)

    assert '"no" is not one of s, C' in again
    assert process.returncode == 130


@pytest.mark.slow("interrupts or detaches a run at a terminal, and waits for its tasks")
def test_the_question_goes_away_when_the_workflow_ends_before_the_answer(desk: SampleFolder) -> None:
    flag = desk.folder / "flag"
    file = desk.file("wf.yaml", flow(f"while ! test -e {flag}; do sleep 0.1; done"))
    with at_terminal("run", file, "--cluster", desk.cluster) as (process, terminal):
        read_until(terminal, "RUNNING")
        process.send_signal(signal.SIGINT)
        read_until(terminal, "ontinue? ")
        flag.touch()
        ended = read_until(terminal, None)
        process.wait(TIMEOUT_S)

    assert "COMPLETED after" in ended
    assert process.returncode == 0


@pytest.mark.slow("interrupts or detaches a run at a terminal, and waits for its tasks")
def test_a_terminal_gets_a_table_that_is_redrawn(desk: SampleFolder) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*PROGRAM, "run", desk.file("wf.yaml", flow("sleep 0.5")), "--cluster", desk.cluster],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=environment(TERM="xterm-256color", COLUMNS="100", LINES="40"),
    ) as process:
        os.close(theirs)
        text = read_until(ours, None)

    assert process.returncode == 0
    assert "\x1b[" in text
    assert "NAME" in text
    assert "COMPLETED" in text


@pytest.mark.slow("interrupts or detaches a run at a terminal, and waits for its tasks")
def test_tasks_of_a_run_are_left_running_when_somebody_detaches_and_a_service_finds_them(desk: SampleFolder) -> None:
    furnished(desk.folder)
    flag, config, state = desk.folder / "flag", desk.folder / "coterie.yaml", desk.folder / "state"
    file = desk.file("wf.yaml", flow(f"while ! test -e {flag}; do sleep 0.1; done; echo done"))
    with at_terminal("run", file, "--config", config, "--state", state) as (process, terminal):
        read_until(terminal, "RUNNING")
        process.send_signal(signal.SIGINT)
        asked = read_until(terminal, "ontinue? ")
        os.write(terminal, b"d\n")
        left = read_until(terminal, None)
        process.wait(TIMEOUT_S)

    assert "[d]etach and leave its tasks running" in asked
    assert "it keeps running; resume with: coterie serve --config" in left
    assert process.returncode == 130
    with serving(desk.folder) as (url, _):
        assert call("show", "wf-1", "-o", "json", "--server", url).out.count("RUNNING")
        flag.touch()
        assert call("wait", "wf-1", "--timeout", "2m", "--server", url).code == 0
        assert call("logs", "wf-1", "--server", url).out == "done\n"


def test_levels_that_nobody_named_are_guessed_and_told_with_the_option_that_names_them(desk: SampleFolder) -> None:
    label = "topology.kubernetes.io/rack"
    bare = desk.file("bare.yaml", f"nodes: [{{name: n1, gpu: 8, cpu: 8, labels: {{{label}: east}}}}]\n")

    done = call("run", desk.file("wf.yaml", flow()), "--cluster", bare)

    assert done.code == 0
    assert "warning[LevelsGuessed]" in done.err
    assert f"--levels rack={label}" in done.err


def test_a_command_that_is_missing_here_may_be_in_the_image_which_is_not_used(desk: SampleFolder) -> None:
    missing = desk.file("missing.yaml", flow("no-such-command"))

    assert "hint: Images are not used here" in call("run", missing, "--cluster", desk.cluster, "--quiet").err
