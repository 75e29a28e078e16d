"""A real Postgres for tests: Debian's, in a temporary folder, removed with the tests however they end.

Import `postgres` and `postgres_url` into a conftest.py. One server serves all tests of a run; each test gets its own
database. No other user can connect: it listens only on a socket in a private folder.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from lab.process import Program

from tests.eventually import eventually

PATIENCE_S = 60.0
_INSTALLED = Path("/usr/lib/postgresql")
_SYSTEM_USER = "postgres"
# Tests need no protection against a power cut.
_SETTINGS = ("fsync=off", "full_page_writes=off", "listen_addresses=", "max_connections=200", "shared_buffers=32MB")


class Postgres:
    """A server that can be stopped and started again with its data."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self._numbers = itertools.count(1)
        settings = [part for setting in (*_SETTINGS, f"unix_socket_directories={folder}") for part in ("-c", setting)]
        self._program = Program(
            "postgres",
            [*_unprivileged(), str(programs / "postgres"), "-D", str(folder / "data"), *settings],
            folder / "postgres.log",
            environment={"LC_ALL": "C.UTF-8"},
            folder=folder,
        )

    def create(self) -> None:
        """Make the data folder."""
        data = str(self._folder / "data")
        options = ["--auth=trust", "--username=coterie", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        done = subprocess.run(
            [*_unprivileged(), str(self._programs / "initdb"), "-D", data, *options],
            capture_output=True,
            text=True,
            check=False,
            cwd=self._folder,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._program.start()
        eventually(self._answers, lambda: f"Postgres does not answer:\n{self._program.tail()}")

    def stop(self) -> None:
        """Stop the server at once, as a crash would, but leaving no shared memory."""
        if self._program.running:
            os.kill(self._program.pid, signal.SIGQUIT)
            eventually(lambda: not self._program.running, lambda: f"Postgres does not stop:\n{self._program.tail()}")
        self._program.stop()

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._program.pid

    def url(self, database: str) -> str:
        """Return the URL of a database."""
        return f"postgresql://coterie@/{database}?host={self._folder}"

    def new_database(self) -> str:
        """Make an empty database and return its URL."""
        name = f"test_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)

    def run(self, command: str, database: str = "postgres") -> None:
        """Run one command as the server's owner."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(command.encode())

    def _answers(self) -> bool:
        assert not self._program.ended, f"Postgres ended with {self._program.ended}:\n{self._program.tail()}"
        try:
            self.run("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def running() -> Iterator[Postgres]:
    """Give a server of one's own."""
    programs = _programs()
    with _folder() as folder:
        server = Postgres(programs, folder)
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Give the server of this run; skip, and say so, only where it cannot be had."""
    with running() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Postgres) -> str:
    """Give the URL of an empty database."""
    return postgres.new_database()


@contextmanager
def _folder() -> Iterator[Path]:
    # Not pytest's folder: only its owner may look into that, and the server runs as another user.
    folder = Path(tempfile.mkdtemp(prefix="coterie-postgres-"))
    if os.geteuid() == 0:
        user = pwd.getpwnam(_SYSTEM_USER)
        os.chown(folder, user.pw_uid, user.pw_gid)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _unprivileged() -> Sequence[str]:
    """Return what goes before a command that refuses to run as root; it ends with its parent."""
    if os.geteuid() != 0:
        return ()
    # A change of user makes the kernel forget whose death to follow: it is told again afterwards.
    user = f"--reuid={_SYSTEM_USER}"
    return [_path("setpriv"), user, f"--regid={_SYSTEM_USER}", "--clear-groups", "--pdeathsig=QUIT"]


def _path(program: str) -> str:
    found = shutil.which(program)
    assert found is not None, f"{program} is not installed"
    return found


def _programs() -> Path:
    if (found := _newest()) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install()
        found = _newest()
    if found is None:
        pytest.skip("NO POSTGRES: it is not installed and cannot be here. As root: apt-get install -y postgresql")
    return found


def _newest() -> Path | None:
    found = [path.parent for path in _INSTALLED.glob("*/bin/postgres")]
    return max(found, key=lambda path: float(path.parent.name), default=None)


def _install() -> None:
    # Several workers of one run may come here at once.
    with Path(tempfile.gettempdir(), "coterie-postgres-install.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for arguments in (["update"], ["install", "-y", "--no-install-recommends", "postgresql"]):
            if _newest() is None:
                environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
                subprocess.run([_path("apt-get"), *arguments], env=environment, capture_output=True, check=False)
