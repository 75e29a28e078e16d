"""Files of local tasks: container paths in commands, file inputs, and outputs read by other tasks."""

# ruff: noqa: S108 - these are paths of containers, and nothing is made there
from __future__ import annotations

import contextlib
import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.backends.local.container_paths import translated, translation
from coterie.backends.local.files import trash
from coterie.backends.local.supervisor import Supervisor
from coterie.backends.local.work_order import AttemptEnded, WorkOrder
from coterie.errors import Unavailable, UsageError
from tests.backends.local.builders import ended, key, log, order, piece, reached, shell, supervising
from tests.eventually import eventually

HOME = "/r/w-1/g/t/1"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("/tmp/run.sh", f"{HOME}/files/tmp/run.sh"),
        ("--file=/tmp/run.sh", f"--file={HOME}/files/tmp/run.sh"),
        ("'/tmp/run.sh';\"/tmp/run.sh\"", f"'{HOME}/files/tmp/run.sh';\"{HOME}/files/tmp/run.sh\""),
        ("see /tmp/run.sh.", f"see {HOME}/files/tmp/run.sh."),
        ("/tmp/run.sh.old", "/tmp/run.sh.old"),
        ("/tmp/run.sh2", "/tmp/run.sh2"),
        ("/my/tmp/run.sh", "/my/tmp/run.sh"),
        ("$HOME/tmp/run.sh ${HOME}/tmp/run.sh", "$HOME/tmp/run.sh ${HOME}/tmp/run.sh"),
        ("/tmp", "/tmp"),
        ("/coterie/output", f"{HOME}/output"),
        ("/coterie/output/model.pt", f"{HOME}/output/model.pt"),
        ("/coterie/output2", "/coterie/output2"),
        ("/coterie/input/0/x", "/r/w-1/g/before/3/output/x"),
        ("/coterie/input/1/x", f"{HOME}/inputs/coterie/input/1/x"),
        ("/mnt/data/a", "/data/a"),
        ("/mnt/data/file", f"{HOME}/files/mnt/data/file"),
    ],
)
def test_a_path_is_replaced_where_it_stands_on_its_own(text: str, wanted: str) -> None:
    one = order(
        text,
        files=(("/tmp/run.sh", ""), ("/mnt/data/file", b"")),
        inputs={"/coterie/input/0": key("before", 3), "/coterie/input/1": None},
        mounts={"/mnt/data": "/data"},
    )
    assert translation(one, "/r")(text) == wanted
    assert translated(one, "/r").command == (wanted,)


@given(st.text(alphabet="/tmprun.sh -x", max_size=40))
def test_a_text_without_the_whole_path_stays_as_it_is(text: str) -> None:
    found = translation(order("x", files=(("/tmp/run.sh", ""),)), "/r")(text)
    assert (found == text) == (f"{HOME}/files/tmp/run.sh" not in found)


def test_files_land_in_the_folder_of_the_task_and_commands_find_them(supervisor: Supervisor, tmp_path: Path) -> None:
    files = (
        ("/tmp/coterie-test/run.sh", "#!/bin/sh\ncat /tmp/coterie-test/data; cat $OTHER\n"),
        ("/tmp/coterie-test/data", b"\xff\n"),
        ("/etc/other", "other /etc/other\n"),
    )
    ended(supervisor, order("/tmp/coterie-test/run.sh", files=files, environment={"OTHER": "/etc/other"}))
    home = tmp_path / "root" / key().path
    assert piece(supervisor, key()) == b"\xff\nother " + f"{home}/files/etc/other\n".encode()
    assert not Path("/tmp/coterie-test").exists()
    assert not Path("/etc/other").exists()


def test_one_task_reads_what_another_wrote(supervisor: Supervisor) -> None:
    ended(supervisor, shell("echo hello > /coterie/output/x", task="first"))
    ended(supervisor, shell("cat /coterie/input/0/x", inputs={"/coterie/input/0": key("first")}))
    assert log(supervisor) == "hello\n"


def test_an_input_that_no_task_fills_is_an_empty_folder(supervisor: Supervisor) -> None:
    [found] = ended(supervisor, shell("cd /coterie/input/0 && ls", inputs={"/coterie/input/0": None}))
    assert (found.exit_code, log(supervisor)) == (0, "")


