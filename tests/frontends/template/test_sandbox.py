"""The process that renders templates receives nothing but the template."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coterie.frontends.template import sandbox


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
