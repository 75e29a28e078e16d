"""Fixtures for tests that need a real cluster.

`lab` is one lab for all tests of a run, emptied before each; with pytest-xdist each worker has one, when it first needs
it. It stops before the first test after which none needs a cluster, and starts again where tests run in another order
than they were collected and one still needs it. `make_lab` starts labs of a test's own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Lab
from lab.errors import GoMissingError, LabError
from lab.programs.build import build
from lab.programs.components import ALL, KUBELET, USUAL, Component
from lab.realnodes import requirements

# A test may leave a thousand objects behind, on a machine that has much else to do.
_RESET_S = 120.0
_SHARED = pytest.StashKey[Lab]()
# The shared lab after it was stopped before the end of the run.
_STOPPED = pytest.StashKey[Lab]()
# The tests after the last one that needs a cluster.
_REST = pytest.StashKey[frozenset[str]]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note the tests at the end of a run that need no cluster: workers usually take tests in this order, too."""
    needed = [index for index, item in enumerate(session.items) if item.get_closest_marker("lab")]
    rest = session.items[needed[-1] + 1 :] if needed else ()
    session.config.stash[_REST] = frozenset(item.nodeid for item in rest)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Build the programs before a test needs them, and stop the shared lab when no other test will.

    A first build takes many minutes, which are not the test's. A lab without work still takes time of the processors,
    and each test would look through its processes for its own.
    """
    if item.nodeid in item.config.stash[_REST] and (shared := item.config.stash.get(_SHARED, None)):
        del item.config.stash[_SHARED]
        item.config.stash[_STOPPED] = shared
        # What fails here fails again in the fixture, at the end of the run.
        with suppress(LabError):
            _stop(shared, item.config)
    if item.get_closest_marker("lab"):
        wanted = ALL if "real_nodes_possible" in getattr(item, "fixturenames", ()) and _has_real_nodes() else USUAL
        # What fails here fails again in the fixture, where it is the test's.
        with suppress(LabError), _uncaptured(item.config):
            build(wanted)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start the shared lab again for a test that needs it after it was stopped.

    Workers that take files by their number of tests, or tests from each other, do not keep the order of collection.
    """
    if "shared_lab" in getattr(item, "fixturenames", ()) and (stopped := item.config.stash.get(_STOPPED, None)):
        stopped.start()
        del item.config.stash[_STOPPED]
        item.config.stash[_SHARED] = stopped


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the logs of a lab in which a test failed."""
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, Lab):
                value.keep_logs = True
    return report


@pytest.fixture(scope="session")
def lab_programs(request: pytest.FixtureRequest) -> Mapping[str, Path]:
    """Give the folders of the lab's programs, which are built if need be; skip the test where there is no Go."""
    return _build(request.config)


@pytest.fixture(scope="session")
def shared_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Give the lab that the tests of one worker share, as the last test left it."""
    _build(request.config)
    lab = Lab()
    lab.start()
    request.config.stash[_SHARED] = lab
    yield lab
    _stop(lab, request.config)


@pytest.fixture
def lab(shared_lab: Lab) -> Lab:
    """Give the shared lab, empty: no nodes, no pods, nothing that an earlier test made."""
    shared_lab.reset(_RESET_S)
    return shared_lab


@pytest.fixture
def make_lab(request: pytest.FixtureRequest) -> Iterator[Callable[..., Lab]]:
    """Give a function that starts a lab with the options of `Lab`; it stops with the test."""
    _build(request.config)
    with ExitStack() as stack:

        def make(**options: Any) -> Lab:  # noqa: ANN401 - the options of Lab
            if options.get("real_nodes"):
                _require_real_nodes(request.config)
            lab = Lab(**options)
            lab.start()
            stack.callback(_stop, lab, request.config)
            return lab

        yield make


@pytest.fixture(scope="module")
def real_nodes_possible(request: pytest.FixtureRequest) -> None:
    """Skip the tests of a module where this machine cannot run real nodes."""
    _build(request.config)
    _require_real_nodes(request.config)


def _build(config: pytest.Config, wanted: Sequence[Component] = USUAL) -> Mapping[str, Path]:
    try:
        with _uncaptured(config):
            return build(wanted)
    except GoMissingError as error:
        pytest.skip(f"NO CLUSTER: {error}. {error.hint}")


def _has_real_nodes() -> bool:
    try:
        requirements.require()
    except requirements.RealNodesError:
        return False
    return True


def _require_real_nodes(config: pytest.Config) -> None:
    try:
        requirements.require()
    except requirements.RealNodesError as error:
        pytest.skip(f"NO REAL NODES: {error}. {error.hint}")
    _build(config, [KUBELET])


def _stop(lab: Lab, config: pytest.Config) -> None:
    lab.stop()
    if lab.kept_logs:
        with _uncaptured(config):
            print(f"\nlogs of the lab: {lab.kept_logs}")  # noqa: T201 - where they are must be seen


@contextmanager
def _uncaptured(config: pytest.Config) -> Iterator[None]:
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        yield
