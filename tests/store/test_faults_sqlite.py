"""A SQLite file that is locked, full, closed, damaged or gone is reported and survived without loss."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import event

from coterie.errors import CoterieError, Unavailable
from coterie.store import Store
from tests.store.builders import new, submitted


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def test_a_new_file_is_its_owners_alone(file: Path) -> None:
    with Store.open(str(file)) as store:
        submitted(store)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()}

    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}
    assert [path.name for path in file.parent.iterdir()] == ["store.db"]


def test_a_locked_file_is_said_and_read_and_written_again_afterwards(file: Path) -> None:
    with Store.open(str(file), patience_s=0.1) as store:
        one = submitted(store)
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(Unavailable, match=r"store\.db: the database is locked by another program"):
            submitted(store)
        assert store.workflow(one.id) == one
        other.execute("ROLLBACK")
        other.close()

        assert submitted(store).id == "train-2"


def test_writers_of_one_process_that_wait_too_long_are_told(file: Path) -> None:
    with Store.open(str(file), patience_s=0.05) as store, ThreadPoolExecutor(1) as threads:
        with store._database.writing(), pytest.raises(Unavailable, match="the database is busy"):
            threads.submit(submitted, store).result()

        assert submitted(store).id == "train-1"


def test_too_many_readers_are_told(file: Path) -> None:
    def read_all_at_once(store: Store) -> None:
        with ExitStack() as stack:
            for _ in range(100):
                stack.enter_context(store._database.reading())

    with Store.open(str(file), patience_s=0.05) as store:
        with pytest.raises(Unavailable, match="all connections are in use"):
            read_all_at_once(store)
        assert store.last_event() == 0


def test_a_full_disk_is_said_and_what_was_accepted_is_kept(file: Path) -> None:
    with Store.open(str(file)) as store:
        accepted = [submitted(store).id]
        limited = store._database.engine

        @event.listens_for(limited, "connect")
        def limit(connection: sqlite3.Connection, _: object) -> None:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count={pages + 20}")

        limited.dispose()
        with pytest.raises(Unavailable, match=r"store\.db: the disk is full, nothing was written"):
            accepted.extend(submitted(store, source=b"x" * 5000).id for _ in range(100))
        assert [one.id for one in store.workflows().items] == accepted[::-1]
        event.remove(limited, "connect", limit)
        limited.dispose()

        assert submitted(store).id == f"train-{len(accepted) + 1}"


_LIMITED = """
import json, resource, sys
from coterie.errors import Unavailable
from coterie.store import Store
from tests.store.builders import submitted

