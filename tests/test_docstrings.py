"""Docstrings begin with a noun or a verb, and every test module says what it is about."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
QUESTION_WORDS = frozenset(
    {"what", "who", "where", "why", "when", "how", "which", "whatever", "whoever", "nobody", "somebody"}
)


class Docstring(NamedTuple):
    place: str
    text: str
    of_module: bool


@cache
def docstrings(folder: Path) -> list[Docstring]:
    """Return the docstrings of all modules that are not empty, and of their classes and functions."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(module) if module.body else ():
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
                found.append(Docstring(place, ast.get_docstring(node) or "", node is module))
    return found


def test_no_docstring_begins_with_a_question_word() -> None:
    found = [
        f"{each.place}: {each.text}"
        for part in ("src", "bench", "lab", "tests")
        for each in docstrings(ROOT / part)
        if begins_with_question(each.text)
    ]
    assert found == []


def begins_with_question(text: str) -> bool:
    return text.partition(" ")[0].lower() in QUESTION_WORDS or text.lower().startswith("all that")


def test_every_test_module_has_a_docstring() -> None:
    assert [each.place for each in docstrings(ROOT / "tests") if each.of_module and not each.text] == []
