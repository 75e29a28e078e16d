"""The use of pools over the last day: a sample a minute, kept in the store, and summaries of them.

The leader's replica takes the samples in a thread of their own, so that they delay nothing that is driven.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any

from coterie.config.configuration import Pool
from coterie.errors import CoterieError
from coterie.inspection.fragmentation import fragmentation
from coterie.inspection.labels import pool_nodes
from coterie.service.pools.changes import gpus_of, known_cluster
from coterie.service.pools.usage import PoolUsage, unfinished
from coterie.store import PoolSample, Store, Summary
from coterie.topology.domains import Domains

SAMPLE_S = 60
KEPT_S = 24 * 3600
# How often the clock is looked at: a replica that becomes the leader takes a sample at once.
_TICK_S = 1.0

Json = dict[str, Any]
_log = logging.getLogger("coterie.history")
_log.addHandler(logging.NullHandler())


class UsageRecorder:
    """The thread that samples the pools once a minute while this replica leads."""

    def __init__(
        self, store: Store, usage: Callable[[], PoolUsage], now: Callable[[], float], leading: Callable[[], bool]
    ) -> None:
        self._store, self._usage, self._now, self._leading = store, usage, now, leading
        self._stopping = threading.Event()
        self._last = -1
        self._thread = threading.Thread(target=self._run, name="coterie-history", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, before the store is closed."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def record(self) -> None:
        """Store a sample of every pool, unless this minute has one."""
        now = self._now()
        minute = int(now // SAMPLE_S)
        if minute == self._last or not self._leading():
            return
        # Set first: a sample that fails is left out, and not tried every second.
        self._last = minute
        found = list(samples(self._usage(), unfinished(self._store), now))
        self._store.add_samples(found, now - KEPT_S)

    def _run(self) -> None:
        while not self._stopping.wait(_TICK_S):
            try:
                self.record()
            except CoterieError:
                continue  # the driver reports an unavailable store
            except Exception:  # noqa: BLE001 - the next minute has another
                _log.exception("unexpected error while the use of pools was recorded")


def samples(live: PoolUsage, workflows: Iterable[Summary], now: float) -> Iterator[PoolSample]:
    """Yield the sample of each pool whose nodes are known."""
    mine: dict[str, list[Summary]] = {}
    for each in workflows:
        mine.setdefault(each.pool, []).append(each)
    for name, known in live.catalog.pools.items():
        found = sample(known.pool, live, mine.get(name, ()), now)
        if found is not None:
            yield found


def sample(pool: Pool, live: PoolUsage, workflows: Iterable[Summary], now: float) -> PoolSample | None:
    """Return the sample of a pool with these workflows, None where its nodes are not known.

    Its time is the beginning of the minute.
    """
    cluster = known_cluster(pool, live)
    if cluster is None:
        return None
    own = pool_nodes(cluster, pool)
    gpus = gpus_of(own)
    waiting = [each for each in workflows if each.digest.get("waiting")]
    return PoolSample(
        pool.name,
        now // SAMPLE_S * SAMPLE_S,
        gpus["total"],
        gpus["total"] - gpus["free"] - gpus["out_of_service"],
        gpus["free"],
        len(waiting),
        sum(int(each.digest.get("gpus", 0)) for each in waiting),
        max((now - float(each.digest["waiting"]["since"]) for each in waiting), default=0.0),
        fragmentation(Domains.of(own, pool.topology)),
    )


def points(found: Sequence[PoolSample], since: float, step_s: float) -> Iterator[Json]:
    """Yield one point for each step that has samples."""
    steps: dict[int, list[PoolSample]] = {}
    for one in found:
        steps.setdefault(int((one.at - since) // step_s), []).append(one)
    for step, inside in sorted(steps.items()):
        yield {"at": since + step * step_s, **point(inside)}


def point(inside: Sequence[PoolSample]) -> Json:
    """Return the samples of one step as a point: means of GPUs and fragmentation, the most of what waits."""
    shares = [one.fragmentation for one in inside if one.fragmentation is not None]
    return {
        **{name: round(fmean(getattr(one, name) for one in inside), 1) for name in ("gpus", "used", "free")},
        "waiting": max(one.waiting for one in inside),
        "waiting_gpus": max(one.waiting_gpus for one in inside),
        "longest_wait_s": round(max(one.longest_wait_s for one in inside), 1),
        "fragmentation": round(fmean(shares), 3) if shares else None,
    }
