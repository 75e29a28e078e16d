"""Options that all tests share."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer to write what the program says into the documents that show it."""
    parser.addoption(
        "--rewrite",
        action="store_true",
        default=False,
        help="write real output into documents and scenarios; commit it only if you understand the difference",
    )


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether expected output is to be rewritten instead of compared."""
    return bool(request.config.getoption("--rewrite"))
