"""Tasks under accounts of their own: they reach neither the service nor the tasks of others. Needs root."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from coterie.backends.base.settings import TaskAccounts
from coterie.backends.local.machine.accounts import AccountTable
from coterie.backends.local.supervisor import ProcessLimits, Supervisor
from coterie.backends.local.work_order import AttemptEnded, AttemptKey, AttemptLost, AttemptRunning, WorkOrder
from coterie.errors import UsageError
from tests.cgroup_2 import on_cgroup_2
from tests.eventually import eventually

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes under other accounts")

ANN, BOB = 1_900_000_001, 1_900_000_002


@pytest.fixture
def state() -> Iterator[Path]:
    """Give a folder that other accounts can enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="coterie-accounts-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


@pytest.fixture
def supervisor(state: Path) -> Iterator[Supervisor]:
    found = Supervisor(state / "tasks", ProcessLimits(processes=8), accounts=True)
    yield found
    for workflow in ("ann-1", "bob-1"):
        found.remove(workflow)
    found.close()


def order(workflow: str, task: str, script: str, account: int | None, **rest: object) -> WorkOrder:
    return WorkOrder(AttemptKey(workflow, "g", task), ("sh", "-c", script), account=account, **rest)  # type: ignore[arg-type]


def ended(supervisor: Supervisor, wanted: WorkOrder) -> AttemptEnded:
    eventually(lambda: isinstance(supervisor.status(wanted.key), AttemptEnded | AttemptLost))
    found = supervisor.status(wanted.key)
    assert isinstance(found, AttemptEnded), found
    return found


def log(state: Path, wanted: WorkOrder) -> str:
    return (state / "tasks" / wanted.key.path / "log").read_text(encoding="utf-8")


def said_pid(state: Path, wanted: WorkOrder) -> int:
    path = state / "tasks" / wanted.key.path / "log"
    eventually(lambda: path.exists() and path.read_text(encoding="utf-8").strip().isdigit())
    return int(path.read_text(encoding="utf-8"))


def test_a_task_runs_under_its_account_in_folders_of_its_own(supervisor: Supervisor, state: Path) -> None:
    maker = order("ann-1", "maker", "echo made > $COTERIE_OUTPUT/it; cd; pwd; id -u; id -g; id -G", ANN)
    supervisor.start([maker])
    assert ended(supervisor, maker).exit_code == 0
    home = state / "tasks" / maker.key.path
    assert log(state, maker).split() == [str(home / "work"), str(ANN), str(ANN), str(ANN)]
    assert stat.S_IMODE((home / "launch").stat().st_mode) == 0o600
    assert {stat.S_IMODE((home / name).stat().st_mode) for name in ("work", "output", "tmp")} == {0o700}

    reader = order("ann-1", "reader", "cat /in/it", ANN, inputs={"/in": maker.key}, files=(("/opt/x.sh", "true"),))
    supervisor.start([reader])
    assert ended(supervisor, reader).exit_code == 0
    assert log(state, reader) == "made\n"


def test_a_task_reaches_nothing_of_the_service_or_of_others(supervisor: Supervisor, state: Path) -> None:
    store = state / "coterie.db"
    store.touch(0o600)
    victim = order("ann-1", "victim", "echo $$; exec sleep 600", ANN, environment={"SECRET": "key"})
    supervisor.start([victim])
    process = said_pid(state, victim)
    home = state / "tasks" / victim.key.path
    tries = [
        f"cat {store}",
        f"ls {state}",
        f"ls {state}/tasks",
        f"ls {state}/tasks/ann-1",
        f"cat {home}/launch",
        f"cat {home}/log",
        f"ls {home}/output",
        f"touch {home}/output/x",
        f"cat /proc/{process}/environ",
        f"cat /proc/{os.getpid()}/environ",
        f"kill -9 {process}",
        f"kill -9 {os.getpid()}",
        "kill -9 $PPID",
        "touch ../exit",
        "mv ../log ../gone",
        "cat ../launch",
    ]
    attacker = order(
        "bob-1", "attacker", "\n".join(f"({each}) && echo 'DONE {each}'" for each in tries) + "\ntrue", BOB
    )
    supervisor.start([attacker])

    assert ended(supervisor, attacker).exit_code == 0
    assert "DONE" not in log(state, attacker)
    assert "key" not in log(state, attacker)
    assert isinstance(supervisor.status(victim.key), AttemptRunning)


