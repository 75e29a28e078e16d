"""The registry of schedulers, which loads a backend only when it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from coterie.backends.base import registry
from coterie.config.model import BackendModel

_PLAN = """
import sys
from coterie.cli.app import app
try:
    app(sys.argv[1:])
except SystemExit as ended:
    assert not ended.code, ended.code
found = sorted(name for name in sys.modules if name.startswith("coterie.backends.kai"))
assert "coterie.backends.local.traits" in sys.modules
assert not found, found
"""


@pytest.mark.parametrize("name", registry.MODULES)
def test_every_scheduler_has_traits_under_its_own_name(name: str) -> None:
    assert registry.traits(name).scheduler == name


def test_the_configuration_names_every_scheduler() -> None:
    said = BackendModel.model_fields["scheduler"].description or ""

    assert all(name in said for name in registry.MODULES)


def test_an_unknown_scheduler_promises_nothing() -> None:
    found = registry.traits("unknown")

    assert [found.driven, found.topology, found.compute_domains, found.embedded] == [False] * 4


def test_pods_lead_to_the_scheduler_that_places_them_as_gangs() -> None:
    assert registry.for_pods("kai-scheduler") == "kai"
    assert registry.for_pods("default-scheduler") is None
    assert registry.for_pods("") is None


def test_a_local_plan_loads_nothing_of_kai() -> None:
    example = Path(__file__).parents[3] / "examples" / "00-hello-rack"

    done = subprocess.run(
        [sys.executable, "-c", _PLAN, "plan", example / "workflow.yaml", "--cluster", example / "cluster.yaml"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
