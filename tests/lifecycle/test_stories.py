"""Every story file is replayed with the recorded actions and states."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lifecycle.story import play, stories

FILES = sorted((Path(__file__).parent / "stories").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_stories_go_as_they_are_told(path: Path, *, rewrite: bool) -> None:
    text = path.read_text()
    head = text.partition("== ")[0]
    told = head + "\n".join("\n".join(play(story)) + "\n" for story in stories(text))

    if rewrite:
        path.write_text(told)

    assert told == text
