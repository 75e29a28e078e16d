"""The source tree: its document names every package, packages are small, and no name has two meanings."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from coterie.backends.base import registry

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "coterie"
DOCUMENT = ROOT / "docs" / "design" / "0002-architecture.md"
# Beyond this many modules, a package has more than one subject.
MOST_MODULES = 15
# Paths of the table of moves: a folder with names in braces, or a single path.
MOVED = re.compile(r"([\w/]+/)\{([^}]+)\}|[\w/]+(?=,|$)")
# The API's messages bear the names of what they describe.
MESSAGES = SOURCE / "service" / "api" / "models"
# Folders that may compare the names of schedulers: backends, which have them, and the rules of Grove and Dynamo, which
# read the `schedulerName` of pods as their operators do.
OF_SCHEDULERS = frozenset({"backends", "frontends"})
# `coterie render --backend` names the scheduler to write manifests for.
RENDER = SOURCE / "cli" / "handlers" / "render.py"
# Constants that hold the name of a scheduler.
CONSTANTS = frozenset({"EMBEDDED", "KAI"})
# The name of a scheduler that is an ordinary word elsewhere, and no name at all.
AMBIGUOUS = frozenset({"default", ""})
# Marks a folder as a package and counts as no module.
INIT = "__init__.py"


def packages(folder: Path) -> dict[str, list[str]]:
    """Return the modules of a package and of every package below it, by the path inside the first."""
    return {
        str(init.parent.relative_to(folder)): sorted(
            file.name for file in init.parent.glob("*.py") if file.name != INIT
        )
        for init in folder.rglob(INIT)
    }


def test_the_document_names_every_package_at_the_top() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    linked = set(re.findall(r"\.\./\.\./src/coterie/(\w+)", text))
    assert {name.split("/")[0] for name in packages(SOURCE) if name != "."} <= linked


@pytest.mark.parametrize("folder", [SOURCE, ROOT / "lab", ROOT / "bench"], ids=lambda folder: folder.name)
def test_no_package_is_too_large_to_survey_or_holds_a_single_module(folder: Path) -> None:
    found = packages(folder)
    large = {name: len(modules) for name, modules in found.items() if len(modules) > MOST_MODULES}
    inner = {str(Path(name).parent) for name in found}
    single = {name: modules for name, modules in found.items() if len(modules) < 2 and name not in inner}
    # Migrations come one a release, under the name that alembic looks for.
    single.pop("store/migrations/versions", None)
    assert (large, single) == ({}, {})


def moved_to() -> list[str]:
    """Return the paths in the right column of the table of moves."""
    _, _, table = DOCUMENT.read_text(encoding="utf-8").partition("| before | now |\n|---|---|\n")
    cells = [line.split("|")[2].strip() for line in table.splitlines()]
    found = [match for cell in cells for match in MOVED.finditer(cell)]
    return [f"{match[1]}{name}" for match in found if match[1] for name in match[2].split(", ")] + [
        match[0] for match in found if not match[1] and "/" in match[0]
    ]


def test_the_table_of_moves_leads_to_modules_that_exist() -> None:
    found = moved_to()
    assert len(found) > 100
    assert [path for path in found if not (SOURCE / path).is_dir() and not (SOURCE / f"{path}.py").is_file()] == []


def test_the_tests_that_contributors_are_told_to_run_exist() -> None:
    named = re.findall(r"tests/[\w/.]+\w", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_no_two_classes_have_the_same_name() -> None:
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in SOURCE.rglob("*.py") if file.parent != MESSAGES]
    classes = [node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    found = Counter(name for name in classes if not name.startswith("_"))
    assert [name for name, number in found.items() if number > 1] == []


def test_the_core_may_import_no_package_of_others_but_numpy() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    [core] = [each for each in contracts if "numpy" in each["name"]]
    imported = {name.partition(".")[0] for file in SOURCE.rglob("*.py") for name in imports(file)}
    others = imported - sys.stdlib_module_names - {"coterie", "numpy"}
    assert {"pydantic", "sqlalchemy"} < others
    assert others <= set(core["forbidden_modules"])


def imports(file: Path) -> list[str]:
    """Return the full names of the modules that a file imports anywhere."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    plain = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return plain + [
        node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level
    ]


def test_no_module_outside_backends_compares_the_name_of_a_scheduler() -> None:
    known = [registry.traits(name) for name in registry.schedulers()]
    names = {name for each in known for name in (each.scheduler, each.pod_scheduler)} | {"grove", *CONSTANTS}
    assert {"kai", "kai-scheduler", "local"} < names
    files = [
        file
        for file in SOURCE.rglob("*.py")
        if file.relative_to(SOURCE).parts[0] not in OF_SCHEDULERS and file != RENDER
    ]
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {text}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare | ast.MatchValue)
        for text in compared(node)
        if text in names - AMBIGUOUS
    ]
    assert found == []


def compared(node: ast.Compare | ast.MatchValue) -> list[str]:
    """Return the texts in a comparison or a case, and the names of constants that hold one."""
    sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else [node.value]
    parts = [part for side in sides for part in ast.walk(side)]
    return [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)] + [
        part.id for part in parts if isinstance(part, ast.Name) and part.id in CONSTANTS
    ]
