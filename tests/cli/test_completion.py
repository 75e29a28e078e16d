"""Shell completion: live names without noticeable delay, and no output where there are none."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from coterie.cli.inputs import completion
from tests.cli.command import ROOT, spawn
from tests.cli.service_fixtures import ServiceFixture, hall

pytestmark = pytest.mark.slow("starts a process for each completion, as a shell does")

__all__ = ["hall"]


def _completed(*words: str, server: str = "", config: str = "") -> list[str]:
    """Return what a shell is told for the last of these words."""
    done = spawn(
        _COTERIE_COMPLETE="complete_bash",
        COMP_WORDS=" ".join(("coterie", *words)),
        COMP_CWORD=str(len(words)),
        COTERIE_SERVER=server,
        COTERIE_CONFIG=config,
    )
    assert done.err == ""
    return done.out.split()


def test_names_of_a_service_are_completed(hall: ServiceFixture) -> None:
    ident = hall.submit("true", name="ready")
    assert hall.finished(ident) == "COMPLETED"

    assert _completed("show", "re", server=hall.url) == [ident]
    assert _completed("logs", f"{ident}/", server=hall.url) == [f"{ident}/t0"]
    assert _completed("why", f"{ident}/g", server=hall.url) == [f"{ident}/g"]
    assert _completed("delete", "rea", server=hall.url) == [ident]
    assert _completed("cancel", "rea", server=hall.url) == []
    assert _completed("pool", "show", "l", server=hall.url) == ["lab"]
    assert _completed("submit", "x.yaml", "--pool", "", server=hall.url) == ["lab"]


def test_pools_of_a_configuration_are_completed() -> None:
    config = str(ROOT / "examples/coterie.yaml")

    assert _completed("plan", "x.yaml", "--config", config, "--pool", "gb") == ["gb200"]
    assert _completed("plan", "x.yaml", "--pool", "gb", config=config) == ["gb200"]


@pytest.mark.parametrize("content", ["", "pools: 7\n", "{", "pools: {a: }\n", "\0"])
def test_a_configuration_that_is_wrong_completes_nothing(tmp_path: Path, content: str) -> None:
    file = tmp_path / "coterie.yaml"
    file.write_text(content, encoding="utf-8")

    assert _completed("plan", "x.yaml", "--config", str(file), "--pool", "") == []
    assert _completed("plan", "x.yaml", "--config", str(tmp_path / "none.yaml"), "--pool", "") == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense", "http://[", "ftp://127.0.0.1"])
def test_without_a_service_there_are_no_names_and_no_words(url: str) -> None:
    assert _completed("show", "x", server=url) == []


def test_a_folder_without_a_service_completes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTERIE_STATE", str(tmp_path))

    assert _completed("show", "x") == []


def test_a_service_that_does_not_answer_is_not_waited_for() -> None:
    class Context:
        params: dict[str, str]

    with socket.create_server(("127.0.0.1", 0)) as silent:
        context = Context()
        context.params = {"server": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        began = time.monotonic()
        found = completion.workflows(context, "")  # type: ignore[arg-type]

    assert found == []
    assert time.monotonic() - began < completion._BUDGET_S + 0.5
