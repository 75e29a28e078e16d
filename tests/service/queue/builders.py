"""Short builders of waiting gangs and their nodes."""

from __future__ import annotations

from itertools import count

from coterie.config.configuration import Pool
from coterie.gang.rules import RequestedTask, TaskRequirement, build
from coterie.gang.tree import Gang, Shape
from coterie.service.queue.holdings import BackendHoldings
from coterie.service.queue.queue import PlacedGang, Queue, QueueEntry
from coterie.topology.cluster import GPU, Cluster, Node
from coterie.topology.levels import Topology

LEVELS = Topology.of(("rack", "rack"))
POOL = Pool("main", "lab", "local", topology=LEVELS)
NUMBERS = count(1)


def world(nodes: int = 4, kind: str = GPU) -> BackendHoldings:
    """Return nodes of 8 GPUs, two in a rack."""
    return BackendHoldings(Cluster.of([Node(f"n{n}", {"rack": f"r{n // 2}"}, {kind: 8}) for n in range(nodes)]))


def gang(tasks: int, gpu: int = 8, *, rack: bool = False, kind: str = GPU) -> Gang:
    """Return a gang of equal tasks, in one rack if that is asked for."""
    wants = (TaskRequirement("rack", "default", required=True),) if rack else ()
    shape = Shape(requests=((kind, gpu),) if gpu else ())
    return build("g", [RequestedTask(f"t{n}", shape, wants) for n in range(tasks)], LEVELS)


def entry(name: str, one: Gang, priority: str = "NORMAL", since: float = 0.0, pool: Pool = POOL) -> QueueEntry:
    """Return a gang of a workflow of its own that waits."""
    return QueueEntry((name, "g", 1), pool, one, priority, since, next(NUMBERS))


def placed(queue: Queue, now: float = 0.0) -> list[str]:
    """Run a cycle; return the workflows of the gangs that were placed, in turn."""
    return [told.entry.key[0] for told in queue.cycle(now) if isinstance(told, PlacedGang)]
