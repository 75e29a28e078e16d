"""Tasks of several people on one machine: under accounts of their own, or not without the operator saying so."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from coterie.backends.base.settings import DEFAULT_ACCOUNTS, TaskAccounts
from coterie.errors import Unavailable, UsageError
from coterie.service.isolation import OPEN_TO_ALL, check_isolation, task_accounts
from coterie.service.security import new_token
from coterie.service.server import serve
from coterie.service.service import Service
from coterie.store import Store
from tests.cli.command import Done, call
from tests.service.running_service import ServiceFolder, single, task, workflow

PATIENCE_S = 60.0
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes under other accounts")


@pytest.fixture
def place() -> Iterator[ServiceFolder]:
    """Give a folder that other accounts can enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="coterie-isolation-") as name:
        Path(name).chmod(0o711)
        found = ServiceFolder(Path(name) / "place")
        found.settings().state.mkdir(mode=0o711)
        yield found


@AS_ROOT
def test_tasks_of_people_with_tokens_cannot_make_themselves_admins(place: ServiceFolder) -> None:
    accounts = TaskAccounts(exempt="local")
    store = place.folder / "store.db"
    steal = f"id -u; cat {store} > /dev/null && echo READ; test -w {store} && echo READ; true"
    with Service(place.settings(accounts=accounts)) as service:
        uids = {}
        for owner in ("ann", "bob", "local"):
            ident = service.submit(replace(single(f"by-{owner}", steal), owner=owner))["id"]
            assert service.wait(ident, timeout_s=PATIENCE_S)["status"] == "COMPLETED"
            said = service.log(ident, "t").decode("utf-8", "replace")
            uids[owner] = int(said.split()[0])
            assert ("READ" in said) == (owner == "local")

        assert uids["local"] == 0
        assert {uids["ann"], uids["bob"]} < set(DEFAULT_ACCOUNTS)
        assert uids["ann"] != uids["bob"]


@AS_ROOT
def test_a_task_reads_what_another_task_of_its_workflow_wrote_and_no_other_workflow(place: ServiceFolder) -> None:
    groups = {
        "make": [task("maker", "echo made > {{output}}/it")],
        "use": [task("user", "cat {{input:0}}/it", "inputs: [{task: maker}]")],
    }
    with Service(place.settings(accounts=TaskAccounts())) as service:
        ident = service.submit(replace(workflow("pipe", groups), owner="ann"))["id"]
        done = service.wait(ident, timeout_s=PATIENCE_S)
        assert done["status"] == "COMPLETED"
        assert service.log(ident, "user") == b"made\n"

        path = done["groups"][0]["tasks"][0]["output"]
        spy = service.submit(replace(single("spy", f"cat {path}/it"), owner="bob"))["id"]
        assert service.wait(spy, timeout_s=PATIENCE_S)["status"] == "FAILED"
        assert b"made" not in service.log(spy, "t")


def test_tasks_of_several_people_are_refused_as_the_service_unless_they_are_trusted(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    settings = place.settings()
    with Store.open(settings.store) as store:
        for name in ("ann", "bob"):
            new_token(store, name, "user", now=time.time())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match="2 people have tokens") as refused:
            serve(settings, "127.0.0.1", port, announce=print)
        assert "--trust-tasks" in refused.value.hint
        for more, trusted in ((None, True), (TaskAccounts(), False)):
            with pytest.raises(Unavailable, match="cannot listen"):
                serve(replace(settings, accounts=more), "127.0.0.1", port, trust_tasks=trusted, announce=print)


def test_accounts_are_those_of_root_unless_tasks_are_trusted(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place.folder / "state"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert task_accounts(None, folder, trusted=False) == TaskAccounts(exempt="local")
    assert task_accounts(None, folder, trusted=True) is None
    assert task_accounts("2000-2009", folder, trusted=False) == TaskAccounts(range(2000, 2010))
    assert task_accounts("2000", folder, trusted=False) == TaskAccounts(range(2000, 2001))
    for wrong in ("0", "root", "9-2", "0-5", "1-99999999999", "-", "nobody-here", "1-x"):
        with pytest.raises(UsageError):
            task_accounts(wrong, folder, trusted=False)
    with pytest.raises(UsageError, match="cannot be used together"):
        task_accounts("2000", folder, trusted=True)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert task_accounts(None, folder, trusted=False) is None
    with pytest.raises(UsageError, match="only root"):
        task_accounts("2000", folder, trusted=False)


def test_a_folder_that_accounts_cannot_enter_is_named_once_several_people_have_tokens(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place.folder / "state" / "tasks"
    (place.folder / "state").chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert task_accounts(None, folder, trusted=False) is None
    with pytest.raises(UsageError, match="cannot enter"):
        task_accounts("2000", folder, trusted=False)
    check_isolation({"ann"}, None, folder, trusted=False)
    with pytest.raises(UsageError, match="cannot enter") as refused:
        check_isolation({"ann", "bob"}, None, folder, trusted=False)
    assert "--trust-tasks" in refused.value.hint


CONFIG = "backends: {{here: {{scheduler: local, task_accounts: {accounts}}}}}\npools: {{p: {{{pool}}}}}\n"


def served_with(place: ServiceFolder, accounts: str, *options: str, pool: str = "") -> Done:
    """Call `serve` on a taken port, so that it ends with its first complaint."""
    config = place.folder / "coterie.yaml"
    config.write_text(CONFIG.format(accounts=accounts, pool=pool), encoding="utf-8")
    state = ("--state", place.settings().state)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        return call("serve", "--config", config, *state, "--port", port, *options)


@AS_ROOT
def test_the_accounts_of_the_configuration_are_those_of_tasks(
    place: ServiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[TaskAccounts | None] = []
    monkeypatch.setattr("coterie.cli.handlers.serve.serve", lambda settings, *_, **__: seen.append(settings.accounts))
    assert served_with(place, "2000-2009").code == 0
    assert served_with(place, "2000-2009", "--task-accounts", "3000").code == 0
    assert seen == [TaskAccounts(range(2000, 2010)), TaskAccounts(range(3000, 3001))]


def test_faults_of_accounts_are_reported_with_those_of_the_configuration(place: ServiceFolder) -> None:
    done = served_with(place, "9-2", "--task-accounts", "nobody-here", pool="nvlinks: true")
    assert done.code != 0
    for said in ("nobody-here" if os.geteuid() == 0 else "--task-accounts", "9-2", "nvlinks"):
        assert said in done.err
    named = served_with(place, "nobody-here")
    # With its line and its column, where the value is.
    where = f"{place.folder}/coterie.yaml:1:{CONFIG.format(accounts='nobody-here', pool='').index('nobody-here') + 1}"
    assert 'task_accounts of backend "here": ' in named.err
    assert where in named.err
    together = served_with(place, "2000", "--trust-tasks")
    assert '--trust-tasks and task_accounts of backend "here" cannot' in together.err
    assert where in together.err


def test_nobody_with_a_token_is_called_as_those_without(place: ServiceFolder) -> None:
    with Store.open(place.settings().store) as store, pytest.raises(UsageError, match="callers without a token"):
        new_token(store, "local", "user", now=time.time())
    assert "every user of this machine may do everything" in OPEN_TO_ALL