with Store.open(sys.argv[1]) as store:
    accepted = [submitted(store).id]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
    said = ""
    while not said:
        try:
            accepted.append(submitted(store, source=b"x" * 20_000).id)
        except Unavailable as error:
            said = str(error)
    kept = [one.id for one in store.workflows().items][::-1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    after = submitted(store).id
print(json.dumps([accepted, kept, said, after]))
"""


def test_a_file_that_may_not_grow_is_said_and_what_was_accepted_is_kept(file: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _LIMITED, str(file)], capture_output=True, text=True, check=True)

    accepted, kept, said, after = json.loads(done.stdout)
    assert kept == accepted
    assert "the disk cannot be read or written" in said
    assert after == f"train-{len(accepted) + 1}"
    with Store.open(str(file)) as store:
        assert len(store.workflows().items) == len(accepted) + 1


@pytest.mark.parametrize("closed", ["file", "folder"])
def test_a_file_that_cannot_be_written_is_said(closed: str) -> None:
    with ExitStack() as stack:
        folder = _open_to_all(stack)
        file = folder / "store.db"
        with Store.open(str(file)) as store:
            submitted(store)
        file.chmod(0o444)
        folder.chmod(0o555 if closed == "folder" else 0o777)
        _be_nobody(stack)

        with pytest.raises(Unavailable, match=r"store\.db: the database cannot be (written|opened)") as said:
            stack.enter_context(Store.open(str(file))).submit(new())

    assert "permissions" in said.value.hint


def test_a_folder_that_cannot_be_written_is_said() -> None:
    with ExitStack() as stack:
        folder = _open_to_all(stack)
        folder.chmod(0o555)
        _be_nobody(stack)

        with pytest.raises(Unavailable, match=r"store\.db: the database cannot be created: Permission denied"):
            Store.open(str(folder / "store.db"))


def test_a_file_that_was_removed_is_not_written_into_nothing(file: Path) -> None:
    with Store.open(str(file)) as store:
        submitted(store)
        away = file.rename(file.with_name("away.db"))

        with pytest.raises(Unavailable, match="was removed or replaced while in use"):
            submitted(store)
        away.rename(file)

        assert submitted(store).id == "train-2"


def test_a_damaged_file_is_said(file: Path) -> None:
    with Store.open(str(file)) as store:
        for _ in range(20):
            submitted(store, source=b"x" * 9000)
    content = bytearray(file.read_bytes())
    content[8192:] = b"\xaa" * (len(content) - 8192)
    file.write_bytes(content)

    with pytest.raises(Unavailable, match=r"store\.db: the database is damaged"):
        _read_all(file)
    assert file.read_bytes() == content


def test_a_damaged_file_is_not_written_to(file: Path) -> None:
    with Store.open(str(file)) as store:
        for _ in range(20):
            submitted(store, source=b"x" * 9000)
    whole = file.read_bytes()
    spoiled = bytearray(whole)
    spoiled[-8192:] = b"\xaa" * 8192
    file.write_bytes(spoiled)

    with pytest.raises(Unavailable, match="the database is damaged") as refused:
        Store.open(str(file))
    assert "Nothing is written to it" in refused.value.hint
    assert file.read_bytes() == spoiled


def test_a_file_that_is_damaged_while_it_is_open_is_written_to_no_more(file: Path) -> None:
    with Store.open(str(file)) as store:
        idents = [submitted(store, source=secrets.token_bytes(9000)).id for _ in range(20)]
        with store._database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        store._database.engine.dispose()  # so that nothing of the file is at hand
        spoiled = bytearray(file.read_bytes())
        spoiled[8192:] = b"\xaa" * (len(spoiled) - 8192)
        file.write_bytes(spoiled)
        with pytest.raises(Unavailable, match="the database is damaged"):
            [store.upload(ident) for ident in idents]
        with pytest.raises(Unavailable, match="the database is damaged"):
            submitted(store)
        assert file.read_bytes() == spoiled
        waiting = file.with_name(f"{file.name}-wal")
        assert not waiting.exists() or not waiting.stat().st_size


@pytest.mark.parametrize("content", [b"hello, this is no database, whatever its name says" * 40, b"\0" * 5000])
def test_a_file_that_is_no_database_is_refused_and_left_alone(file: Path, content: bytes) -> None:
    file.write_bytes(content)

    with pytest.raises(CoterieError, match=r"is not a database of Coterie|is damaged"):
        Store.open(str(file))

    assert file.read_bytes() == content


def _read_all(file: Path) -> None:
    with Store.open(str(file)) as store:
        store.workflows()


def _open_to_all(stack: ExitStack) -> Path:
    """Return a folder that every user can reach: pytest's is not."""
    folder = Path(tempfile.mkdtemp(prefix="coterie-store-"))
    folder.chmod(0o777)
    stack.callback(shutil.rmtree, folder)
    # Whoever is not root can remove nothing from a folder that a test has closed.
    stack.callback(folder.chmod, 0o777)
    return folder


def _be_nobody(stack: ExitStack) -> None:
    """Give up root's right to write everything, until the end."""
    if os.geteuid() == 0:
        os.seteuid(65534)
        stack.callback(os.seteuid, 0)
