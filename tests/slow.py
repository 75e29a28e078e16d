"""Slow tests: marked with the reason, left out unless they are requested, and counted in the summary.

`@pytest.mark.slow("reason")` marks a test that has to take long. `--all` runs them, `-m slow` runs only them, and so
does naming their file or the test itself. Workers of a parallel run report their count to the main process.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.random_examples import QUICK

_TESTS = Path(__file__).parent
# Folders of which every test is slow.
_FOLDERS = {
    "hostile": "attacks a service for some time and measures how others fare meanwhile",
    "web": "draws pages of a service in a browser",
}
_LEFT_OUT = pytest.StashKey[int]()
# The key under which a worker reports its count.
_REPORTED = "coterie_slow_tests_left_out"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer to run every test."""
    parser.addoption("--all", action="store_true", default=False, help="run slow tests as well")


def pytest_configure(config: pytest.Config) -> None:
    """Let properties draw a share of their examples where slow tests are left out."""
    if config.getoption("--all") or "slow" in config.getoption("markexpr") or _named_files(config):
        os.environ.pop(QUICK, None)
    else:
        os.environ[QUICK] = "1"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow tests that nobody asked for; those deselected otherwise are not counted."""
    for item in items:
        folder = item.path.parent.relative_to(_TESTS).parts[:1] if item.path.is_relative_to(_TESTS) else ()
        if folder and folder[0] in _FOLDERS:
            item.add_marker(pytest.mark.slow(_FOLDERS[folder[0]]))
    _check_reasons(items)
    if config.getoption("--all") or "slow" in config.getoption("markexpr"):
        return
    named = _named_files(config)
    slow = [item for item in items if item.get_closest_marker("slow") and item.path not in named]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in set(slow)]
    config.stash[_LEFT_OUT] = len(slow)
    if hasattr(config, "workerinput"):
        config.workeroutput[_REPORTED] = len(slow)  # type: ignore[attr-defined] # given to workers by pytest-xdist


def _check_reasons(items: Sequence[pytest.Item]) -> None:
    for item in items:
        marker = item.get_closest_marker("slow")
        if marker is not None and not (len(marker.args) == 1 and isinstance(marker.args[0], str)):
            raise pytest.UsageError(f'{item.nodeid}: write why it is slow: @pytest.mark.slow("reason")')


def _named_files(config: pytest.Config) -> set[Path]:
    """Return the files that the call names, or names a test of."""
    paths = (config.invocation_params.dir / argument.partition("::")[0] for argument in config.args)
    return {path.resolve() for path in paths if path.is_file()}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over the count of a worker; all workers collect the same tests."""
    count = getattr(node, "workeroutput", {}).get(_REPORTED, 0)
    node.config.stash[_LEFT_OUT] = max(count, node.config.stash.get(_LEFT_OUT, 0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many tests were left out, and how to run them."""
    if count := config.stash.get(_LEFT_OUT, 0):
        terminalreporter.write_line(
            f"*** {count} SLOW TESTS WERE LEFT OUT: run them with --all, or name their file.", yellow=True, bold=True
        )
