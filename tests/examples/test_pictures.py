"""Pictures in the documents equal the program's output."""

from __future__ import annotations

import re

import pytest

from tests.examples.console import ROOT, run

# Each picture of a map, and what it is drawn from.
MAPS = {"docs/images/gb200-fleet.svg": "examples/13-gb200-fleet/snapshot.json"}


@pytest.mark.parametrize(("picture", "source"), MAPS.items())
def test_a_picture_is_the_map_that_is_drawn_now(picture: str, source: str, *, rewrite: bool) -> None:
    # Both streams are one here; what is said of guessed levels stands behind the picture.
    drawn = run("map", source, "-o", "svg").stdout.partition("</svg>\n")
    real = "".join(drawn[:2])

    if rewrite:
        (ROOT / picture).write_text(real, encoding="utf-8")
    assert (ROOT / picture).read_text(encoding="utf-8") == real


def test_the_readme_shows_a_map_and_a_command_on_its_first_screen() -> None:
    first = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]

    assert len(first.splitlines()) <= 40
    assert re.search(r"!\[[^\]]+\]\(docs/images/gb200-fleet\.svg\)", first)
    assert "coterie plan" in first


def test_the_readme_installs_and_runs_with_one_command_and_tests_with_another() -> None:
    sections = dict(
        re.findall(
            r"^## (.+?)\n(.*?)(?=^## |\Z)", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        )
    )

    assert list(sections)[:2] == ["Two commands", "Development"]
    assert re.findall(r"```sh\n(.*?)```", sections["Two commands"], re.DOTALL)[0].count("\n") == 1
    assert re.findall(r"```sh\n(.*?)```", sections["Development"], re.DOTALL) == ["bash scripts/test\n"]


def test_the_front_page_has_four_parts_that_name_every_page() -> None:
    text = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")} - {"index.md"}
    entries = [line for line in text.splitlines() if line.startswith("- ")]

    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Start", "How-to", "Reference", "Design"]
    assert {target for line in entries for target in re.findall(r"\]\(([^)]+\.md)\)", line)} == pages
    assert [line for line in entries if not re.fullmatch(r"- \[[^\]]+\]\([^)]+\): .+", line)] == []
