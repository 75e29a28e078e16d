"""`coterie top` of a service: the current usage of its pools, and its changes."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import PROGRAM, TIMEOUT_S, at_terminal, environment, read_until, spawn
from tests.cli.service_fixtures import CONFIG, ServiceFixture, furnished, serving
from tests.eventually import eventually

pytestmark = pytest.mark.slow("starts a service and asks it in other processes, some of them at a terminal")

LONG = "sleep 300"
SECOND = """\
  spare:
    backend: here
    node_selector: {topology.kubernetes.io/rack: r1}
    topology_keys:
    - {key: rack, label: topology.kubernetes.io/rack}
"""


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceFixture]:
    """Start a service with a pool of two racks, and one that has a rack of these too."""
    folder = furnished(tmp_path_factory.mktemp("yard"))
    (folder / "coterie.yaml").write_text(CONFIG + SECOND, encoding="utf-8")
    with serving(folder) as (url, _):
        yield ServiceFixture(url, folder)


def _running(hall: ServiceFixture, name: str) -> str:
    ident = hall.submit(LONG, "--pool", "lab", name=name, gpus=8)
    assert hall.call("wait", ident, "--for=running", "--timeout", "2m").code == 0
    return ident


def test_pools_domains_sharing_and_who_uses_most_are_shown(yard: ServiceFixture) -> None:
    ident = _running(yard, "most")
    done, found = yard.call("top"), yard.data("top")
    rows = {line.split("  ")[0]: line.split() for line in done.out.splitlines()}
    yard.call("cancel", ident)
    yard.finished(ident)

    assert done.code == 0, done.err
    assert {"lab (shared)", "spare (shared)", "total"} <= rows.keys()
    # The pod of the cluster file has one node, the workflow another.
    assert rows["total"][1:] == ["16/32", "50%", "16", "2/2/0/4"]
    assert found["total"]["nodes"] == {"allocated": 2, "idle": 2, "other": 0, "total": 4}
    assert {one["owner"] for one in found["holders"]} == {ident, "wf-12"}
    assert [pool["shared_with"] for pool in found["pools"]] == [["spare"], ["lab"]]


def test_one_pool_is_shown_alone_and_still_known_to_be_shared(yard: ServiceFixture) -> None:
    found = yard.data("top", "--pool", "spare", "--level", "rack")
    wide = yard.call("top", "-p", "spare", "-o", "wide")

    assert [pool["name"] for pool in found["pools"]] == ["spare"]
    assert found["pools"][0]["shared_with"] == ["lab"]
    assert found["total"]["nodes"]["total"] == 2
    assert "LIMIT" in wide.out


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--pool", "spar"], 4, 'Did you mean "spare"?'),
        (["--level", "rak"], 2, "Levels are: zone, rack."),
        (["--watch", "-o", "yaml"], 2, "Use -o json"),
    ],
)
def test_what_there_is_not_is_said(yard: ServiceFixture, options: list[str], code: int, words: str) -> None:
    done = yard.call("top", *options)

    assert (done.code, words in done.out + done.err) == (code, True), done.err


def test_a_watch_in_a_pipe_appends_a_line_for_each_row_that_changes(yard: ServiceFixture) -> None:
    arguments = [*PROGRAM, "top", "--watch", "--level", "rack", "-o", "json", "--pool", "lab", "--server", yard.url]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, env=environment(), text=True) as process:
        assert process.stdout
        first = next(json.loads(line) for line in process.stdout if '"total"' in line and '"type": "total"' in line)
        ident = yard.submit(LONG, "--pool", "lab", name="piped", gpus=8)
        grown = next(json.loads(line) for line in process.stdout if '"type": "total"' in line)
        yard.call("cancel", ident)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)
    yard.finished(ident)

    assert process.returncode == 130
    assert grown["gpus"]["used"] == first["gpus"]["used"] + 8
    assert set(grown) == {"type", "name", "gpus", "nodes"}


def test_a_watch_on_a_terminal_is_drawn_anew_and_marks_what_has_changed(yard: ServiceFixture) -> None:
    with at_terminal("top", "--watch", "--pool", "lab", "--server", yard.url, NO_COLOR="1") as (process, terminal):
        read_until(terminal, "total")
        ident = yard.submit(LONG, "--pool", "lab", name="drawn", gpus=8)
        said = read_until(terminal, "+  total")
        process.send_signal(signal.SIGINT)
        read_until(terminal, None)
        process.wait(TIMEOUT_S)
    yard.call("cancel", ident)
    yard.finished(ident)

    assert "+  lab" in said
    assert process.returncode == 130


def test_the_names_of_pools_are_completed(yard: ServiceFixture) -> None:
    def completed() -> list[str]:
        done = spawn(
            _COTERIE_COMPLETE="complete_bash",
            COMP_WORDS="coterie top --pool s",
            COMP_CWORD="3",
            COTERIE_SERVER=yard.url,
            COTERIE_CONFIG="",
        )
        return done.out.split()

    # Where the service does not answer at once, nothing is completed.
    eventually(lambda: completed() == ["spare"])


def test_no_service_is_no_traceback(tmp_path: Path) -> None:
    done = spawn("top", COTERIE_STATE=str(tmp_path), COTERIE_SERVER="http://127.0.0.1:1")

    assert (done.code, "Traceback" in done.err) == (75, False)
