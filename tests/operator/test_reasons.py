"""Every reason of a condition or an event is in the manual, with what to do, and known to `coterie explain`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from coterie.frontends.dynamo import conditions as graph_conditions
from coterie.frontends.grove.conditions import EVENTS, REASONS
from tests.cli.command import ROOT, call

SOURCES = (ROOT / "src" / "coterie" / "operator", ROOT / "src" / "coterie" / "frontends")
CONDITIONS = {"GroveCondition", "DynamoCondition"}
ALL = sorted({word for words in (*REASONS.values(), *EVENTS.values()) for word in words})


def written(file: Path) -> Iterator[str]:
    """Yield the reasons that a module gives to conditions and events."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CONDITIONS:
            yield from words(node.args[1])
        elif isinstance(node, ast.Tuple) and len(node.elts) == 2:
            kind, reason = node.elts
            if isinstance(kind, ast.Constant) and kind.value in {"Warning", "Normal"}:
                yield from words(reason)


def words(node: ast.expr) -> Iterator[str]:
    """Yield the texts that an expression can have, by its literals and the constants of graph conditions."""
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value[:1].isupper():
            yield each.value
        elif isinstance(each, ast.Name) and isinstance(found := getattr(graph_conditions, each.id, None), str):
            yield found


def test_the_lists_of_reasons_are_those_of_the_code() -> None:
    found = {word for folder in SOURCES for file in sorted(folder.rglob("*.py")) for word in written(file)}

    # The reason of a graph's condition that has the name of the condition of a set is on that condition's page.
    assert found == {*ALL, graph_conditions.UNAVAILABLE}


@pytest.mark.parametrize("reason", [*REASONS, *ALL])
def test_each_is_explained_with_what_to_do(reason: str) -> None:
    done = call("explain", reason)

    assert done.code == 0
    assert reason in done.out
    assert "## What to do" in done.out


def test_the_manual_has_each_with_what_to_do() -> None:
    text = (ROOT / "docs" / "operator.md").read_text("utf-8")
    rows = re.findall(r"^\|[^|]*\| (?:True|False|Unknown) \| (\w+) \| ([^|]+) \|$", text, re.MULTILINE)

    assert {reason for reason, _ in rows} == {
        *(word for reasons in REASONS.values() for word in reasons),
        graph_conditions.UNAVAILABLE,
    }
    assert all(remedy.strip() for _, remedy in rows)
    for condition, events in EVENTS.items():
        assert condition in text
        assert all(f"`{event}`" in text for event in events)
