"""Options and fixtures that all tests share."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

# A test run asks the same questions every time, so that red means a change; COTERIE_RANDOM=1 asks others.
settings.register_profile("steady", derandomize=True)
settings.load_profile("default" if os.environ.get("COTERIE_RANDOM") else "steady")

# A shell that starts something in the background lets it ignore interrupts, and all that it starts in turn. Tests send
# them to programs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The fixtures of tests that need a real cluster.
pytest_plugins = ["lab.pytest_plugin"]
_CLUSTERS = frozenset({"lab", "make_lab", "shared_lab", "lab_programs", "plain"})


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer to write what the program says into the documents that show it."""
    parser.addoption(
        "--rewrite",
        action="store_true",
        default=False,
        help="write real output into documents and scenarios; commit it only if you understand the difference",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let workers begin with the files that need a real cluster: they take longest."""
    if hasattr(config, "workerinput"):
        slow = {item.path for item in items if _CLUSTERS.intersection(getattr(item, "fixturenames", ()))}
        items.sort(key=lambda item: item.path not in slow)


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether expected output is to be rewritten instead of compared."""
    return bool(request.config.getoption("--rewrite"))
