"""Every warning has a code, and every code a row in the tables of the documentation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.cli.calling import ROOT

SOURCES = ROOT / "src" / "coterie"
# The list of the command line, and those that it refers to.
TABLES = ("cli.md", "render.md", "podcliqueset.md", "graph-deployment.md")
ROW = re.compile(r"^\| ([A-Z][A-Za-z]+(?:, [A-Z][A-Za-z]+)*) \|", re.MULTILINE)
CODE = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)*")


def codes_in(source: Path) -> Iterator[str]:
    """Yield the codes of the warnings that a module makes: a word of several parts, handed to a call of a notice."""
    for call in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name not in {"Notice", "notice"}:
            continue
        for value in call.args[:2]:
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and CODE.fullmatch(value.value):
                yield value.value


def test_every_code_of_a_warning_is_in_a_table_of_the_documentation() -> None:
    made = {code for source in SOURCES.rglob("*.py") for code in codes_in(source)}
    texts = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in TABLES]
    listed = {code for text in texts for row in ROW.findall(text) for code in row.split(", ")}
    assert len(made) > 50
    assert sorted(made - listed) == []
