"""No module outside the backends depends on a scheduler's name: it uses the scheduler's traits."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import coterie

SOURCES = Path(coterie.__file__).parent
BACKENDS = SOURCES / "backends"
NAMES = {"grove", "kai", "local", "kai-scheduler"}

# Modules in which such a word is no scheduler to decide by.
OTHER_MEANING = {
    "cli/commands/render.py": "what manifests are written for: KAI, or Grove",
    "cli/handlers/render.py": "what manifests are written for: KAI, or Grove",
    "cli/inputs/options.py": "a part of Grove's operator that can be switched off",
    "frontends/admission.py": "a part of Grove's operator that can be switched off",
    "frontends/grove/podcliqueset/rules/update.py": "a schedulerName before and after a change",
    "frontends/grove/topology.py": "the schedulerNames that Grove's rules read and Dynamo's operator writes",
    "service/security.py": "the name of a caller without a token",
    "service/settings.py": "the owner of a workflow that was submitted without a token",
}


def modules() -> list[str]:
    found = [path for path in SOURCES.rglob("*.py") if not path.is_relative_to(BACKENDS)]
    return sorted(path.relative_to(SOURCES).as_posix() for path in found)


def names_in(tree: ast.AST) -> Iterator[int]:
    """Yield the lines on which a scheduler is named, or a pool's scheduler is compared with anything."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in NAMES:
            yield node.lineno
        elif isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            if any(isinstance(side, ast.Attribute) and side.attr == "scheduler" for side in sides):
                yield node.lineno


@pytest.mark.parametrize("module", modules())
def test_no_module_outside_the_backends_compares_a_scheduler_s_name(module: str) -> None:
    found = sorted(names_in(ast.parse((SOURCES / module).read_text(encoding="utf-8"))))

    assert bool(found) == (module in OTHER_MEANING), f"lines {found}"


@pytest.mark.parametrize(
    "line", ['pool.scheduler == "x"', 'pool.scheduler in ("x",)', 'NAME = "kai"', "backend.scheduler != LOCAL"]
)
def test_such_a_comparison_is_found(line: str) -> None:
    assert list(names_in(ast.parse(line)))


def test_the_core_may_import_no_dependency_but_numpy() -> None:
    project = tomllib.loads((SOURCES.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]["postgres"]
    written = [re.match(r"[a-z0-9-]+", one) for one in (*project["project"]["dependencies"], *extras)]
    modules = {found.group().replace("-", "_").replace("pyyaml", "yaml") for found in written if found}
    [ban] = [one for one in project["tool"]["importlinter"]["contracts"] if one["name"].startswith("The core is numpy")]

    assert modules - set(ban["forbidden_modules"]) == {"numpy"}
