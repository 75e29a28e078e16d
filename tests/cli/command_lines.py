"""Calls of commands in this process, as a user would make them from the root of the repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from coterie.cli.app import app

ROOT = Path(__file__).parents[2]
REFUSALS = str(ROOT / "examples/refusals/cluster.yaml")
TRAINING = str(ROOT / "examples/06-training-4x4x4/cluster.yaml")
CONFIG = str(ROOT / "examples/coterie.yaml")

UGLY = """\
topology_keys:
- {key: rack, label: topology.kubernetes.io/rack}
nodes:
- {name: n1, gpu: 8, cpu: 8, domains: {rack: r1}}
- {name: n2, gpu: 8, cpu: 8}
pods:
- {node: n1, gpu: 2, owner: "\\e[31mred</text><script>\\x9b2J\\n"}
"""


def call(*arguments: str, columns: int = 100, stdin: str | None = None) -> Result:
    """Run a command; its standard output and its standard error are kept apart."""
    return CliRunner().invoke(
        app, list(arguments), input=stdin, env={"COLUMNS": str(columns), "NO_COLOR": "1", "COTERIE_CONFIG": ""}
    )


def data(*arguments: str, stdin: str | None = None) -> Any:
    """Run a command with JSON output and return what it says."""
    return json.loads(call(*arguments, "-o", "json", stdin=stdin).stdout)


def written(folder: Path, text: str, name: str = "cluster.yaml") -> str:
    """Write a file and return its name."""
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return str(file)
