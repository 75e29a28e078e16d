"""YAML in the documents is valid, and whole files in them are accepted by their readers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from coterie.config.configuration import read_config
from coterie.document.located import documents
from coterie.frontends.kubernetes.objects import is_kubernetes, read_resources
from coterie.frontends.workflow.read import read_workflow
from coterie.planning.inputs import read_snapshot
from coterie.planning.load import read_documents

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
SNIPPETS = [
    pytest.param(block, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
]


def test_there_are_snippets() -> None:
    assert SNIPPETS


@pytest.mark.parametrize("text", SNIPPETS)
def test_a_snippet_is_accepted_by_the_reader_it_is_for(text: str) -> None:
    if "{%" in text:
        assert "workflow:" in text
        read_workflow(text.encode(), "snippet.yaml")
        return
    if is_kubernetes(text.encode()):
        if read_resources(text.encode(), "snippet.yaml").resources:
            read_documents(text.encode(), "snippet.yaml")
        return
    parts = [document.data for document in documents(text, "snippet.yaml")]
    assert parts
    assert all(parts)
    data = parts[0]
    keys = set(data) if isinstance(data, dict) else set()
    if "workflow" in keys and {"tasks", "groups"} & set(data["workflow"]):
        assert read_workflow(text.encode(), "snippet.yaml").teams
    elif {"backends", "pools"} <= keys:
        assert read_config(text.encode(), "snippet.yaml").pools
    elif {"fleet", "nodes"} & keys:
        assert len(read_snapshot(text.encode(), "snippet.yaml").cluster)
