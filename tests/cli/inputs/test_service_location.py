"""The service that commands use: the one of their folder, and never another in its place."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from coterie.cli.exit_codes import Exit
from coterie.cli.inputs import service_location
from coterie.errors import Unavailable
from coterie.service.driver.election.replica import new_holder
from tests.cli.command import TIMEOUT_S, call
from tests.cli.service_fixtures import served

pytestmark = pytest.mark.slow("starts and kills several services of one folder")


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str | None]]:
    """Let somebody else's service listen at the usual address; yield the tokens that it is shown."""
    shown: list[str | None] = []

    class Stranger(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown.append(self.headers.get("Authorization"))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        monkeypatch.setattr(service_location, "DEFAULT_URL", f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield shown
        server.shutdown()
        thread.join()


def test_a_second_service_of_a_folder_that_stops_leaves_the_first_one_found(
    tmp_path: Path, others: list[str | None]
) -> None:
    with served(tmp_path) as (first, _):
        with served(tmp_path) as (second, _):
            both = call("list", COTERIE_STATE=str(tmp_path))
        after = service_location.service_records(tmp_path)
        found = call("list", COTERIE_STATE=str(tmp_path))

    assert first != second
    assert (both.code, found.code) == (0, 0)
    assert [each.url for each in after] == [first]
    assert service_location.service_records(tmp_path) == []
    assert others == []


def test_the_second_service_of_a_folder_is_found_once_the_first_has_been_killed(tmp_path: Path) -> None:
    with ExitStack() as stack:
        _, first = stack.enter_context(served(tmp_path))
        second, _ = stack.enter_context(served(tmp_path))
        first.kill()
        first.wait(TIMEOUT_S)
        found = call("list", COTERIE_STATE=str(tmp_path))
        running = [each.url for each in service_location.service_records(tmp_path) if not each.gone]

    assert found.code == 0
    assert running == [second]


@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_that_was_named_and_has_no_service_is_said_and_nobody_else_is_asked(
    tmp_path: Path, others: list[str | None], *, exists: bool
) -> None:
    folder = tmp_path / "state"
    if exists:
        folder.mkdir()

    done = call("list", "--token", "secret", COTERIE_STATE=str(folder))

    assert done.code == Exit.TRY_AGAIN
    assert f"error: no service runs in the state folder {folder}" in done.err
    assert "--server" in done.err
    assert others == []


@pytest.mark.parametrize("exists", [True, False])
def test_the_usual_address_is_asked_only_by_those_who_have_no_folder_at_all(
    tmp_path: Path, others: list[str | None], *, exists: bool
) -> None:
    if exists:
        (tmp_path / "coterie").mkdir()

    done = call("list", "--token", "secret", XDG_STATE_HOME=str(tmp_path))

    assert done.code == (Exit.TRY_AGAIN if exists else Exit.FAILED)  # it is not a Coterie service
    assert others == ([] if exists else ["Bearer secret"])


def test_a_service_that_is_named_is_asked_whatever_the_folder_says(tmp_path: Path) -> None:
    with served(tmp_path / "a") as (url, _):
        by_option = call("list", "--server", url, COTERIE_STATE=str(tmp_path / "b"))
        by_variable = call("list", COTERIE_SERVER=url, COTERIE_STATE=str(tmp_path / "b"))

    assert (by_option.code, by_variable.code) == (0, 0)


def test_a_service_that_was_killed_is_called_gone_and_the_next_one_takes_its_word_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, pid, started, rest = new_holder().split("/", 3)
    dead = "/".join((host, pid, str(int(started) + 1), rest))
    monkeypatch.setenv("COTERIE_STATE", str(tmp_path))
    service_location.announce(tmp_path / "service.dead.json", "http://127.0.0.1:1", dead)

    with pytest.raises(Unavailable, match="is gone; it was at http://"):
        service_location.known_url()
    with service_location.announced(tmp_path, new_holder()) as file:
        service_location.announce(file, "http://127.0.0.1:2", new_holder())

        assert service_location.known_url() == "http://127.0.0.1:2"
        assert os.listdir(tmp_path) == [file.name]  # noqa: PTH208 - names alone
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"url": 1}', "\x00"])
def test_a_word_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "service.x.json").write_text(text, encoding="utf-8")

    assert service_location.service_records(tmp_path) == []
