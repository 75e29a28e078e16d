"""Shell completion: live names without noticeable delay, and no output where there are none."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from coterie.cli.inputs import completion
from tests.cli.command import ROOT, spawn
from tests.cli.service_fixtures import ServiceFixture, hall
from tests.eventually import eventually

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


def _completes(*words: str, to: list[str], **where: str) -> None:
    """Ask until the names come in time, as they do unless the machine is very busy."""
    eventually(lambda: _completed(*words, **where) == to, lambda: _completed(*words, **where))


def test_names_of_a_service_are_completed(hall: ServiceFixture) -> None:
    ident = hall.submit("true", name="ready")
    assert hall.finished(ident) == "COMPLETED"

    _completes("show", "re", server=hall.url, to=[ident])
    _completes("logs", f"{ident}/", server=hall.url, to=[f"{ident}/t0"])
    _completes("why", f"{ident}/g", server=hall.url, to=[f"{ident}/g"])
    _completes("delete", "rea", server=hall.url, to=[ident])
    assert _completed("cancel", "rea", server=hall.url) == []
    _completes("pool", "show", "l", server=hall.url, to=["lab"])
    _completes("submit", "x.yaml", "--pool", "", server=hall.url, to=["lab"])


def test_pools_of_a_configuration_are_completed() -> None:
    config = str(ROOT / "examples/coterie.yaml")

    _completes("plan", "x.yaml", "--config", config, "--pool", "gb", to=["gb200"])
    _completes("plan", "x.yaml", "--pool", "gb", config=config, to=["gb200"])


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
        # It never answers: who waits for it does not come back.
        found = completion.workflows(context, "")  # type: ignore[arg-type]

    assert found == []
