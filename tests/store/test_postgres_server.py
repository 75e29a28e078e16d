"""The Postgres server of the tests ends with them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lab.process import started_at

from tests.eventually import eventually
from tests.store.postgres_server import Postgres

pytestmark = pytest.mark.slow("starts a Postgres server and kills its owner")

_ABANDONED = """
import sys
from tests.store.postgres_server import running

with running() as server:
    print(server.pid, server.url("postgres"), flush=True)
    sys.stdin.read()
"""


def test_the_server_ends_when_the_tests_are_killed(postgres: Postgres) -> None:
    del postgres  # where there is none, this test is skipped as well
    with subprocess.Popen(
        [sys.executable, "-c", _ABANDONED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"(\d+) postgresql://coterie@/postgres\?host=(\S+)\n", line)
        assert found is not None
        pid, folder = int(found[1]), Path(found[2])
        assert started_at(pid) is not None
        process.kill()

    eventually(lambda: started_at(pid) is None, lambda: "the server goes on alone")
    shutil.rmtree(folder)


def test_a_restarted_server_has_its_data(postgres: Postgres) -> None:
    postgres.run("CREATE DATABASE kept")
    postgres.stop()
    postgres.start()

    postgres.run("SELECT 1", "kept")
    postgres.run("DROP DATABASE kept")
