"""The drivers of all backends that a service runs workflows on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from coterie.backends.base import registry
from coterie.backends.base.driver import Driver
from coterie.config.configuration import Backend
from coterie.errors import Unavailable
from coterie.service.driver.connections.driver_thread import DriverThread
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow, home_of
from coterie.service.driver.workflows.texts import CachedTexts, PromptTexts
from coterie.service.pools.catalog import PoolCatalog
from coterie.service.settings import Settings

# Backends of the embedded scheduler are one machine, whatever nodes they represent, and have one driver.
_MACHINE = ""


@dataclass(frozen=True, slots=True)
class Connection:
    """An open driver; `home` is the name of its backend, empty for this machine, and `problem` that of its problems.

    `backend` is what the driver was opened for.
    """

    home: str
    problem: str
    driver: Driver
    backend: Backend


class Drivers:
    """One driver for each backend, opened when the backend first appears in the catalog, and closed with this."""

    def __init__(
        self, settings: Settings, store: str, texts: tuple[CachedTexts, PromptTexts], poke: Callable[[], None]
    ) -> None:
        self._settings, self._store, self._poke = settings, store, poke
        self._texts, self._prompt = texts
        self._open: dict[str, Connection] = {}
        # Drivers look at it while it changes.
        self._names: set[str] = set()
        self._add(Backend(registry.EMBEDDED, registry.EMBEDDED))

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._open.values()))

    @property
    def running(self) -> int:
        """The number of tasks that run or are about to."""
        return sum(each.driver.running for each in self)

    def apply(self, catalog: PoolCatalog) -> list[Connection]:
        """Open the drivers of new backends, and reconcile all with their pools; return the new ones.

        The driver of a backend whose cluster or namespace has changed is closed, and opened anew.
        """
        backends = [backend for backend in catalog.backends.values() if backend.driven]
        self._names |= catalog.backends.keys()
        self._names &= catalog.backends.keys()
        for backend in backends:
            known = self._open.get(_home(backend))
            if known is not None and known.home != _MACHINE and _moved(known.backend, backend):
                del self._open[known.home]
                known.driver.close()
        new = [self._add(backend) for backend in backends if _home(backend) not in self._open]
        for each in self:
            own = {backend.name for backend in backends if _home(backend) == each.home}
            each.driver.sync([known.pool for known in catalog.pools.values() if known.pool.backend in own])
        return new

    def of(self, life: LiveWorkflow) -> Connection:
        """Return the driver that has the tasks of a workflow; raise `Unavailable` while its backend is unknown."""
        home = home_of(life.digest)
        if home not in self._open:
            hint = "Add the backend to the configuration again."
            raise Unavailable(f'workflow "{life.id}" runs on backend "{home}", which is not known here', hint)
        return self._open[home]

    def has(self, life: LiveWorkflow) -> bool:
        """Return whether the backend of a workflow is known here."""
        return home_of(life.digest) in self._open

    def problem(self, life: LiveWorkflow) -> str:
        """Return the name of the problems with the backend of a workflow."""
        return _problem(home_of(life.digest))

    def moved(self, life: LiveWorkflow, catalog: PoolCatalog) -> str:
        """Return the backend of a workflow's pool, if its tasks are elsewhere; otherwise an empty string."""
        known = catalog.pools.get(life.pool)
        backend = catalog.backends.get(known.pool.backend) if known else None
        if backend is None or not backend.driven:
            return ""
        return "" if _home(backend) == home_of(life.digest) else backend.name

    def given_up(self) -> Iterator[tuple[str, Exception]]:
        """Yield the workflows whose calls end with unexpected errors, which backends on threads have given up."""
        for each in self:
            if isinstance(each.driver, DriverThread):
                yield from each.driver.given_up()

    def release(self, workflow: str) -> None:
        """Stop following the tasks of a workflow on all backends."""
        for each in self:
            each.driver.release(workflow)

    def close(self) -> None:
        """Close all drivers; tasks keep running."""
        for each in self:
            each.driver.close()

    def _add(self, backend: Backend) -> Connection:
        home, open_driver = _home(backend), backend.traits.driver
        if open_driver is None:
            raise Unavailable(
                f'backend "{backend.name}" has a scheduler that Coterie cannot drive',
                "Choose a pool of another backend.",
            )
        settings, texts = self._settings.for_driver(self._store, backend, self._names), self._texts
        if home == _MACHINE:
            found = Connection(home, _problem(home), open_driver(settings, self._prompt), backend)
        else:
            thread = DriverThread(lambda: open_driver(settings, texts), self._poke)
            found = Connection(home, _problem(home), thread, backend)
        self._open[home] = found
        return found


def _problem(home: str) -> str:
    return "tasks" if home == _MACHINE else f"backend {home}"


def _home(backend: Backend) -> str:
    return _MACHINE if backend.traits.embedded else backend.name


def _moved(before: Backend, after: Backend) -> bool:
    return (before.scheduler, before.context, before.namespace) != (after.scheduler, after.context, after.namespace)
