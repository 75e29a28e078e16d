"""Options and fixtures that all tests share."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

from tests.random_examples import examples
from tests.seed import SEED

# Bytecode of modules is kept, also where the environment forbids it: otherwise each of the programs that tests start
# would compile all that it imports.
sys.dont_write_bytecode = False
_REPEAT = f"seed of this run: {SEED} (repeat it with COTERIE_SEED={SEED})"

# The fixtures of tests that need a real cluster, the choice of slow tests, and the limits of all.
pytest_plugins = ["lab.pytest_plugin", "tests.slow", "tests.limits"]
_CLUSTERS = frozenset({"make_lab", "shared_lab", "lab_programs", "real_nodes_possible", "plain"})


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer to write what the program says into the documents that show it."""
    parser.addoption(
        "--rewrite",
        action="store_true",
        default=False,
        help="write real output into documents and scenarios; commit it only if you understand the difference",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give the seed of the run to hypothesis, unless it has got one of its own."""
    if config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(SEED)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the workers of `-n auto`: tests wait for processes and disks for about a third of their time."""
    return 2 * len(os.sched_getaffinity(0))


def pytest_sessionstart() -> None:
    """Set what holds for all properties, before their modules are imported.

    Every run asks new questions, all drawn from one seed: what is always the same finds the same faults. Failures of
    earlier runs are not kept, so that the seed alone says what a run asks. No answer is judged by its time: a busy
    machine may stop a test for seconds anywhere.
    """
    settings.register_profile(
        "seeded",
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        max_examples=examples(settings().max_examples),
    )
    settings.load_profile("seeded")


def pytest_report_header() -> str:
    """Say how to repeat the run."""
    return _REPEAT


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how to repeat a run that failed, also where the header is not shown."""
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(_REPEAT)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that need a real cluster; let workers begin with their files, which take longest."""
    for item in items:
        if _CLUSTERS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.lab)
    if hasattr(config, "workerinput"):
        slow = {item.path for item in items if item.get_closest_marker("lab")}
        items.sort(key=lambda item: item.path not in slow)


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether expected output is to be rewritten instead of compared."""
    return bool(request.config.getoption("--rewrite"))
