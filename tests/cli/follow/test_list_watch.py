"""Followers of a service: lists and logs continue when the service stops and returns."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.command import PROGRAM, TIMEOUT_S, at_terminal, call, environment, read_until
from tests.cli.service_fixtures import ServiceFixture, flow, furnished, serving, unused_port

pytestmark = pytest.mark.slow("starts a service and follows it in other processes, some of them at a terminal")


@contextmanager
def _following(hall: ServiceFixture, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*PROGRAM, *arguments, "--server", hall.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    ) as process:
        yield process


def _line_with(process: subprocess.Popen[str], words: str) -> str:
    assert process.stdout
    return next(line for line in process.stdout if words in line)


def _interrupted(process: subprocess.Popen[str]) -> str:
    """Press Ctrl-C, and return what is then said."""
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=TIMEOUT_S)
    return err.strip()


def test_a_watched_list_appends_a_line_for_each_change_until_interrupted(hall: ServiceFixture) -> None:
    with _following(hall, "list", "--watch", "--name", "lines") as process:
        ident = hall.submit("true", name="lines")
        assert _line_with(process, "COMPLETED") == f"{ident}  COMPLETED\n"
        said = _interrupted(process)

    assert process.returncode == 130
    assert said == ""


def test_a_watched_list_of_json_tells_what_changed_and_what_left_it(hall: ServiceFixture) -> None:
    flag = hall.folder / "leave"
    ident = hall.submit(f"while ! test -e {flag}; do sleep 0.1; done", name="typed")
    with _following(hall, "list", "--watch", "--active", "--name", "typed", "-o", "json") as process:
        first = json.loads(_line_with(process, '"RUNNING"'))
        flag.touch()
        last = json.loads(_line_with(process, '"left"'))
        _interrupted(process)

    assert (first["type"], first["id"]) == ("workflow", ident)
    assert last == {"type": "left", "id": ident}
    assert process.returncode == 130


def test_a_watched_list_is_redrawn_on_a_terminal_with_marks_at_what_is_new(hall: ServiceFixture) -> None:
    ident = hall.submit("true", name="drawn")
    hall.finished(ident)
    arguments = ("list", "--watch", "--name", "drawn", "--server", hall.url)
    with at_terminal(*arguments, NO_COLOR="1") as (process, terminal):
        read_until(terminal, ident)
        hall.submit("true", name="drawn")
        said = read_until(terminal, "drawn-2")
        process.send_signal(signal.SIGINT)
        said += read_until(terminal, None)
        process.wait(TIMEOUT_S)

    assert "+  drawn-2" in said
    assert "Traceback" not in said
    assert process.returncode == 130


def test_a_list_can_be_watched_as_lines_names_and_json_only(hall: ServiceFixture) -> None:
    assert hall.call("list", "--watch", "-o", "yaml").code == 2


def test_a_followed_log_goes_on_where_it_was_when_the_service_comes_back(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    script = f"echo one; while ! test -e {flag}; do sleep 0.1; done; echo two"
    with serving(furnished(tmp_path), unused_port()) as (url, _):
        hall = ServiceFixture(url, tmp_path)
        ident = hall.submit(script, name="talk")
        hall.call("wait", ident, "--for", "running", "--timeout", "2m")
        process = subprocess.Popen(
            [*PROGRAM, "logs", ident, "--follow", "--server", url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            text=True,
        )
        assert process.stdout
        assert process.stderr
        first = process.stdout.readline()
    gone = process.stderr.readline()
    with serving(tmp_path, urlsplit(url).port or 0):
        back = process.stderr.readline()
        flag.touch()
        rest, err = process.communicate(timeout=TIMEOUT_S)

    assert (first, rest, err) == ("one\n", "two\n", "")
    assert "waiting for it to return" in gone
    assert "is back" in back
    assert process.returncode == 0


def test_a_followed_log_of_a_service_that_stays_away_ends_with_that(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    impatient = "from coterie.cli.client import client; client._PATIENCE_S = 0.5; from coterie.cli import main; main()"
    with serving(furnished(tmp_path)) as (url, _):
        ident = ServiceFixture(url, tmp_path).submit(
            f"echo one; while ! test -e {flag}; do sleep 0.1; done", name="left"
        )
        process = subprocess.Popen(
            [PROGRAM[0], "-c", impatient, "logs", ident, "--follow", "--server", url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            text=True,
        )
        assert process.stdout
        first = process.stdout.readline()
    rest, err = process.communicate(timeout=TIMEOUT_S)
    flag.touch()

    assert (first, rest) == ("one\n", "")
    assert process.returncode == 75
    assert "waiting for it to return" in err
    assert f"error: no service answers at {url}" in err


@pytest.mark.parametrize(("answer", "status"), [("d", "RUNNING"), ("s", "FAILED_CANCELED")])
def test_somebody_who_follows_a_submission_is_asked_whether_to_leave_or_to_stop_it(
    hall: ServiceFixture, answer: str, status: str
) -> None:
    name = f"asked{answer}"
    file = hall.file(f"{name}.yaml", flow("while :; do sleep 0.1; done", name=name))
    with at_terminal("submit", file, "--follow", "--server", hall.url) as (process, terminal):
        read_until(terminal, "RUNNING")
        process.send_signal(signal.SIGINT)
        asked = read_until(terminal, "ontinue? ")
        os.write(terminal, f"{answer}\n".encode())
        said = read_until(terminal, None)
        process.wait(TIMEOUT_S)
    view = hall.data("show", f"{name}-1")
    hall.call("cancel", f"{name}-1", "--force")

    assert "[D]etach, [s]top it, [c]ontinue?" in asked
    assert (f"coterie show {name}-1 --watch" in said) == (answer == "d")
    assert process.returncode == 130
    assert view["status"] == status


def test_nobody_at_a_terminal_means_that_a_followed_submission_goes_on(hall: ServiceFixture) -> None:
    file = hall.file("alone.yaml", flow("while :; do sleep 0.1; done", name="alone"))
    with _following(hall, "submit", str(file), "--follow") as process:
        assert process.stdout
        assert process.stdout.readline() == "alone-1\n"
        assert hall.call("wait", "alone-1", "--for", "running", "--timeout", "2m").code == 0
        said = _interrupted(process)

    assert process.returncode == 130
    assert "alone-1 keeps running" in said
    assert hall.data("show", "alone-1")["status"] == "RUNNING"
    assert call("cancel", "alone-1", "--force", "--server", hall.url).code == 0
