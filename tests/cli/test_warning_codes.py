"""Warnings: every one has a code, every code a row in a table of the documentation, and a page of its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

from tests.cli.command import ROOT, call

SOURCES = ROOT / "src" / "coterie"
# The list of the command line, and those that it refers to.
TABLES = ("cli.md", "render.md", "podcliqueset.md", "graph-deployment.md")
ROW = re.compile(r"^\| ([A-Z][A-Za-z]+(?:, [A-Z][A-Za-z]+)*) \|", re.MULTILINE)
CODE = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)*")


def codes_in(source: Path) -> Iterator[str]:
    """Yield the codes of the warnings that a module makes: a word given to a notice, or the `code` of a JSON object."""
    for made_at in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(made_at, ast.Dict):
            fields = {key.value: value for key, value in zip(made_at.keys, made_at.values, strict=True) if _text(key)}
            if "severity" in fields and _text(code := fields.get("code")):
                yield str(code.value)
            continue
        if not isinstance(made_at, ast.Call):
            continue
        name = made_at.func.attr if isinstance(made_at.func, ast.Attribute) else getattr(made_at.func, "id", "")
        if name not in {"Notice", "notice", "Finding"}:
            continue
        for value in made_at.args[:2]:
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and CODE.fullmatch(value.value):
                yield value.value


def _text(node: ast.expr | None) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_every_code_of_a_warning_is_in_a_table_of_the_documentation() -> None:
    texts = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in TABLES]
    listed = {code for text in texts for row in ROW.findall(text) for code in row.split(", ")}
    assert len(made()) > 50
    assert sorted(made() - listed) == []


@cache
def made() -> set[str]:
    """Return the codes of all warnings that the program makes."""
    return {code for source in SOURCES.rglob("*.py") for code in codes_in(source)}


def test_every_code_of_a_warning_has_a_page_that_explain_prints() -> None:
    pages = (SOURCES / "pages" / "warnings.md").read_text(encoding="utf-8")
    titles = re.findall(r"^## (\w+)$", pages, re.MULTILINE)

    assert titles == sorted(set(titles))
    assert sorted(made() - set(titles)) == []
    for section in pages.split("\n## ")[1:]:
        name, _, text = section.partition("\n")
        assert len([part for part in text.strip().split("\n\n") if part]) == 2, f"{name}: what it means, what to do"


def test_explain_finds_a_warning_by_its_code_in_any_case() -> None:
    for code in ("DoesNotTile", "doesnottile"):
        assert call("explain", code).out.startswith("# DoesNotTile\n\nGroups of this size")
    assert "DoesNotTile" in call("explain").out