def test_nothing_survives_its_shim_even_in_a_session_of_its_own(supervisor: Supervisor, state: Path) -> None:
    escape = "env -i setsid sh -c 'setsid sleep 600 & echo $!; exit' & wait; sleep 600"
    fled = order("ann-1", "fled", escape, ANN)
    supervisor.start([fled])
    process = said_pid(state, fled)
    shim = int((state / "tasks" / fled.key.path / "claim").read_text(encoding="utf-8").split()[1])
    os.kill(shim, signal.SIGKILL)

    eventually(lambda: isinstance(supervisor.status(fled.key), AttemptLost))
    eventually(lambda: not Path(f"/proc/{process}").exists() or _is_zombie(process))
    assert "control group" not in str(supervisor.status(fled.key))


def test_nothing_survives_its_command_and_no_control_group_is_left(supervisor: Supervisor, state: Path) -> None:
    fled = order("ann-1", "fled", "env -i setsid --wait sh -c 'setsid sleep 600 & echo $!; exit'", ANN)
    supervisor.start([fled])
    assert ended(supervisor, fled).exit_code == 0
    process = said_pid(state, fled)
    group = (state / "tasks" / fled.key.path / "cgroup").read_text(encoding="utf-8").split()[1]
    assert not Path(f"/proc/{process}").exists() or _is_zombie(process)
    assert not Path(group).exists()


@pytest.mark.slow("starts a test run of its own")
def test_control_groups_of_version_2_serve_as_well() -> None:
    tests = (
        test_nothing_survives_its_shim_even_in_a_session_of_its_own,
        test_nothing_survives_its_command_and_no_control_group_is_left,
    )
    names = [f"{__file__}::{each.__name__}" for each in tests]
    # Loading the plugins takes most of the time, and these have nothing to do here.
    without = ("-p", "no:schemathesis", "-p", "no:xdist", "-p", "no:cacheprovider")
    done = subprocess.run(
        on_cgroup_2(sys.executable, "-m", "pytest", "-q", *without, *names),
        cwd=Path(__file__).parents[3],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_each_owner_has_one_account_for_good(state: Path) -> None:
    (state / "tasks").mkdir()
    accounts = TaskAccounts(range(ANN, ANN + 3), exempt="local")
    table = AccountTable(state / "tasks", accounts)
    found = {owner: table.of(owner) for owner in ("ann", "bob", "eve")}

    assert sorted(found.values(), key=str) == [ANN, ANN + 1, ANN + 2]
    again = AccountTable(state / "tasks", accounts)
    assert {owner: again.of(owner) for owner in ("eve", "bob", "ann")} == found
    assert again.of("local") is None
    with pytest.raises(UsageError, match="all 3 task accounts belong to people other than dan"):
        again.of("dan")
    assert AccountTable(state / "tasks", TaskAccounts(range(ANN, ANN + 1))).of("dan") == ANN


def test_a_folder_that_accounts_cannot_enter_is_named(state: Path) -> None:
    state.chmod(0o700)
    (state / "tasks").mkdir()
    with pytest.raises(UsageError, match=f"cannot enter {state}") as refused:
        AccountTable(state / "tasks", TaskAccounts()).of("ann")
    assert "--state" in refused.value.hint


def _is_zombie(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_without_a_control_group_a_lost_task_says_what_may_be_left(supervisor: Supervisor, state: Path) -> None:
    lost = order("ann-1", "lost", "echo $$; exec sleep 600", ANN)
    supervisor.start([lost])
    said_pid(state, lost)
    folder = state / "tasks" / lost.key.path
    (folder / "cgroup").unlink()
    os.kill(int((folder / "claim").read_text(encoding="utf-8").split()[1]), signal.SIGKILL)
    eventually(lambda: isinstance(supervisor.status(lost.key), AttemptLost))
    assert "without a control group, processes that left its session" in str(supervisor.status(lost.key))
