"""The manifests of the service: the token of its first admin, and what its tasks may do on nodes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.command import ROOT

# A program that finds no token, then cannot create one: with `created`, because another replica was faster.
PROGRAM = """#!/bin/sh
case "$2" in
list) [ -e "$COTERIE_STATE/created" ] && echo admin; exit 0 ;;
create) [ -e "$COTERIE_STATE/faster" ] && touch "$COTERIE_STATE/created"
  [ -e "$COTERIE_STATE/refused" ] && exit 1
  echo secret; touch "$COTERIE_STATE/created" ;;
esac
"""


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((ROOT / "deploy" / "service" / name).read_text(encoding="utf-8")))


@pytest.fixture
def state(tmp_path: Path) -> Path:
    program = tmp_path / "bin" / "coterie"
    program.parent.mkdir()
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    found = tmp_path / "state"
    found.mkdir()
    return found


def first_token(state: Path) -> int:
    """Run the init container; return its exit code."""
    (container,) = documents("deployment.yaml")[0]["spec"]["template"]["spec"]["initContainers"]
    environment = {"PATH": f"{state.parent / 'bin'}:{os.environ['PATH']}", "COTERIE_STATE": str(state)}
    command = [*container["command"], *container["args"]]
    return subprocess.run(command, env=environment, check=False, timeout=60).returncode


def test_the_first_token_is_written_once(state: Path) -> None:
    assert first_token(state) == 0
    file = state / "first-token"
    assert file.read_text(encoding="utf-8") == "secret\n"
    assert file.stat().st_mode & 0o077 == 0
    file.unlink()
    assert first_token(state) == 0
    assert sorted(each.name for each in state.iterdir()) == ["created"]


def test_a_replica_that_comes_second_keeps_the_token_of_the_first(state: Path) -> None:
    for name in ("refused", "faster"):
        (state / name).touch()
    (state / "first-token").write_text("of the other\n", encoding="utf-8")
    assert first_token(state) == 0
    assert (state / "first-token").read_text(encoding="utf-8") == "of the other\n"
    assert len(list(state.glob("first-token*"))) == 1


def test_a_store_that_takes_no_token_stops_the_pod(state: Path) -> None:
    (state / "refused").touch()
    assert first_token(state) != 0
    assert not list(state.glob("first-token*"))


def test_tasks_get_nothing_of_their_nodes() -> None:
    labels = {one["metadata"]["name"]: one["metadata"].get("labels", {}) for one in documents("namespaces.yaml")}
    assert labels["coterie-tasks"] == {"pod-security.kubernetes.io/enforce": "baseline"}
