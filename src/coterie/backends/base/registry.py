"""The registry of schedulers: each has a package in `coterie.backends` and an entry here."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from coterie.backends.base.traits import Traits

# Modules that hold the TRAITS of a scheduler, by its name in configurations. They are named, not imported, so that a
# plan for one scheduler imports nothing of another.
MODULES = {
    "local": "coterie.backends.local.traits",
    "kai": "coterie.backends.kai.traits",
    "default": "coterie.backends.base.default_scheduler",
}

# The default scheduler: the machine that Coterie runs on.
EMBEDDED = "local"


def traits(scheduler: str) -> Traits:
    """Return the traits of a scheduler; those of an unknown one promise nothing."""
    module = MODULES.get(scheduler)
    if module is None:
        return Traits(scheduler, title=scheduler)
    found: Traits = import_module(module).TRAITS
    return found


def schedulers(holds: Callable[[Traits], bool] = lambda _: True) -> tuple[str, ...]:
    """Return the names of all schedulers for which a condition holds."""
    return tuple(name for name in MODULES if holds(traits(name)))


def for_pods(scheduler_name: str) -> str | None:
    """Return the scheduler that places pods with this `schedulerName` as gangs; None where none does."""
    return next((name for name in MODULES if traits(name).pod_scheduler == scheduler_name != ""), None)
