"""Fixtures of the web page's tests: the built page, a real service with running workflows, and a browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.web.page_service import ROOT, PageService

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Far longer than anything takes on a busy machine; what is there ends a wait at once.
PATIENCE_MS = 120_000
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def built_page() -> None:
    """Build the page where it is not up to date; skip where it cannot be built."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "build-page")], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"NO WEB PAGE IS TESTED: {done.stderr.strip()}")


@pytest.fixture(scope="module")
def browser(built_page: None) -> Iterator[Browser]:
    """Run a browser; skip where there is none."""
    del built_page
    if CHROMIUM is None:
        pytest.skip("NO WEB PAGE IS TESTED: there is no Chromium; `apt-get install chromium` installs it")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=[*arguments, "--disable-dev-shm-usage"])
        yield found
        found.close()


class Visit:
    """A page in the browser, with everything that went wrong in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: self.requests.append(request.url))


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open pages; each has a session of its own, and all are closed after the test."""
    contexts = []

    def opened(url: str, *, width: int = 1280, height: int = 800, dark: bool = False) -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            # What fades in has other colours meanwhile.
            reduced_motion="reduce",
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        found = Visit(context.new_page())
        found.page.goto(url)
        return found

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def served(built_page: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageService]:
    """Run a service on which work runs, waits, and nodes are out of service."""
    del built_page
    with PageService(tmp_path_factory.mktemp("page")) as found:
        yield found


@pytest.fixture
def screenshots() -> Path:
    """Return the folder of the pictures in the documentation."""
    return ROOT / "docs" / "images"
