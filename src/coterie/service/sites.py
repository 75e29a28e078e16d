"""Every backend with its nodes and its queue: where gangs wait, and what they hold once they are placed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from coterie.errors import NotFound, Reason, SpecErrors
from coterie.frontends.config import Pool
from coterie.lifecycle import Enqueue, Observation, Placed, Refused, Release, Released, holdings
from coterie.planning import words
from coterie.service.catalog import Catalog
from coterie.service.life import Life, Texts, levels_of, lost_levels, shape_in, without_wishes
from coterie.service.queue import Entry, Queue, Seated, Told, only_tasks, without_nodes
from coterie.service.store import Placement
from coterie.service.world import Held, Key, World
from coterie.topology.domains import Domains


@dataclass(frozen=True, slots=True)
class Site:
    """One backend."""

    world: World
    queue: Queue


@dataclass(frozen=True, slots=True)
class News:
    """What the queue has to say about a workflow."""

    workflow: str
    observation: Observation
    placed: tuple[Placement, ...] = ()


class Sites:
    """All backends, seen through the catalog of the moment."""

    def __init__(self, catalog: Catalog, texts: Texts, patience: float) -> None:
        self.catalog = catalog
        self._texts = texts
        self._patience = patience
        self._sites: dict[str, Site] = {}
        self.apply(catalog)

    @property
    def waiting(self) -> int:
        """How many gangs wait."""
        return sum(len(site.queue) for site in self._sites.values())

    def apply(self, catalog: Catalog) -> set[tuple[str, str]]:
        """Take in new pools and nodes; return pools with nodes that they have lost.

        Every gang that waits has to be put into the queue again: its pool may be another one now.
        """
        before = self.catalog
        gone: set[tuple[str, str]] = set()
        for name, snapshot in catalog.clusters.items():
            old = self._sites.get(name)
            world = World(snapshot.cluster)
            if old is not None and before.clusters.get(name) is snapshot:
                world = old.world
            elif old is not None:
                for key, pool, held in old.world.placements():
                    world.restore(key, pool, held)
                lost = set(old.world.cluster.names) - set(world.cluster.names)
                users = [pool for pool, known in before.pools.items() if known.pool.backend == name]
                gone |= {(pool, node) for pool in users for node in lost}
            self._sites[name] = Site(world, Queue(world, self._patience))
        self.catalog = catalog
        return gone

    def restore(self, life: Life, rows: Iterable[Placement]) -> None:
        """Hold again what a workflow held before a restart."""
        known = {(row.group, row.task, row.attempt): row for row in rows}
        found = list(holdings(life.state))
        if not found or (site := self._site(life.pool)) is None:
            return
        for one in found:
            if one.node:
                row = known.get((one.group, one.task, one.attempt))
                held = Held(one.task, one.node, shape_in(life.digest, one.task), tuple(row.gpus) if row else ())
                site.world.restore((life.id, one.group, one.attempt), life.pool, [held])

    def enqueue(self, life: Life, asked: Enqueue) -> News | None:
        """Let a gang wait. One that is placed already is told so again; one that never can be is told why."""
        key = (life.id, asked.group, asked.attempt)
        site = self._site(life.pool)
        if site is None:
            message = f'pool "{life.pool}" has no nodes that this service knows'
            return News(life.id, Refused(asked.group, asked.attempt, Reason.SCHEDULER_REFUSED.value, message))
        if held := site.world.held(key):
            return self._placed(life.id, asked.group, asked.attempt, tuple(held.values()), life.pool)
        pool = self._pool(life.pool)
        try:
            built = self._texts.built(life.id, pool, levels_of(life.digest))
        except (SpecErrors, NotFound) as error:
            site.queue.drop(key)
            return News(life.id, Refused(asked.group, asked.attempt, Reason.INVALID_SPEC.value, str(error)))
        gang = built.gang(asked.group)
        if lost := lost_levels(gang, pool.topology):
            site.queue.drop(key)
            levels = " and ".join(f'"{level}"' for level in lost)
            message = f'pool "{pool.name}" no longer has level {levels}, which the group requires'
            return News(life.id, Refused(asked.group, asked.attempt, Reason.LEVEL_LOST.value, message))
        anchors = dict(asked.anchors)
        gang = only_tasks(without_wishes(gang, pool.topology), {*asked.tasks, *anchors})
        group = life.state.groups[life.spec.order[asked.group]]
        since = min((task.queued for task in group.tasks if task.queued is not None), default=life.submitted_at)
        gang = without_nodes(gang, asked.excluded)
        site.queue.put(Entry(key, pool, gang, life.priority, since, life.number, anchors))
        return None

    def release(self, life: Life, asked: Release) -> Released:
        """Take tasks out of the queue, or give back what they hold."""
        key = (life.id, asked.group, asked.attempt)
        for site in self._sites.values():
            site.queue.drop(key)
            site.world.release(key, asked.tasks)
        return Released(asked.group, asked.attempt, asked.tasks)

    def cycle(self, now: float) -> Iterator[News]:
        """Place whoever can be placed; say where, and why others wait."""
        for site in self._sites.values():
            if not len(site.queue):
                continue
            for told in list(site.queue.cycle(now)):
                workflow, group, attempt = told.entry.key
                match told:
                    case Seated(entry, held):
                        yield self._placed(workflow, group, attempt, held, entry.pool.name)
                    case Told():
                        yield News(workflow, Refused(group, attempt, *self._words(told, site.world)))

    def held(self, key: Key, pool: str) -> Mapping[str, Held]:
        """Return what the tasks of a placement hold."""
        site = self._site(pool)
        return site.world.held(key) if site else {}

    def domains(self, pool: str, node: str) -> dict[str, str]:
        """Return the values of a node's levels, seen through a pool."""
        site = self._site(pool)
        return site.world.domains(self._pool(pool), node) if site else {}

    def _placed(self, workflow: str, group: str, attempt: int, held: tuple[Held, ...], pool: str) -> News:
        nodes = tuple((one.task, one.node) for one in held)
        rows = tuple(
            Placement(group, one.task, attempt, one.node, one.gpus, self.domains(pool, one.node)) for one in held
        )
        return News(workflow, Placed(group, attempt, nodes), rows)

    def _words(self, told: Told, world: World) -> tuple[str, str]:
        refusal, pool = told.decision.refusal, told.entry.pool
        if refusal is None:
            return Reason.UNDECIDED.value, "it is not known yet whether there is a place"
        domains: Domains = world.capacity(pool).domains
        return refusal.reason.value, words.message(refusal, told.entry.gang, domains.topology, domains.cluster)

    def _pool(self, name: str) -> Pool:
        return self.catalog.pools[name].pool

    def _site(self, pool: str) -> Site | None:
        known = self.catalog.pools.get(pool)
        return self._sites.get(known.pool.backend) if known else None
