"""The process that renders templates receives nothing but the template."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from coterie.cancellation import Abandoned, cancelled_by
from coterie.frontends.template import sandbox
from tests.eventually import eventually


def test_a_template_worker_sees_nothing_of_the_environment_of_its_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = tmp_path / "spy.py"
    spy.write_text("import json, os\nprint(json.dumps({'text': json.dumps(dict(os.environ)), 'names': []}))\n")
    monkeypatch.setattr(sandbox, "_WORKER", spy)
    monkeypatch.setenv("COTERIE_TOKEN", "secret")

    seen = json.loads(sandbox.run("", {}, 1000).text)

    assert set(seen) <= {"LC_CTYPE"}  # which Python sets for itself


def test_a_template_is_rendered_without_any_environment_and_keeps_its_letters() -> None:
    assert sandbox.run("{{ word }} ü", {"word": "größe"}, 1000).text == "größe ü"


def test_a_template_ends_when_its_caller_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lasting = tmp_path / "lasting.py"
    lasting.write_text(
        "import os, pathlib, sys, time\n"
        f"pathlib.Path({str(tmp_path / 'part')!r}).write_text(str(os.getpid()))\n"
        f"os.rename({str(tmp_path / 'part')!r}, {str(tmp_path / 'pid')!r})\n"
        "time.sleep(600)\n"
    )
    monkeypatch.setattr(sandbox, "_WORKER", lasting)
    left = threading.Event()

    def leave() -> None:
        eventually((tmp_path / "pid").exists)
        left.set()

    threading.Thread(target=leave).start()

    with cancelled_by(left), pytest.raises(Abandoned):
        sandbox.run("{{ word }}", {}, 1000)

    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()


SLOW = """
import importlib.util, time
spec = importlib.util.spec_from_file_location("worker", {worker!r})
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)
render = worker.render
def slowly(*rest):
    time.sleep(1.5)
    return render(*rest)
worker.render = slowly
worker.main()
"""


def test_a_template_is_limited_by_its_own_time_and_not_by_that_of_a_busy_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text(SLOW.format(worker=str(sandbox._WORKER)))
    monkeypatch.setattr(sandbox, "_WORKER", slow)
    monkeypatch.setattr(sandbox, "SECONDS", 1.0)
    assert sandbox.run("{{ word }}", {"word": "rendered"}, 1000).text == "rendered"
