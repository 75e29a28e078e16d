"""The supervisor of local tasks: exit codes, environment, start failures and reported state."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from coterie.backends.local.supervisor import Supervisor
from coterie.backends.local.work_order import AttemptAbsent, AttemptEnded, AttemptKey, WorkOrder
from coterie.errors import Unavailable, UsageError
from tests.backends.local.builders import (
    asleep,
    children,
    ended,
    key,
    left,
    log,
    order,
    piece,
    reached,
    running,
    shell,
    supervising,
)
from tests.eventually import eventually


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (("true",), 0, ""),
        (("sh", "-c", "exit 7"), 7, ""),
        (("no-such-command",), 127, "it was not found on PATH"),
        (("/no/such/file",), 127, "there is no such file"),
        (("",), 127, "cannot run"),
        (("/etc/passwd",), 126, "it is not executable"),
        (("/",), 126, "it is not executable"),
        (("sh", "-c", "kill -9 $$"), 137, ""),
        (("sh", "-c", "kill -TERM $$"), 143, ""),
    ],
)
def test_an_exit_code_is_what_a_shell_would_say(
    supervisor: Supervisor, command: tuple[str, ...], code: int, words: str
) -> None:
    [found] = ended(supervisor, order(*command))
    assert (found.exit_code, found.why, found.note) == (code, "exited", "")
    assert words in log(supervisor)


def test_a_script_whose_interpreter_is_missing_says_so(supervisor: Supervisor) -> None:
    [found] = ended(supervisor, order("/run.sh", files=(("/run.sh", "#!/no/such/thing\n"),)))
    assert found.exit_code == 127
    assert "interpreter" in log(supervisor)


def test_a_script_without_an_interpreter_says_so(supervisor: Supervisor) -> None:
    [found] = ended(supervisor, order("/run.sh", files=(("/run.sh", "echo hello\n"),)))
    assert found.exit_code == 126
    assert "#!" in log(supervisor)


def test_a_command_that_is_too_long_for_the_machine_says_so(supervisor: Supervisor) -> None:
    [found] = ended(supervisor, order("echo", *["x" * 100_000] * 80))
    assert found.exit_code == 126
    assert "too long" in log(supervisor)


def test_a_task_sees_its_own_environment_and_little_of_ours(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")
    ended(supervisor, order("env", environment={"MINE": "a b\nc", "COTERIE_NODE": "n1"}))
    found = log(supervisor)
    assert "MINE=a b\nc\n" in found
    assert "COTERIE_NODE=n1\n" in found
    assert f"PATH={os.environ['PATH']}\n" in found
    assert "DATABASE_PASSWORD" not in found


def test_a_task_cannot_take_off_its_mark(supervisor: Supervisor) -> None:
    ended(supervisor, order("env", environment={"COTERIE_MARK": "nobody"}))
    assert "nobody" not in log(supervisor)


def test_a_task_starts_in_an_empty_folder_and_has_one_for_temporary_files(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    ended(supervisor, shell('ls -A; touch "$TMPDIR/x" "$COTERIE_OUTPUT/y"; basename "$PWD"'))
    assert log(supervisor) == "work\n"
    assert os.listdir(tmp_path / "root" / key().path / "output") == ["y"]  # noqa: PTH208 - one name


def test_standard_input_is_empty(supervisor: Supervisor) -> None:
    [found] = ended(supervisor, order("cat"))
    assert found.exit_code == 0


def test_output_and_errors_come_in_the_order_in_which_they_were_written(supervisor: Supervisor) -> None:
    ended(supervisor, shell("echo one; echo two >&2; echo three"))
    assert log(supervisor) == "one\ntwo\nthree\n"


def test_a_log_is_read_piece_by_piece(supervisor: Supervisor) -> None:
    ended(supervisor, shell("printf 0123456789"))
    assert [piece(supervisor, key(), offset, 4) for offset in (0, 4, 8, 12, -3)] == [
        b"0123",
        b"4567",
        b"89",
        b"",
        b"789",
    ]


def test_bytes_that_are_no_text_come_out_as_they_are(supervisor: Supervisor) -> None:
    body = bytes(range(256)) * 100
    ended(supervisor, order("cat", "/data.bin", files=(("/data.bin", body),)))
    assert piece(supervisor, key()) == body


def test_a_log_never_grows_beyond_its_limit_and_says_where_it_was_cut(supervisor: Supervisor) -> None:
    [found] = ended(
        supervisor, shell("echo begin; head -c 10000000 /dev/zero | tr '\\0' x; echo; echo end", log_bytes=65536)
    )
    text = log(supervisor)
    assert found.exit_code == 0
    assert 60_000 < len(text) <= 65536
    assert text.startswith("begin\nxxx")
    assert text.endswith("xxx\nend\n")
    assert "the limit of 65,536 bytes is reached" in text
    missing = 10_000_000 + 11 - text.count("x") - len("begin\n\nend\n")
    assert f"[coterie: {missing:,} bytes omitted here]" in text


def test_lines_carry_the_time_where_that_is_wanted(supervisor: Supervisor) -> None:
    ended(supervisor, shell("echo a; echo b", timestamps=True))
    lines = log(supervisor).splitlines()
    assert [line.split(" ")[1] for line in lines] == ["a", "b"]
    assert all(line[4] == "-" and line[10] == "T" and line[23] == "Z" for line in lines)


def test_the_same_attempt_runs_once_however_often_it_is_started(supervisor: Supervisor, tmp_path: Path) -> None:
    one = shell(f"echo x >> {tmp_path}/runs")
    for _ in range(3):
        ended(supervisor, one)
    ended(supervisor, shell(f"echo x >> {tmp_path}/runs", attempt=2))
    assert (tmp_path / "runs").read_text() == "x\nx\n"


def test_what_a_task_leaves_behind_ends_with_it(supervisor: Supervisor, tmp_path: Path) -> None:
    span = f"1000.{os.getpid()}1"
    script = f"""
        sleep {span} &
        setsid sleep {span} &
        (setsid sh -c 'trap "" TERM HUP; sleep {span} & sleep {span}' &)
        env -i setsid setsid sleep {span} &
        echo done
    """
    [found] = ended(supervisor, shell(script))
    assert (found.exit_code, found.note) == (0, "")
    assert left(tmp_path / "root") == asleep(span) == []


def test_no_zombie_is_left(supervisor: Supervisor) -> None:
    others = children(os.getpid())
    ended(supervisor, *(order("true", task=f"t{number}") for number in range(5)))
    supervisor.start([order("sleep", "1000")])
    nurseries = children(os.getpid()) - others
    supervisor.kill(key())
    eventually(
        lambda: not any(map(children, nurseries)) and isinstance(supervisor.status(key()), AttemptEnded),
        "no shim is left",
    )
    assert children(os.getpid()) - others == nurseries


def test_a_limit_of_years_does_no_harm(supervisor: Supervisor) -> None:
    supervisor.start([shell("sleep 0.01", timeout_s=3e8)])
    assert supervisor.wait(3e8)
    assert getattr(reached(supervisor, key(), AttemptEnded), "exit_code", None) == 0


def test_what_was_archived_can_be_read_and_comes_back_with_the_next_order(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    ended(supervisor, shell("echo first; echo left > ../output/said"))
    supervisor.archive(key().workflow)
    assert supervisor.statuses() == {}
    assert supervisor.archived() == {key().workflow}
    assert piece(supervisor, key()) == b"first\n"
    before = tmp_path / "root" / key().path / "output/said"
    assert before.read_text() == "left\n", "it is found where it was"
    supervisor.archive(key().workflow)
    assert before.read_text() == "left\n", "however often it is archived"
    ended(supervisor, shell("echo second", attempt=2))
    assert before.read_text() == "left\n", "and when it is back"
    assert supervisor.statuses().keys() == {key(), key(attempt=2)}
    assert supervisor.archived() == set()
    supervisor.archive(key().workflow)
    supervisor.remove(key().workflow)
    assert piece(supervisor, key()) == b""
    assert supervisor.archived() == set()
    assert not (tmp_path / "root" / key().workflow).is_symlink()
    assert not (tmp_path / "root" / key().workflow).exists()


def test_what_was_archived_is_found_where_it_was_by_the_next_supervisor(tmp_path: Path) -> None:
    with supervising(tmp_path / "root") as before:
        ended(before, shell("echo left > ../output/said"))
        before.archive(key().workflow)
    (tmp_path / "root" / key().workflow).unlink(missing_ok=True)  # as a crash in between leaves it
    with supervising(tmp_path / "root") as after:
        assert after.statuses() == {}
        assert (tmp_path / "root" / key().path / "output/said").read_text() == "left\n"
        after.remove(key().workflow)
    assert [path.name for path in (tmp_path / "root").iterdir() if not path.name.startswith(".")] == []


def test_what_still_runs_is_not_archived(supervisor: Supervisor) -> None:
    running(supervisor, order("sleep", "1000"))
    supervisor.archive(key().workflow)
    assert supervisor.statuses().keys() == {key()}
    assert supervisor.archived() == set()


def test_a_workflow_that_is_removed_leaves_no_folder(supervisor: Supervisor, tmp_path: Path) -> None:
    ended(supervisor, shell("mkdir ../output/locked; touch ../output/locked/x; chmod 0 ../output/locked"))
    supervisor.remove(key().workflow)
    assert supervisor.status(key()) == AttemptAbsent()
    assert [path.name for path in (tmp_path / "root").iterdir() if not path.name.startswith(".")] == []
    eventually(lambda: not list((tmp_path / "root" / ".trash").iterdir()))
    supervisor.remove(key().workflow)


@pytest.mark.parametrize("archived", [True, False])
def test_a_workflow_of_many_tasks_is_removed_in_one_move(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, archived: bool
) -> None:
    root, moved, rename = tmp_path / "root", list[Path](), Path.rename
    ended(supervisor, *(shell("true", task=f"t{number}") for number in range(10)))
    if archived:
        supervisor.archive(key().workflow)

    def noted(path: Path, target: Path) -> Path:
        if threading.current_thread() is threading.main_thread():
            moved.append(path)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", noted)
    supervisor.remove(key().workflow)
    # Each place where its folder may be is tried.
    assert moved == [root / key().workflow, root / ".ended" / key().workflow]
    assert not supervisor.statuses()
    assert not os.path.lexists(root / key().workflow)
    eventually(lambda: not list((root / ".trash").iterdir()))


def test_a_damaged_folder_is_a_lost_attempt_and_no_error(tmp_path: Path) -> None:
    folder = tmp_path / "root" / key().path
    folder.mkdir(parents=True)
    (folder / "order.json").write_text("{")
    with supervising(tmp_path / "root") as supervisor:
        assert "damaged" in str(supervisor.status(key()))


def test_a_folder_that_somebody_removed_is_a_lost_attempt_and_leaves_nothing_running(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    supervisor.start([shell("rm -rf ../../1; sleep 0.1")])
    found = reached(supervisor, key(), AttemptEnded)
    assert "removed" in str(found)
    assert left(tmp_path / "root") == []


@pytest.mark.parametrize("part", ["", "..", ".", "a/b", "/a", ".hidden", "a\0", "a b", "-x", "x" * 201])
def test_nothing_that_leads_elsewhere_is_part_of_a_key(part: str) -> None:
    with pytest.raises(UsageError):
        AttemptKey(part, "g", "t", 1)


def test_a_root_that_a_shell_would_misread_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be used"):
        Supervisor(tmp_path / "with space")


def test_a_root_that_cannot_be_made_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="cannot open the folder of tasks") as caught:
        Supervisor(tmp_path / "file" / "root")
    assert "must belong to the user" in caught.value.hint


def test_orders_of_one_call_need_not_be_of_one_group(supervisor: Supervisor) -> None:
    other = WorkOrder(AttemptKey("w-2", "h", "t", 1), ("true",))
    assert [each.exit_code for each in ended(supervisor, order("true"), other)] == [0, 0]


def test_a_task_reacts_to_signals_as_usual_whatever_its_supervisor_ignores(tmp_path: Path) -> None:
    earlier = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        with supervising(tmp_path / "root") as supervisor:
            ended(supervisor, shell("grep -E 'Sig(Ign|Blk)' /proc/self/status"))
            said = log(supervisor)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGHUP, earlier)
    _, blocked, _, ignored = said.split()
    # Two numbers belong to the C library, and no program can set them.
    settable = sum(1 << (number - 1) for number in signal.valid_signals())
    assert (int(blocked, 16) & settable, int(ignored, 16) & settable) == (0, 0)
