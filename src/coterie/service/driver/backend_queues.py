"""The backends with their nodes and queues: waiting gangs, and the capacity of placed ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from coterie.backends.base import registry
from coterie.backends.base.driver import TaskPlacement
from coterie.config.configuration import Pool
from coterie.errors import NotFound, Reason, SpecErrors
from coterie.gang.edits import pinned
from coterie.gang.tree import Toleration
from coterie.lifecycle import (
    Create,
    Enqueue,
    Observation,
    Placed,
    Presence,
    Refused,
    Released,
    ReleaseTasks,
    Running,
    Scheduled,
    Up,
    holdings,
)
from coterie.placement.refusal import Verdict
from coterie.service.driver.handed_over.engine_question import EngineQuestion, refusal_words
from coterie.service.driver.node_health import (
    HealthCondition,
    HealthConditions,
    is_healthy,
    next_end,
    outlasting,
    with_start_times,
)
from coterie.service.driver.workflows.driven_workflow import LiveWorkflow, levels_of, shape_in
from coterie.service.driver.workflows.texts import CachedTexts, PromptTexts
from coterie.service.pools.catalog import PoolCatalog
from coterie.service.queue.holdings import BackendHoldings, Key, TaskHolding
from coterie.service.queue.order import since_of
from coterie.service.queue.queue import PlacedGang, Queue, QueueEntry, WaitReason
from coterie.service.queue.waiting_gang import Blocked, known_pool, waiting_gang
from coterie.store import PlacementRecord, WorkflowRecord

# Tasks in these phases have capacity, or may have.
_HOLDING = (Presence.PLACED, Presence.CREATED, Presence.STOPPING, Presence.DELETING)


@dataclass(frozen=True, slots=True)
class BackendQueue:
    """One backend: its nodes with holdings and conditions, and its waiting gangs.

    `told` are the conditions that lasted so long that tasks were declared lost.
    """

    world: BackendHoldings
    queue: Queue
    ill: HealthConditions
    embedded: bool = True
    told: set[HealthCondition] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class QueueAnswer:
    """An answer of the queue about a workflow."""

    workflow: str
    observation: Observation
    placed: tuple[PlacementRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class FailedTask:
    """A task whose node has failed."""

    workflow: str
    task: str
    attempt: int
    why: str


class BackendQueues:
    """All backends, under the current catalog."""

    def __init__(
        self,
        catalog: PoolCatalog,
        texts: CachedTexts,
        prompt: PromptTexts,
        patience: float,
        node_grace: float,
        now: float,
        processes: int,
    ) -> None:
        self.catalog = catalog
        most_tasks = registry.traits(registry.EMBEDDED).most_tasks
        self._most = most_tasks(processes) if most_tasks else processes
        self._texts, self._prompt = texts, prompt
        self._asked: dict[Key, tuple[Enqueue, Pool]] = {}  # the requests of waiting gangs, and their pools
        self._patience, self._node_grace = patience, node_grace
        self._backends: dict[str, BackendQueue] = {}
        self.apply(catalog, now)

    @property
    def waiting(self) -> int:
        """The number of waiting gangs."""
        return sum(len(site.queue) for site in self._backends.values())

    @property
    def failing_at(self) -> float | None:
        """The time at which an unhealthy node will have failed, if nothing changes."""
        ends = (next_end(site.ill, self._node_grace, site.told) for site in self._backends.values())
        return min((at for at in ends if at is not None), default=None)

    def _running(self) -> tuple[int, int]:
        """Return how many tasks run on this machine, and how many may."""
        return sum(site.world.tasks for site in self._backends.values() if site.embedded), self._most

    def apply(self, catalog: PoolCatalog, now: float) -> list[FailedTask]:
        """Apply new pools and nodes; return the tasks whose nodes are gone.

        Every waiting gang has to be queued again, since its pool may have changed.
        """
        before, failures = self.catalog, list[FailedTask]()
        for name, snapshot in catalog.clusters.items():
            old = self._backends.get(name)
            if old is None:
                world = BackendHoldings(snapshot.cluster)
                embedded = catalog.backends[name].traits.embedded
                queue = Queue(world, self._patience, self._running if embedded else None)
                self._backends[name] = BackendQueue(world, queue, with_start_times({}, snapshot.cluster, now), embedded)
                continue
            world = old.world
            if before.clusters.get(name) is not snapshot:
                world = BackendHoldings(snapshot.cluster)
                for key, pool, held in old.world.placements():
                    world.restore(key, pool, held)
                    failures += [_gone(key, one) for one in held if one.node not in world.cluster.position]
            ill = with_start_times(old.ill, snapshot.cluster, now)
            self._backends[name] = BackendQueue(world, old.queue.onto(world), ill, old.embedded, old.told & ill.keys())
        self.catalog = catalog
        return failures

    def restore(self, life: LiveWorkflow, rows: Iterable[PlacementRecord]) -> list[FailedTask]:
        """Restore the holdings of a workflow after a restart; return the tasks whose nodes are gone since then."""
        known = {(row.group, row.task, row.attempt): row for row in rows}
        failures: list[FailedTask] = []
        for one in holdings(life.state):
            if not one.node:
                continue
            key = (life.id, one.group, one.attempt)
            row = known.get((one.group, one.task, one.attempt))
            held = TaskHolding(one.task, one.node, shape_in(life.digest, one.task), tuple(row.gpus) if row else ())
            if not self._held_again(key, life.pool, held) and self._site(life.pool) is not None:
                failures.append(_gone(key, held))
        return failures

    def keep(self, stored: WorkflowRecord, rows: Iterable[PlacementRecord]) -> None:
        """Restore the holdings of a workflow that cannot be driven, as far as they are known."""
        for row in rows:
            with suppress(LookupError, TypeError, ValueError):
                held = TaskHolding(row.task, row.node, shape_in(stored.digest, row.task), tuple(row.gpus))
                self._held_again((stored.id, row.group, row.attempt), stored.pool, held)

    def withdraw(self, workflow: str) -> None:
        """Remove all waiting gangs of a workflow."""
        for site in self._backends.values():
            for key in site.queue.keys_of(workflow):
                site.queue.drop(key)
                self._asked.pop(key, None)

    def free(self, workflow: str) -> None:
        """Return all capacity of a workflow."""
        for site in self._backends.values():
            for key, _, held in list(site.world.placements()):
                if key[0] == workflow:
                    site.world.release(key, [one.task for one in held])

    def _held_again(self, key: Key, pool: str, held: TaskHolding) -> bool:
        """Hold capacity on its node; return whether a backend has it. Its pool may have other nodes now, or none."""
        own = self._site(pool)
        for site in (*([own] if own else ()), *self._backends.values()):
            if held.node in site.world.cluster.position:
                site.world.restore(key, pool, [held])
                return True
        return False

    def failed(self, lives: Mapping[str, LiveWorkflow], now: float) -> list[FailedTask]:
        """Return the tasks on nodes that have been unhealthy for too long, each once."""
        failures: list[FailedTask] = []
        for site in self._backends.values():
            over = outlasting(site.ill, self._node_grace, site.told, now)
            site.told.update(over)
            for (workflow, group, attempt), _, held in list(site.world.placements()) if over else ():
                for one in held:
                    hit = [each for each in over if each.node == one.node]
                    if hit and workflow in lives:
                        tolerated = self._tolerations(lives[workflow], group, one.task)
                        failures += [
                            FailedTask(
                                workflow,
                                one.task,
                                attempt,
                                f"node {one.node} {each.words} for {self._node_grace:g} s",
                            )
                            for each in hit
                            if each.hits(tolerated)
                        ][:1]
        return failures

    def recovered(self, life: LiveWorkflow) -> list[str]:
        """Return the nodes that failed under a workflow and are healthy again."""
        site = self._site(life.pool)
        if site is None:
            return []
        found: dict[str, None] = {}
        for group in life.state.groups:
            for node in group.excluded if not group.status.final else ():
                tolerated = {self._tolerations(life, group.name, task.name) for task in group.tasks}
                if all(is_healthy(node, site.world.cluster, site.ill, each) for each in tolerated):
                    found[node] = None
        return list(found)

    def enqueue(self, life: LiveWorkflow, asked: Enqueue) -> QueueAnswer | None:
        """Queue a gang; an already placed one is reported again, and one that can never be placed with its reason."""
        known = self.catalog.pools.get(life.pool)
        if known is not None and known.pool.traits.own_queue:
            return self._handed_over(life, asked, known.pool)
        key = (life.id, asked.group, asked.attempt)
        pool = known_pool(self.catalog, life.pool)
        home = None if isinstance(pool, Blocked) else pool.backend
        for backend, other in self._backends.items():
            if backend != home:
                other.queue.drop(key)  # its pool may have moved
        if isinstance(pool, Blocked):
            return _blocked(life, asked, pool)
        site = self._backends[pool.backend]
        if held := site.world.held(key):
            return self._placed(life.id, asked.group, asked.attempt, tuple(held.values()), life.pool)
        if key in site.queue and self._asked.get(key) == (asked, pool):
            return None  # it waits unchanged, so its text is not needed
        gang = waiting_gang(life, [asked], pool, self._prompt)
        if isinstance(gang, Blocked):
            site.queue.drop(key)
            return _blocked(life, asked, gang)
        self._asked[key] = asked, pool
        group = life.state.groups[life.spec.order[asked.group]]
        since = since_of(group, life.submitted_at)
        site.queue.put(QueueEntry(key, pool, gang, life.priority, since, life.number, dict(asked.anchors)))
        return None

    def _handed_over(self, life: LiveWorkflow, asked: Enqueue, pool: Pool) -> QueueAnswer:
        """Place a gang without nodes, since its scheduler has its own queue and chooses them later."""
        gang = waiting_gang(life, [asked], pool, self._prompt)
        if isinstance(gang, Blocked):
            return _blocked(life, asked, gang)
        return QueueAnswer(life.id, Placed(asked.group, asked.attempt))

    def hands_over(self, life: LiveWorkflow) -> bool:
        """Return whether the gangs of a workflow wait in the queue of their own scheduler."""
        known = self.catalog.pools.get(life.pool)
        return known is not None and known.pool.traits.own_queue

    def rescues(self, life: LiveWorkflow) -> bool:
        """Return whether a workflow's pool lets gangs be rescued."""
        known = self.catalog.pools.get(life.pool)
        return known is not None and known.pool.rescue_after is not None

    def question(
        self, life: LiveWorkflow, asked: Enqueue, pins: Mapping[str, Mapping[str, str]]
    ) -> EngineQuestion | None:
        """Return the question about a gang that its scheduler has not bound yet, pinned to some labels.

        None where it cannot be asked now, or where a pod of the gang is bound, of which the observation is on its way.
        """
        pool = known_pool(self.catalog, life.pool)
        if isinstance(pool, Blocked):
            return None
        gang = waiting_gang(life, [asked], pool, self._prompt)
        world = self._backends[pool.backend].world
        if isinstance(gang, Blocked) or world.shows(life.id, asked.group, asked.tasks):
            return None
        wanted = pinned(gang, pins) if pins else gang
        return EngineQuestion(pool, wanted, world, world.present(dict(asked.anchors)))

    def scheduled(self, life: LiveWorkflow, told: Scheduled | Up | Running) -> PlacementRecord | None:
        """Hold the node that a scheduler chose for a task; return the row to store, None where nothing is new."""
        if not told.node or told.task not in life.spec.places:
            return None
        index, place = life.spec.places[told.task]
        group = life.state.groups[index]
        task = group.tasks[place]
        if task.attempt != told.attempt or task.presence not in _HOLDING:
            return None
        key = (life.id, group.name, task.attempt)
        if (held := self.held(key).get(task.name)) is not None:
            if held.node == told.node:
                return None
            for site in self._backends.values():
                site.world.release(key, [task.name])
        self._held_again(key, life.pool, TaskHolding(task.name, told.node, shape_in(life.digest, task.name)))
        return PlacementRecord(group.name, task.name, task.attempt, told.node, (), self.domains(life.pool, told.node))

    def release(self, life: LiveWorkflow, asked: ReleaseTasks) -> Released:
        """Remove tasks from the queue, or return their capacity."""
        key = (life.id, asked.group, asked.attempt)
        for site in self._backends.values():
            site.queue.drop(key)
            site.world.release(key, asked.tasks)
        self._asked.pop(key, None)
        return Released(asked.group, asked.attempt, asked.tasks)

    def cycle(self, now: float) -> Iterator[QueueAnswer]:
        """Place the gangs that fit; yield their nodes, and the reasons of the others."""
        starved = [site for site in self._backends.values() if site.embedded and site.queue.starved(now)]
        for site in self._backends.values():
            if not len(site.queue):
                continue
            for told in list(site.queue.cycle(now, shut=site.embedded and any(other is not site for other in starved))):
                workflow, group, attempt = told.entry.key
                match told:
                    case PlacedGang(entry, held):
                        self._asked.pop(entry.key, None)
                        yield self._placed(workflow, group, attempt, held, entry.pool.name)
                    case WaitReason():
                        never = told.decision.verdict is Verdict.IMPOSSIBLE
                        reason, message = self._words(told, site.world)
                        yield QueueAnswer(workflow, Refused(group, attempt, reason, message, never=never))

    def held(self, key: Key) -> Mapping[str, TaskHolding]:
        """Return the holdings of a placement's tasks."""
        found = (site.world.held(key) for site in self._backends.values())
        return next((held for held in found if held), {})

    def seats(self, life: LiveWorkflow, asked: Create) -> dict[str, TaskPlacement]:
        """Return the nodes of a placement's tasks; one whose node its scheduler chooses later has none."""
        held = self.held((life.id, asked.group, asked.attempt))
        return {
            task: TaskPlacement(node, self.domains(life.pool, node), held[task].gpus if task in held else ())
            for task, node in asked.tasks
        }

    def domains(self, pool: str, node: str) -> dict[str, str]:
        """Return the values of a node's levels under a pool."""
        site = self._site(pool)
        return site.world.domains(self._pool(pool), node) if site else {}

    def _placed(self, workflow: str, group: str, attempt: int, held: tuple[TaskHolding, ...], pool: str) -> QueueAnswer:
        if (known := self.catalog.pools.get(pool)) and known.pool.traits.chooses_nodes:
            # The holdings reserve capacity for the gang; `scheduled` holds the nodes that it really gets.
            return QueueAnswer(workflow, Placed(group, attempt))
        nodes = tuple((one.task, one.node) for one in held)
        rows = tuple(
            PlacementRecord(group, one.task, attempt, one.node, one.gpus, self.domains(pool, one.node)) for one in held
        )
        return QueueAnswer(workflow, Placed(group, attempt, nodes), rows)

    def _words(self, told: WaitReason, world: BackendHoldings) -> tuple[str, str]:
        refusal, pool = told.decision.refusal, told.entry.pool
        if refusal is None:
            return Reason.UNDECIDED.value, "it is not known yet whether it fits"
        return refusal_words(refusal, told.entry.gang, pool, world.capacity(pool).domains)

    def _tolerations(self, life: LiveWorkflow, group: str, task: str) -> tuple[Toleration, ...]:
        known = self.catalog.pools.get(life.pool)
        if known is None:
            return ()
        try:
            gang = self._texts.built(life.id, known.pool, levels_of(life.digest)).gang(group)
        except (SpecErrors, NotFound):
            return known.pool.tolerations  # it could not be placed here again, but it may keep running
        return next(one.shape.tolerations for one in gang.all_tasks() if one.name == task)

    def _pool(self, name: str) -> Pool:
        return self.catalog.pools[name].pool

    def _site(self, pool: str) -> BackendQueue | None:
        """Return the backend on which a pool's gangs wait; None for one that this service does not know."""
        known = self.catalog.pools.get(pool)
        if known is None or known.pool.backend not in self.catalog.clusters:
            return None
        return self._backends.get(known.pool.backend)


def _blocked(life: LiveWorkflow, asked: Enqueue, why: Blocked) -> QueueAnswer:
    # A lost level can return with a change of the topology, so its gang is only waiting.
    never = why.reason is not Reason.LEVEL_LOST
    return QueueAnswer(life.id, Refused(asked.group, asked.attempt, why.reason.value, why.message, never=never))


def _gone(key: Key, held: TaskHolding) -> FailedTask:
    workflow, _, attempt = key
    return FailedTask(workflow, held.task, attempt, f"node {held.node} is gone")
