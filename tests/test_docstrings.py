"""Docstrings begin with a noun or a verb, and every test module says what it is about."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
QUESTION_WORDS = frozenset(
    {"what", "who", "where", "why", "when", "how", "which", "whatever", "whoever", "nobody", "somebody"}
)


def docstrings(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                line = getattr(node, "lineno", 1)
                yield f"{path.relative_to(ROOT)}:{line}", ast.get_docstring(node) or ""


def test_no_docstring_begins_with_a_question_word() -> None:
    found = [
        f"{place}: {text}"
        for part in ("src", "bench", "lab", "tests")
        for place, text in docstrings(ROOT / part)
        if begins_with_question(text)
    ]
    assert found == []


def begins_with_question(text: str) -> bool:
    return text.partition(" ")[0].lower() in QUESTION_WORDS or text.lower().startswith("all that")


def test_every_test_module_has_a_docstring() -> None:
    modules = (path for path in sorted((ROOT / "tests").rglob("*.py")) if path.read_text().strip())
    assert [str(path) for path in modules if not ast.get_docstring(ast.parse(path.read_text()))] == []