@pytest.mark.parametrize(
    "path",
    ["../x", "/../x", "/a/../../x", "x", "", "/", "/a//b", "/a/.", "/a\0b", "/coterie/output", f"/{'x' * 256}"],
)
def test_a_file_that_would_leave_its_folder_is_refused(supervisor: Supervisor, tmp_path: Path, path: str) -> None:
    with pytest.raises(UsageError) as caught:
        supervisor.start([order("true", files=((path, "x"),))])
    assert caught.value.hint
    assert not (tmp_path / "root" / "w-1").exists()


@pytest.mark.parametrize("paths", [("/a", "/a"), ("/a", "/a/b"), ("/a/b/c", "/a")])
def test_files_that_stand_in_each_others_way_are_refused(supervisor: Supervisor, paths: tuple[str, str]) -> None:
    with pytest.raises(UsageError):
        supervisor.start([order("true", files=tuple((path, "") for path in paths))])


def test_an_input_that_would_leave_its_folder_is_refused(supervisor: Supervisor) -> None:
    with pytest.raises(UsageError):
        supervisor.start([order("true", inputs={"/../../x": None})])


def test_a_link_in_the_way_is_not_followed(supervisor: Supervisor, tmp_path: Path) -> None:
    """A log is a file of the folder; a task that puts a link there does not make us read another."""
    (tmp_path / "secret").write_text("secret")
    [found] = ended(supervisor, shell(f"rm ../log; ln -s {tmp_path}/secret ../log"))
    assert found.exit_code == 0
    with pytest.raises(Exception, match="cannot be read"):
        piece(supervisor, key())


@pytest.mark.parametrize("made", ["mkfifo {}", "ln -s /dev/zero {}"])
@pytest.mark.parametrize("file", ["log", "log.times", "exit", "pid", "claim", "order.json", "stop", "lost"])
def test_what_a_task_puts_in_place_of_a_file_never_blocks_a_reader(tmp_path: Path, file: str, made: str) -> None:
    root = tmp_path / "root"
    with supervising(root) as supervisor:
        supervisor.start([shell(f"cd ..; rm -f {file}; {made.format(file)}; echo done")])
        reached(supervisor, key(), AttemptEnded)
        next_one = Supervisor(root)
        try:
            next_one.statuses()
            with contextlib.suppress(Unavailable):
                piece(next_one, key())
        finally:
            next_one.close()
        supervisor.remove(key().workflow)
        eventually(lambda: not list((root / ".trash").iterdir()))


def test_an_output_of_many_files_is_removed_in_pieces_with_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, paused = tmp_path / "root", list[int]()
    left = root / ".trash" / "w"
    for number in range(3):
        (left / str(number)).mkdir(parents=True)
        for file in range(20):
            (left / str(number) / str(file)).touch()
    monkeypatch.setattr(trash, "_PIECE", 10)
    collector = trash.TrashCollector(root)

    def wait(_: float) -> bool:
        paused.append(sum(len(files) for _, _, files in os.walk(root)))
        return False

    monkeypatch.setattr(collector._closed, "wait", wait)
    collector.wake()
    eventually(lambda: not list((root / ".trash").iterdir()))
    collector.close()
    # At most ten entries between two pauses, folders included.
    assert len(paused) == 6
    assert all(before - after <= 10 for before, after in pairwise([60, *paused]))


def test_an_output_of_very_deep_folders_is_removed(supervisor: Supervisor, tmp_path: Path) -> None:
    ended(supervisor, shell("cd ../output; for i in $(seq 1500); do mkdir d && cd -P d; done"))
    supervisor.remove(key().workflow)
    eventually(lambda: not list((tmp_path / "root" / ".trash").iterdir()))


def test_a_link_that_leads_out_of_the_root_is_not_taken(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    with supervising(elsewhere) as other, supervising(root) as supervisor:
        ended(other, order("true"))
        (root / "w-1").symlink_to(elsewhere / "w-1")
        with pytest.raises(Unavailable, match="a link leads out"):
            supervisor.start([order("true", attempt=2)])
        supervisor.remove(key().workflow)
        assert supervisor.statuses() == {}
        assert (elsewhere / key().path / "exit").exists()


def test_words_with_a_zero_byte_are_refused(supervisor: Supervisor) -> None:
    for one in (order("a\0b"), order("a", environment={"X": "\0"}), WorkOrder(key(), ())):
        with pytest.raises(UsageError):
            supervisor.start([one])
