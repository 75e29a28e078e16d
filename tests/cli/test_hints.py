"""Hints: every error that Coterie raises says what to do next."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.cli.command import ROOT

SOURCES = ROOT / "src" / "coterie"
# The position of the hint among the arguments of each error.
POSITIONS = {
    **dict.fromkeys(("CoterieError", "NotFound", "UsageError", "Unavailable", "Conflict", "PlanStale"), 1),
    **dict.fromkeys(("Forbidden", "Unauthorized"), 1),
    "Fault": 2,
}


def without_hint(source: Path) -> Iterator[str]:
    """Yield the places of a module where an error is made without a hint."""
    for made in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if not isinstance(made, ast.Call):
            continue
        name = made.func.attr if isinstance(made.func, ast.Attribute) else getattr(made.func, "id", "")
        if name not in POSITIONS:
            continue
        given = [keyword.value for keyword in made.keywords if keyword.arg == "hint"] or made.args[POSITIONS[name] :]
        if not given or (isinstance(given[0], ast.Constant) and not given[0].value):
            yield f"{source.relative_to(ROOT)}:{made.lineno}"


def test_every_error_says_what_to_do_next() -> None:
    assert [place for source in sorted(SOURCES.rglob("*.py")) for place in without_hint(source)] == []
