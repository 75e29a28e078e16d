"""The layout of the source tree: its document names every package, and no package is too large to survey."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "coterie"
DOCUMENT = ROOT / "docs" / "design" / "0002-architecture.md"
# Beyond this many modules, a package has more than one subject.
MOST_MODULES = 18
# Marks a folder as a package and counts as no module.
INIT = "__init__.py"


def packages() -> dict[str, list[str]]:
    """Return the modules of every package below `src/coterie`, by the package's path."""
    return {
        str(init.parent.relative_to(SOURCE)): sorted(
            file.name for file in init.parent.glob("*.py") if file.name != INIT
        )
        for init in SOURCE.rglob(INIT)
        if init.parent != SOURCE
    }


def test_the_document_names_every_package_at_the_top() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    linked = set(re.findall(r"\.\./\.\./src/coterie/(\w+)", text))
    assert {name.split("/")[0] for name in packages()} <= linked


def test_no_package_is_too_large_to_survey_or_holds_a_single_module() -> None:
    found = packages()
    large = {name: len(modules) for name, modules in found.items() if len(modules) > MOST_MODULES}
    inner = {str(Path(name).parent) for name in found}
    single = {name: modules for name, modules in found.items() if len(modules) < 2 and name not in inner}
    # Migrations come one a release, under the name that alembic looks for.
    single.pop("store/migrations/versions", None)
    assert (large, single) == ({}, {})
